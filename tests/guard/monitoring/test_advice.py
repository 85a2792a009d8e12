"""What to do next names what changed, and blames nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lrp4rag.guard.monitoring.drift import compare
from lrp4rag.guard.monitoring.report import advice
from tests.guard.monitoring.logs import EARLY, LATE, pair, records, window


def said(**more: Any) -> str:
    return "\n".join(advice(compare(*pair(**more))))


def test_nothing_drifted() -> None:
    assert said() == ""


@pytest.mark.parametrize(
    ("worse", "named", "others"),
    [
        (
            {"worse": 0.4, "only": "travel", "retrieval": 0.2},
            "travel may lack documents",
            ("leave", "generator"),
        ),
        ({"worse": 0.4, "only": "travel"}, "may be outdated", ("lack documents", "leave")),
        ({"worse": 0.3, "only": "qwen"}, "generator qwen", ("llama", "topic")),
        ({"worse": 0.2}, "Nothing that is recorded", ("topic", "generator")),
    ],
)
def test_a_group_is_named_and_no_other(worse: dict[str, Any], named: str, others: tuple[str, ...]) -> None:
    words = said(**worse)
    assert named in words
    assert words.endswith("lrp4rag review --since 2026-11-18T12:00Z")
    assert not any(other in words for other in others)


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        ({"policy": "p2"}, "policy changed (p1 to p2)"),
        ({"detector": "d2"}, "detector changed (d1 to d2)"),
        ({"characters": 2000}, "of another length"),
        ({"passages": 2}, "number of passages (5.000 to 2.000)"),
        ({"action": "withhold", "reason": "unavailable"}, "not be judged (0.0 % to 100.0 %)"),
        ({"action": "withhold", "reason": "knowledge gap"}, "answer from (0.0 % to 100.0 %)"),
        ({"action": "disclose", "reason": "contradicted"}, "passage has otherwise (0.0 %"),
        ({"action": "mark", "reason": "unsupported"}, "no passage says (0.0 %"),
        ({"action": "withhold", "abstained": True}, "the detector learned from"),
        ({"retrieval_score": 0.2}, "Retrieval is weaker"),
        ({"topic": "it"}, "Other topics"),
    ],
    ids=str,
)
def test_what_else_changed(fixed: dict[str, Any], expected: str) -> None:
    assert expected in said(**({"worse": 0.3} | fixed))


def test_fewer_of_a_reason_are_no_cause() -> None:
    early = window(EARLY, records(450, 1, reason="contradicted"))
    told = "\n".join(advice(compare(early, window(LATE, records(400, 2, worse=0.3)))))
    assert "has otherwise" not in told


def test_better_answers_become_the_baseline() -> None:
    worse, usual = pair(worse=0.3)[1], pair()[0]
    told = advice(compare(replace(worse, period=EARLY), replace(usual, period=LATE)))
    assert len(told) == 1
    assert "next baseline" in told[0]


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    name = "\x1b[31m\u202eevil\n" + "x" * 100
    early = [one | {"topic": name if one["topic"] == "it" else one["topic"]} for one in records(450, 1)]
    late = [one | {"topic": name if one["topic"] == "it" else one["topic"]} for one in records(400, 2)]
    worse = [one | ({"probability": 1.0} if one["topic"] == name else {}) for one in late]
    told = "\n".join(advice(compare(window(EARLY, early), window(LATE, worse))))
    assert "Answers of topic ␛[31m" in told
    assert "\x1b" not in told
    assert "\u202e" not in told
