"""A server with the tiny reader, whose verdicts can be scripted, before a scripted upstream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from lrp4rag import Detector
from lrp4rag.claims.nearest import Nearest
from lrp4rag.claims.stating import stating
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Contradiction, Sentence, Status, SuspectSpan
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.policy import Policy
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.server import BOUNDS
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader import Reader
from lrp4rag.streaming import JudgedPiece, StreamingDetector
from lrp4rag.util.sentences import Piece
from tests.cli.plain_detector import plain_detector
from tests.guard.service.scripted_upstream import Script, serving

PASSAGES = ["The Marlow lighthouse is 31 metres tall.", "Fish is sold nearby."]
QUESTION = "How tall is the lighthouse?"

TEXTS = Policy().texts
MARK, UNSUPPORTED, UNAVAILABLE = TEXTS.mark, TEXTS.notice, TEXTS.unavailable_notice
CORRECTION = " [passage 1 says “31 metres”]"
"""Follows a sentence with the value OTHER."""
CONTRADICTED = "[withheld: passage 1 says “31 metres”]"
"""In the place of one."""
WITHHOLDING = {"claims": {"unsupported": "withhold"}}
"""A policy that withholds what no passage supports, and not only where that is most of the answer."""
STATUSES: dict[str, Status] = {"ODD": "not judged", "WRONG": "unsupported", "OTHER": "contradicted"}
PROBABILITIES: dict[Status, float] = {"unsupported": 0.9, "contradicted": 0.8, "supported": 0.01}

Start = Callable[..., Any]


@pytest.fixture(scope="module")
def detector(tiny_reader: Reader) -> Iterator[Detector]:
    found = Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24)
    yield found
    if found.is_open:  # a guard leaves it open, and others share its reader
        found.__exit__(None, None, None)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    def make(**given: Any) -> Settings:
        return Settings.load(None, **({"audit": f"sqlite:///{tmp_path / 'audit.db'}", "open": True} | given))

    return make


@pytest.fixture(scope="module")
def followed() -> Script:
    """What the upstreams of a module follow."""
    return Script()


@pytest.fixture
def script(followed: Script) -> Script:
    """Of a test's own: nothing is in it yet."""
    vars(followed).update(vars(Script()))
    return followed


@pytest.fixture(scope="module")
def client(
    detector: Detector, followed: Script, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestClient]:
    """Of a server before the scripted upstream, which tests share that leave nothing in its log that others
    look at: to start one takes longer than most of them."""
    audit = f"sqlite:///{tmp_path_factory.mktemp('audit') / 'audit.db'}"
    with serving(followed) as url:
        app = create_app(
            Settings.load(None, audit=audit, open=True, upstream=url, per_minute=10**6), detector
        )
        with TestClient(app, raise_server_exceptions=False) as found:
            yield found


@pytest.fixture
def start(detector: Detector, settings: Callable[..., Settings], script: Script) -> Start:
    """A client of a running server, before the scripted upstream."""

    @contextmanager
    def run(**given: Any) -> Iterator[TestClient]:
        with serving(script) as url:
            app = create_app(settings(**({"upstream": url} | given)), detector)
            with TestClient(app, raise_server_exceptions=False) as client:
                yield client

    return run


def piece_of(
    piece: Piece,
    status: Status,
    probability: float | None,
    spans: tuple[SuspectSpan, ...] = (),
    nearest: Nearest | None = None,
) -> JudgedPiece:
    """A piece as it would be judged; what is not judged is unlike the training data."""
    text = piece.text.strip()
    start = piece.start + piece.text.index(text)
    sentence = Sentence(start, start + len(text), text, None, (), None, status, probability, nearest)
    unlike = (Unlike("length", "too long", decides=True),) if status == "not judged" else ()
    return JudgedPiece(piece.start, piece.end, piece.text, sentence, probability, spans, unlike)


def contradicted_at(text: str, value: str, offset: int) -> tuple[SuspectSpan, ...]:
    """Where `text`, from character `offset` on, has a value in the place of the first passage's."""
    at, instead = text.find(value), "31 metres"
    if at < 0:
        return ()
    start, there = offset + at, PASSAGES[0].index(instead)
    end = start + len(value)
    one = Contradiction(start, end, value, instead, 0, there, there + len(instead), 3.0)
    return (SuspectSpan(start, end, value, contradictions=(one,)),)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pieces that were judged, by a word in them: what is WRONG is unsupported, OTHER is a value that the
    first passage has otherwise, what is ODD is not judged, and BROKEN ones raise. Others are supported, or
    state nothing."""
    seen: list[str] = []

    def judge(reading: StreamingDetector, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        seen.append(piece.text)
        if "BROKEN" in piece.text:
            raise RuntimeError(piece.text)
        if (followed and reading.waits(piece)) or stating(piece.text.strip()) == "nothing":
            return piece_of(piece, "states nothing", None)
        status = next((one for word, one in STATUSES.items() if word in piece.text), "supported")
        spans = contradicted_at(piece.text, "OTHER", piece.start) if status == "contradicted" else ()
        return piece_of(piece, status, PROBABILITIES.get(status, 0.01), spans)

    monkeypatch.setattr(StreamingDetector, "judge", judge)
    return seen


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Where OpenAI's clients find a server, on a socket."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", **BOUNDS))
    socket = uvicorn.Config(app, port=0, log_level="error").bind_socket()
    socket.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def recorded(audit: Path) -> list[dict[str, Any]]:
    """The records of an audit log, which is whole."""
    with AuditLog.open(audit) as log:
        assert not log.verify().problems
        return [entry.record for entry in log.entries()]


def asked(**more: Any) -> dict[str, Any]:
    """A chat request."""
    body = {
        "model": "any",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}],
        "lrp4rag": {"passages": PASSAGES},
    }
    return body | more
