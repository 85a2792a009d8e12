"""A judge is asked about escalated answers beside their path, and its opinion is recorded."""

from __future__ import annotations

import json
import time

import pytest

from lrp4rag.guard.second_opinion import QUESTIONS
from tests.guard.service.conftest import recorded
from tests.guard.service.scripted_upstream import Script, serving
from tests.guard.service.test_reviews import ONE

REPLY = json.dumps({name: {"answer": "no", "reason": "SECRET"} for name in QUESTIONS})


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
            until = time.monotonic() + 10
            while asked and not judge.asked and time.monotonic() < until:
                time.sleep(0.02)
    assert len(judge.asked) == asked
    first, *others = recorded(tmp_path / "audit.db")
    told = [(one["kind"], one["of"], one["failure"]) for one in others]
    assert told == [("opinion", first["id"], "refused")] * asked
