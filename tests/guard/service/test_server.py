"""What a client may send before the application is asked, and as whom it may ask."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi import FastAPI, Request

from lrp4rag.guard.service import server as bounds
from lrp4rag.guard.service.access import Access, AuthMiddleware
from lrp4rag.guard.service.requests import LARGEST_HEADERS, BodyLimitMiddleware
from tests.guard.service.conftest import listening

GET = b"GET /v1/echo HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CLOSE = b"Connection: close\r\n"
"""Without it, the server waits some seconds for another request."""


@contextmanager
def echoing(tokens: dict[str, str]) -> Iterator[tuple[str, int]]:
    app = FastAPI()
    app.state.server = type("Server", (), {"access": Access(tokens, 10_000, 16)})
    app.add_middleware(AuthMiddleware)
    app.add_middleware(BodyLimitMiddleware, largest=1000)

    @app.api_route("/v1/echo", methods=["GET", "POST"])
    async def echo(request: Request) -> int:
        return len(await request.body())

    with listening(app) as url:
        yield "127.0.0.1", int(url.split(":")[2].partition("/")[0])


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with echoing({}) as found:
        yield found


def answer(address: tuple[str, int], *parts: bytes, pause: float = 0) -> tuple[int, dict]:
    """The status and the body of the reply to what is sent, even where it cannot be sent whole."""
    with socket.create_connection(address, timeout=20) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(pause)
        reply = b""
        while more := connection.recv(65536):
            reply += more
    head, _, body = reply.partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body) if body else {}) if reply else (0, {})


@pytest.mark.parametrize(
    "more",
    [
        [b"X-Long: " + b"a" * 2_000_000],
        [CLOSE + b"X-Long: " + b"a" * LARGEST_HEADERS + b"\r\n\r\n"],
        [b"a: b\r\n" * 400_000],
        [CLOSE + b"a: b\r\n" * 12_000 + b"\r\n"],
        [b"X-Long: ", *[b"a" * 4000] * 40],
    ],
    ids=["one", "one, whole", "many", "many, whole", "bit by bit"],
)
def test_headers_are_bounded(address: tuple[str, int], more: list[bytes]) -> None:
    started = time.monotonic()
    status, body = answer(address, GET, *more)
    assert (status, body["status"]) == (431, 431)
    assert time.monotonic() - started < 8


def test_a_long_address_is_part_of_them(address: tuple[str, int]) -> None:
    line = b"GET /" + b"a" * LARGEST_HEADERS + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n"
    assert answer(address, line)[0] == 431


@pytest.mark.parametrize("size", [100, LARGEST_HEADERS - 200])
def test_headers_up_to_the_bound_pass(address: tuple[str, int], size: int) -> None:
    assert answer(address, GET + CLOSE + b"X-Long: " + b"a" * size + b"\r\n\r\n")[0] == 200


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([GET], 408),
        ([b"G"], 408),
        ([GET, *[b"a: b\r\n"] * 15], 408),
        ([POST + b"Content-Length: 50\r\n\r\n", *[b"a"] * 15], 408),
        ([b""], 0),
    ],
    ids=["half", "a letter", "in drops", "a body in drops", "nothing"],
)
def test_a_request_comes_in_time(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, parts: list[bytes], status: int
) -> None:
    monkeypatch.setattr(bounds, "HEADERS_IN", 0.3)
    monkeypatch.setattr(bounds, "BODY_IN", 0.3)
    started = time.monotonic()
    assert answer(address, *parts, pause=0.05)[0] == status
    assert time.monotonic() - started < 5


def test_a_connection_is_used_again_in_its_own_time(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "HEADERS_IN", 0.6)
    with socket.create_connection(address, timeout=20) as connection, connection.makefile("rb") as replies:
        for _ in range(4):
            connection.sendall(GET)
            time.sleep(0.3)
            connection.sendall(b"\r\n")
            assert replies.readline().startswith(b"HTTP/1.1 200")
            head = list(iter(replies.readline, b"\r\n"))
            assert b"content-length: 1\r\n" in head
            assert replies.read(1) == b"0"


def test_what_is_no_http_is_a_problem(address: tuple[str, int]) -> None:
    assert answer(address, b"\x16\x03\x01\r\n\r\n")[1]["title"] == "Invalid request"


def asked_as(host: str) -> bytes:
    return f"GET /v1/echo HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    "host", ["LOCALHOST:80", "localhost.", "app.localhost:8000", "127.8.0.1", "[::1]:8000"]
)
def test_this_machine_may_ask(address: tuple[str, int], host: str) -> None:
    assert answer(address, asked_as(host))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "evil-localhost", ""]
)
def test_other_names_of_this_machine_may_not(address: tuple[str, int], host: str) -> None:
    assert answer(address, asked_as(host))[0] == 421


def test_a_token_tells_better_than_a_name() -> None:
    with echoing({"app": "0" * 64}) as address:
        assert answer(address, asked_as("judge.example"))[0] == 401
