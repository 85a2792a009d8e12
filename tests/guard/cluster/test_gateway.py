"""The gateway without Ray: what clients get of replicas that answer, die or are not there."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from lrp4rag.guard.cluster.gateway import create_gateway
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.settings import Settings
from tests.guard.service.conftest import asked, listening

CHAT, JUDGE = "/v1/chat/completions", "/v1/judge"
EVENTS, JSON = "text/event-stream; charset=utf-8", "application/json"


class DiedError(Exception):
    """As Ray raises it."""


def start(kind: str, **headers: str) -> dict[str, Any]:
    found = {"content-type": kind} | headers
    pairs = [(name.encode(), value.encode()) for name, value in found.items()]
    return {"type": "http.response.start", "status": 200, "headers": pairs}


def body(text: str, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


def answering(*messages: Any) -> Callable[..., AsyncGenerator[Any]]:
    """Takes each request, sends these messages, and raises where one is an error."""

    async def ask(scope: Any, body: bytes) -> AsyncGenerator[Any]:
        yield None
        for message in messages:
            if isinstance(message, Exception):
                raise message
            yield message

    return ask


async def no_metrics() -> dict[str, Any]:
    return {}


def gateway(ask: Any, collect: Any = no_metrics, **settings: Any) -> FastAPI:
    return create_gateway(Settings.load(None, open=True, **settings), ask, collect)


def client(ask: Any, collect: Any = no_metrics, **settings: Any) -> TestClient:
    return TestClient(gateway(ask, collect, **settings), raise_server_exceptions=False)


def test_a_reply_is_the_replica_s() -> None:
    seen: list[Any] = []

    async def ask(scope: Any, content: bytes) -> AsyncGenerator[Any]:
        seen.append((scope, content))
        yield None
        yield start(JSON, **{"x-said": "it"})
        yield body('{"a":', more=True)
        yield body("1}")

    reply = client(ask).post(f"{JUDGE}?q=1", content=b"xyz", headers={"x-asked": "this"})
    assert (reply.status_code, reply.json(), reply.headers["x-said"]) == (200, {"a": 1}, "it")
    ((scope, content),) = seen
    assert (scope["path"], scope["query_string"], content) == (JUDGE, b"q=1", b"xyz")
    assert (b"x-asked", b"this") in scope["headers"]
    assert set(map(type, scope.values())) <= {str, int, bytes, list, tuple, dict, type(None)}  # can be sent


@pytest.mark.parametrize("messages", [(), (start(JSON),), (start(EVENTS),)], ids=["silent", "json", "events"])
def test_a_replica_that_dies_before_it_said_anything_is_status_503(messages: tuple[Any, ...]) -> None:
    for ask in (answering(*messages, DiedError()), answering(*messages)):
        reply = client(ask).post(CHAT, json=asked(stream=True))
        assert reply.status_code == 503
        assert reply.headers["content-type"] == "application/problem+json"
        assert int(reply.headers["retry-after"]) >= 1
        assert "replica" in reply.json()["detail"]


def test_a_stream_that_a_replica_leaves_ends_with_an_error_and_is_not_done() -> None:
    ask = answering(start(EVENTS), body('data: {"a": 1}\n\n', more=True), DiedError())
    reply = client(ask).post(CHAT, json=asked(stream=True))
    *_, first, last = reply.text.strip().split("\n\n")
    assert first == 'data: {"a": 1}'
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == 503
    assert "[DONE]" not in reply.text


def test_a_stream_that_a_replica_leaves_after_its_last_event_is_whole() -> None:
    said = 'data: {"a": 1}\n\ndata: [DONE]\n\n'
    ask = answering(start(EVENTS), body(said, more=True), DiedError())
    reply = client(ask).post(CHAT, json=asked(stream=True))
    assert (reply.status_code, reply.text) == (200, said)


def test_any_other_reply_that_a_replica_leaves_is_cut() -> None:
    ask = answering(start(JSON, **{"content-length": "100"}), body('{"a":', more=True), DiedError())
    with listening(gateway(ask)) as url, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(url.replace("/v1", JUDGE), json={})


def test_where_no_replica_takes_a_request_it_is_status_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrp4rag.guard.cluster.gateway.ACCEPT_SECONDS", 0.05)

    async def ask(scope: Any, body: bytes) -> AsyncGenerator[Any]:
        await asyncio.Event().wait()
        yield None

    reply = client(ask).post(JUDGE, json={})
    assert reply.status_code == 503
    assert "retry-after" in reply.headers


def test_a_replica_is_told_when_its_client_goes() -> None:
    taken, left = threading.Event(), threading.Event()

    async def ask(scope: Any, body: bytes) -> AsyncGenerator[Any]:
        try:
            yield None
            taken.set()
            await asyncio.Event().wait()
        finally:
            left.set()

    with listening(gateway(ask)) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url.replace("/v1", JUDGE), json={}, timeout=httpx.Timeout(5, read=0.5))
        assert taken.is_set()
        assert left.wait(5)


def test_a_body_that_is_too_large_reaches_no_replica() -> None:
    async def ask(scope: Any, content: bytes) -> AsyncGenerator[Any]:
        raise AssertionError
        yield

    reached = client(ask, largest_request=1024)
    assert reached.post(JUDGE, content=b"x" * 2000).status_code == 413
    assert reached.get("/healthz").status_code == 200


def test_metrics_have_each_replica_s_name_and_count_refusals_once() -> None:
    metrics.refused(418)
    counted = metrics.collected(waiting=2, most_waiting=32, reviews=0)

    async def collect() -> dict[str, Any]:
        return {"a": counted, "b": counted}

    text = client(answering(), collect).get("/metrics").text
    assert 'lrp4rag_waiting{replica="a"} 2.0' in text
    assert 'lrp4rag_waiting{replica="b"} 2.0' in text
    assert 'lrp4rag_replicas{replica="door"} 2.0' in text
    assert [
        line for line in text.splitlines() if line.startswith("lrp4rag_refused_total") and "door" not in line
    ] == []
    assert text.count("# TYPE lrp4rag_waiting gauge") == 1
    assert 'lrp4rag_waiting{replica="door"}' not in text
