"""A judge is asked about escalated answers beside their path, and its opinion is recorded."""

from __future__ import annotations

import json
import time

import pytest

from lrp4rag.guard.second_opinion import QUESTIONS
from tests.guard.service.conftest import asked as chat
from tests.guard.service.conftest import recorded
from tests.guard.service.scripted_upstream import Script, events, serving
from tests.guard.service.test_reviews import ONE

REPLY = json.dumps({name: {"answer": "no", "reason": "SECRET"} for name in QUESTIONS})


def await_request(judge: Script, count: int) -> None:
    until = time.monotonic() + 10
    while len(judge.asked) < count and time.monotonic() < until:
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("action", "share", "asked"), [("escalate", 0, 1), ("withhold", 0, 0), ("withhold", 1, 1)]
)
def test_which_answers_it_is_asked_about(start, tmp_path, action: str, share: float, asked: int) -> None:
    judge = Script(error={"message": "no"}, status=400)
    with serving(judge) as url:
        claims = dict.fromkeys(("contradicted", "unsupported", "most"), action)
        policy = {"abstained": action, "claims": claims, "bands": [{"action": action, "reason": "suspect"}]}
        with start(upstream=None, policy=policy, judge=url, judge_share=share) as client:
            client.post("/v1/judge", json=ONE)
            await_request(judge, asked)
    assert len(judge.asked) == asked
    first, *others = recorded(tmp_path / "audit.db")
    told = [(one["kind"], one["of"], one["failure"]) for one in others]
    assert told == [("opinion", first["id"], "refused")] * asked


def test_it_sees_what_passages_are_called(start, script: Script, judged: list[str]) -> None:
    """An answer may cite them by their ids, versions and dates."""
    passages = [{"text": "It is 31 metres tall.", "id": "HR-12", "version": "3.1", "effective": "2026-01-01"}]
    script.stream = events("It is 31 metres tall [HR-12].")
    judge = Script(error={"message": "no"}, status=400)
    with serving(judge) as url, start(judge=url, judge_share=1) as client:
        client.post("/v1/judge", json=ONE | {"passages": passages})
        client.post("/v1/chat/completions", json=chat(lrp4rag={"passages": passages}))
        await_request(judge, 2)
    framed = "id: HR-12\nversion: 3.1\neffective: 2026-01-01\nIt is 31 metres tall.\n"
    assert [framed in request["messages"][1]["content"] for request in judge.asked] == [True, True]
