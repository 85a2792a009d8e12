"""What to do next names what changed, and blames nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lrp4rag.guard.monitoring.advice import advice
from lrp4rag.guard.monitoring.drift import compare
from tests.guard.monitoring.logs import EARLY, LATE, pair, records, window


def said(**more: Any) -> str:
    return "\n".join(advice(compare(*pair(**more))))


def test_nothing_drifted() -> None:
    assert said() == ""


def test_a_topic_that_lacks_documents() -> None:
    told = said(worse=0.4, only="travel", retrieval=0.2)
    assert (
        "Topic travel may lack documents: the best that is retrieved for it went from a score of 0." in told
    )
    assert "Answers of topic travel got worse" in told
    assert "what is retrieved for it is weaker too" in told
    assert told.endswith("Look at the answers: lrp4rag review --since 2026-11-18T12:00Z")
    for other in ("leave", "topic it", "generator"):
        assert other not in told


def test_a_topic_whose_documents_are_found_as_before() -> None:
    told = said(worse=0.4, only="travel")
    assert "Answers of topic travel got worse" in told
    assert "its documents may be outdated" in told
    assert "lack documents" not in told


def test_a_generator_that_changed() -> None:
    told = said(worse=0.3, only="qwen")
    assert "Answers of generator qwen got worse" in told
    assert "its version, its prompt or its sampling" in told
    assert "llama" not in told
    assert "topic" not in told


def test_what_is_worse_everywhere_is_blamed_on_nobody() -> None:
    told = said(worse=0.2)
    assert "Nothing that is recorded tells why" in told
    assert "topic" not in told
    assert "generator" not in told


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        ({"policy": "p2"}, "The policy changed (p1 to p2): decisions before and after"),
        ({"detector": "d2"}, "The detector changed (d1 to d2): scores before and after"),
        ({"characters": 2000}, "Answers are longer"),
        ({"characters": 20}, "Answers are shorter"),
        ({"passages": 2}, "another number of passages (5.000 to 2.000)"),
        (
            {"action": "withhold", "reason": "unavailable"},
            "More answers could not be judged (0.0 % to 100.0 %)",
        ),
        (
            {"action": "withhold", "reason": "knowledge gap"},
            "More questions find no passage that is fit to answer from (0.0 % to 100.0 %)",
        ),
        (
            {"action": "disclose", "reason": "contradicted"},
            "More answers have values that a passage has otherwise (0.0 % to 100.0 %)",
        ),
        (
            {"action": "mark", "reason": "unsupported"},
            "More answers say what no passage says (0.0 % to 100.0 %)",
        ),
        ({"action": "withhold", "abstained": True}, "unlike what the detector learned from"),
        ({"retrieval_score": 0.2}, "Retrieval is weaker"),
        ({"topic": "it"}, "Other topics are asked for or used: it went from"),
    ],
    ids=str,
)
def test_what_else_changed(fixed: dict[str, Any], expected: str) -> None:
    assert expected in said(**({"worse": 0.3} | fixed))


def test_fewer_of_a_reason_are_no_cause() -> None:
    early = window(EARLY, records(450, 1, reason="contradicted"))
    told = "\n".join(advice(compare(early, window(LATE, records(400, 2, worse=0.3)))))
    assert "values that a passage has otherwise" not in told


def test_better_answers_become_the_baseline() -> None:
    worse, usual = pair(worse=0.3)[1], pair()[0]
    told = advice(compare(replace(worse, period=EARLY), replace(usual, period=LATE)))
    assert told == ["If it is meant to stay so, take this window as the next baseline."]


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    name = "\x1b[31m\u202eevil\n" + "x" * 100
    early = [one | {"topic": name if one["topic"] == "it" else one["topic"]} for one in records(450, 1)]
    late = [one | {"topic": name if one["topic"] == "it" else one["topic"]} for one in records(400, 2)]
    worse = [one | ({"probability": 1.0} if one["topic"] == name else {}) for one in late]
    told = "\n".join(advice(compare(window(EARLY, early), window(LATE, worse))))
    assert "Answers of topic ␛[31m" in told
    assert "\x1b" not in told
    assert "\u202e" not in told
