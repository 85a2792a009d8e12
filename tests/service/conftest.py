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
from lrp4rag.classifiers.along import JudgedPiece, ReadingAlong
from lrp4rag.policy import Policy
from lrp4rag.reader import Reader
from lrp4rag.sentence_stream import Piece
from lrp4rag.service.app import create_app
from lrp4rag.service.settings import Settings
from tests.cli.plain_detector import plain_detector
from tests.service.scripted_upstream import Script, serving

PASSAGES = ["The Marlow lighthouse is 31 metres tall.", "Fish is sold nearby."]
QUESTION = "How tall is the lighthouse?"

TEXTS = Policy().texts
MARK, UNSUPPORTED, UNAVAILABLE = TEXTS.mark, TEXTS.notice, TEXTS.unavailable_notice

Start = Callable[..., Any]


@pytest.fixture(scope="session")
def detector(tiny_reader: Reader) -> Detector:
    return Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    def make(**given: Any) -> Settings:
        return Settings.load(None, **({"audit": f"sqlite:///{tmp_path / 'audit.db'}", "open": True} | given))

    return make


@pytest.fixture
def script() -> Script:
    return Script()


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


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pieces that were judged: WRONG ones are hallucinated, DOUBTFUL ones suspect, BROKEN ones raise."""
    seen: list[str] = []

    def judge(_: ReadingAlong, piece: Piece) -> JudgedPiece:
        seen.append(piece.text)
        if "BROKEN" in piece.text:
            raise RuntimeError(piece.text)
        score = 0.9 if "WRONG" in piece.text else 0.4 if "DOUBTFUL" in piece.text else 0.01
        odd = "ODD" in piece.text
        return JudgedPiece(piece.start, piece.end, piece.text, score, score > 0.3, score, abstained=odd)

    monkeypatch.setattr(ReadingAlong, "judge", judge)
    return seen


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Where OpenAI's clients find a server, on a socket."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    socket = uvicorn.Config(app, port=0, log_level="error").bind_socket()
    socket.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def asked(**more: Any) -> dict[str, Any]:
    """A chat request."""
    body = {
        "model": "any",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}],
        "lrp4rag": {"passages": PASSAGES},
    }
    return body | more
