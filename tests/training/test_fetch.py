"""Fetching from a server that cuts, lies, is silent, redirects or is not there."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lrp4rag.training import fetch as fetching
from lrp4rag.training.fetch import PublicFile, PublicSet, fetch, fetched_set, set_folder
from lrp4rag.util.errors import InputError, LRP4RAGError

CONTENT = b'{"row": 1}\n' * 20_000
NAME = "rows.jsonl"


class Server(ThreadingHTTPServer):
    """It answers `GET /BEHAVIOUR/rows.jsonl`, and notes the ranges that it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []
        self.released = threading.Event()

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients go away."""

    def url(self, behaviour: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{behaviour}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        behaviour = self.path.split("/")[1]
        asked = self.headers["Range"]
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        content, most = CONTENT, len(CONTENT)
        if behaviour == "redirecting":
            self.send_response(302)
            self.send_header("Location", self.server.url("cutting") + "/" + NAME)
            self.end_headers()
            return
        if behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "busy" and len(self.server.ranges) < 3:
            self.send_error(503)
            return
        if behaviour == "lying":
            content = CONTENT.replace(b"1", b"2")
        elif behaviour == "short":
            content = CONTENT[:-1]
        elif behaviour == "forgetful":
            start = 0
        elif behaviour == "elsewhere" and start:
            self.answer(206, CONTENT, start, start + 7)
            return
        if behaviour in ("cutting", "stalling", "forgetful"):
            most = 90_000 if len(self.server.ranges) < 2 or behaviour == "cutting" else most
        sent = content[start : start + most]
        self.answer(206 if start else 200, content, start, start, sent)
        if behaviour == "stalling" and len(self.server.ranges) < 2:
            self.server.released.wait(20)

    def answer(self, status: int, content: bytes, start: int, first: int, sent: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) - start))
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "PAUSE", 0)
    server = Server()
    file = PublicFile(NAME, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(fetching, "PUBLIC", {"rows": PublicSet(server.url("honest"), "MIT", (file,))})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_set_is_fetched_once_and_is_there_by_its_name(server: Server) -> None:
    with pytest.raises(InputError, match="lrp4rag data fetch rows"):
        fetched_set("rows")
    assert fetch("rows") == set_folder("rows") == fetched_set("rows")
    assert (set_folder("rows") / NAME).read_bytes() == CONTENT
    fetch("rows")
    assert server.ranges == [None]


@pytest.mark.parametrize(
    ("behaviour", "ranges"),
    [
        ("cutting", [None, "bytes=90000-", "bytes=180000-"]),
        ("redirecting", [None, None, "bytes=90000-", "bytes=90000-"]),
        ("forgetful", [None, "bytes=90000-"]),
        ("busy", [None, None, None]),
        ("stalling", [None, "bytes=90000-"]),
    ],
)
def test_what_a_server_did_not_send_is_asked_for_again(
    server: Server, behaviour: str, ranges: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.5)
    folder = fetch("rows", tmp_path / "out", server.url(behaviour))
    assert (folder / NAME).read_bytes() == CONTENT
    assert names_in(folder) == [NAME]
    assert server.ranges[: len(ranges)] == ranges


def test_a_killed_download_goes_on(server: Server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:1000])
    fetch("rows", tmp_path)
    assert server.ranges == ["bytes=1000-"]
    assert (tmp_path / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [CONTENT[:-1] + b"x", CONTENT + b"x", b"x" * 1000])
def test_a_part_of_something_else_is_not_kept(server: Server, part: bytes, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(part)
    with pytest.raises(LRP4RAGError, match="SHA-256"):
        fetch("rows", tmp_path)
    assert names_in(tmp_path) == []
    fetch("rows", tmp_path)
    assert names_in(tmp_path) == [NAME]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [("lying", "SHA-256"), ("short", "219,999 bytes"), ("missing", "404")],
)
def test_other_content_is_a_failure_and_nothing_of_it_is_kept(
    server: Server, behaviour: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(LRP4RAGError, match=words) as caught:
        fetch("rows", tmp_path, server.url(behaviour))
    assert caught.value.exit_code == 1
    assert names_in(tmp_path) == []


def test_another_part_than_was_asked_for_is_not_appended(server: Server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:1000])
    fetch("rows", tmp_path, server.url("elsewhere"))
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-", None]


def test_offline_it_says_what_to_do_and_keeps_what_it_has(server: Server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:1000])
    with pytest.raises(LRP4RAGError, match="Without a network") as caught:
        fetch("rows", tmp_path, "http://127.0.0.1:9")
    assert caught.value.exit_code == 1
    assert names_in(tmp_path) == [f"{NAME}.part"]


def test_the_proxy_of_the_environment_is_asked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url("")[:-1])
    monkeypatch.setenv("no_proxy", "")
    fetch("rows", tmp_path, "http://data.invalid/honest")
    assert server.ranges == [None]


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: fetch("cats", folder),
        lambda folder: fetch("rows", folder, "file:///etc"),
        lambda folder: fetch("rows", folder, "ftp://127.0.0.1/x"),
        lambda folder: fetch("rows", folder / "file"),
    ],
)
def test_bad_usage(server: Server, call: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        call(tmp_path)
    assert server.ranges == []


def test_files_of_other_content_stay(server: Server, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(InputError, match="delete or move it"):
        fetch("rows", tmp_path)
    assert (tmp_path / NAME).read_text() == "mine"


def test_a_set_that_was_changed_is_not_loaded(server: Server) -> None:
    path = fetch("rows") / NAME
    path.write_bytes(CONTENT.replace(b"1", b"2"))
    with pytest.raises(InputError, match="damaged"):
        fetched_set("rows")
    os.unlink(path)
    fetch("rows")
    assert fetched_set("rows") == path.parent
