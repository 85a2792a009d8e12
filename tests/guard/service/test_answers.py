"""What a request passes before its route."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from lrp4rag.guard.service.access import Access, new_token
from lrp4rag.guard.service.problems import Problem
from lrp4rag.streaming import JudgedPiece, StreamingDetector
from lrp4rag.util.sentences import Piece
from tests.guard.service.conftest import asked, piece_of
from tests.guard.service.scripted_upstream import Script, events

ROUTE = "/v1/chat/completions"


def test_a_body_of_one_who_is_not_known_is_not_read(start) -> None:
    """What is no JSON is found out only for who may ask."""
    _, hash = new_token()
    with start(open=False, tokens={"app": hash}) as client:
        for content in (b"{", b"x" * 3_000_000):
            assert client.post(ROUTE, content=content).status_code == 401
        assert client.get("/nowhere").status_code == 401
        for open_to_all in ("/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"):
            assert client.get(open_to_all).status_code == 200


def test_one_token_has_so_many_answers_written_at_a_time() -> None:
    access = Access({}, 10, most_answers=2)
    with access.answering("a"), access.answering("a"):
        with access.answering("b"):
            pass
        with pytest.raises(Problem, match="2 answers") as caught, access.answering("a"):
            pass
        assert caught.value.status == 429
    with access.answering("a"):
        pass


def test_an_answer_holds_its_slot_until_it_ends(
    start, script: Script, judged: list[str], monkeypatch
) -> None:
    script.stream, script.longest = events("It is 31 metres tall."), 99
    slow = threading.Event()
    pieces = Script.pieces
    monkeypatch.setattr(Script, "pieces", lambda self: (one for one in pieces(self) if slow.wait(10) or True))
    with start(most_answers=1) as client:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(client.post(ROUTE, json=asked()).status_code))
        thread.start()
        while not script.asked:
            time.sleep(0.01)
        assert client.post(ROUTE, json=asked()).status_code == 429
        slow.set()
        thread.join(20)
        assert found == [200]
        assert client.post(ROUTE, json=asked()).status_code == 200


@pytest.mark.parametrize("stream", [True, False])
def test_the_time_of_an_answer_holds_within_one_delta(
    start, script: Script, monkeypatch, stream: bool
) -> None:
    """Its sentences take long to judge, though the upstream wrote them all at once."""

    def judge(reading: StreamingDetector, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        time.sleep(0.2)
        return piece_of(piece, "supported", 0.01)

    monkeypatch.setattr(StreamingDetector, "judge", judge)
    script.stream, script.longest = events("It is 31 metres tall. " * 100), 10_000
    with start(answer_seconds=1) as client:
        started = time.monotonic()
        reply = client.post(ROUTE, json=asked(stream=stream))
        assert time.monotonic() - started < 6
    assert reply.status_code == (200 if stream else 504)
    assert "longer than is allowed" in reply.text
    assert "[DONE]" not in reply.text


def test_the_time_of_an_answer_holds_where_nothing_is_said(start, script: Script, monkeypatch) -> None:
    def alive(_: Script) -> Iterator[bytes]:
        for _ in range(100):
            yield b": still here\n\n"
            time.sleep(0.1)

    monkeypatch.setattr(Script, "pieces", alive)
    with start(answer_seconds=0.5) as client:
        started = time.monotonic()
        assert client.post(ROUTE, json=asked()).status_code == 504
        assert time.monotonic() - started < 5
