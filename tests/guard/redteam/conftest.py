"""A server with the tiny reader, as the tests of the service have it, and cases by hand."""

from __future__ import annotations

from typing import Any

from lrp4rag.guard.redteam import Answered, Case
from lrp4rag.guard.redteam.targets import NotJudged
from tests.guard.service.conftest import detector, followed, script, settings, start  # noqa: F401


def case(id: str = "a", **more: Any) -> Case:
    given = {
        "id": id,
        "kind": "conflict",
        "question": "How tall is it?",
        "passages": ["The lighthouse is 31 metres tall."],
        "response": "It is 13 metres tall.",
        "expected": ["escalate", "withhold"],
        "why": "31, not 13.",
    }
    return Case.model_validate(given | more)


def answered(action: Any = "withhold", **more: Any) -> Answered:
    given = {
        "reason": "knowledge gap",
        "rule": "bands[4]",
        "probability": 0.9,
        "faithfulness": 0.0,
        "fact_score": 0.5,
        "findings": ("It has 31.",),
        "shown": "The available documents do not answer this question.",
    }
    return Answered(action=action, **(given | more))


class Scripted:
    """A target whose answers, by case, are written down; it can judge no other."""

    name = "scripted"
    versions = {"package": "1", "policy": "p"}  # noqa: RUF012

    def __init__(self, **answers: Answered) -> None:
        self.answers = answers

    def judge(self, case: Case) -> Answered:
        if case.id not in self.answers:
            raise NotJudged("too long")
        return self.answers[case.id]
