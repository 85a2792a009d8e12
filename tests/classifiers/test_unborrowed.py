"""Sentences that rest on a passage about something else are judged without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lrp4rag import Detector
from lrp4rag.classifiers import assessor
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.reader import Reader
from tests.claims.test_borrowed import FIXED, FLEX
from tests.cli.plain_detector import plain_detector

QUESTION = "I'm on Hearth Fixed 24. What does leaving early cost?"
RESPONSE = (
    "You have Hearth Fixed 24. There is no minimum term, so you can leave at any time. "
    "Paper bills cost £2.50 per quarter."
)
SECOND = RESPONSE.index("There"), RESPONSE.index(" Paper")


@pytest.fixture
def detector(tiny_reader: Reader) -> Detector:
    model = plain_detector(tiny_reader)
    strict = replace(model, card=model.card.model_copy(update={"threshold": 1 - 1e-9}))
    return Detector(strict, tiny_reader, prompt_bytes=2**24)


def test_it_is_judged_as_if_the_passage_were_not_there(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrp4rag.classifiers.unborrowed.BORROWING", 0.0)
    with detector:
        verdict = detector.judge(QUESTION, [FIXED, FLEX], RESPONSE)
        without = detector.judge(QUESTION, [FIXED], RESPONSE)
        monkeypatch.setattr(assessor.Assessor, "_unborrowed", lambda *given: given[-1])
        plain = detector.judge(QUESTION, [FIXED, FLEX], RESPONSE)
    probabilities = [[one.probability for one in each.sentences] for each in (verdict, without, plain)]
    for number, (own, other, before) in enumerate(zip(*probabilities, strict=True)):
        expected = max(other, before) if number == 1 else before
        assert own == pytest.approx(expected, abs=1e-6)


def flagged_without(self: Any, record: Any) -> Any:
    """An assessment by which all is wrong where the second tariff's passage is not there."""
    found = assess(self, record)
    missing = FLEX not in record.context.passages
    claims = replace(found.claims, probabilities=found.claims.probabilities * 0 + (0.9 if missing else 0.1))
    return replace(found, claims=claims, probability=0.9 if missing else 0.1)


assess = TokenModel.assess


def judged(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Detector:
    monkeypatch.setattr(TokenModel, "assess", flagged_without)
    return Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24)


def test_the_verdict_says_of_what_the_passage_says_it(
    tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = judged(tiny_reader, monkeypatch).judge(QUESTION, [FIXED, FLEX], RESPONSE)
    assert verdict.hallucinated
    assert [one.status for one in verdict.sentences] == ["supported", "unsupported", "supported"]
    (one,) = verdict.differences
    assert (one.kind, one.passage, one.subject) == ("said of another", 1, "Hearth Flex")
    assert SECOND[0] <= one.start < one.end <= SECOND[1]
    assert FLEX[one.passage_start : one.passage_end] == one.words
    assert "no minimum term" in one.words


def test_what_is_said_to_be_missing_borrows_nothing(
    tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "It says there is no minimum term, so you can leave at any time, but not what that costs."
    found = judged(tiny_reader, monkeypatch)
    assert not found.judge(QUESTION, [FIXED, FLEX], refusal).differences
    told = found.judge(QUESTION, [FIXED, FLEX], refusal.partition(", but")[0] + ".")
    assert [one.kind for one in told.differences] == ["said of another"]


def test_a_stream_says_the_same(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = judged(tiny_reader, monkeypatch)
    with detector:
        whole = detector.judge(QUESTION, [FIXED, FLEX], RESPONSE)
        reading = detector.reading(QUESTION, [FIXED, FLEX])
        pieces = [
            *(piece for word in RESPONSE.split(" ") for piece in reading.feed(word + " ")),
            *reading.end(),
        ]
    assert [one.probability for one in pieces] == pytest.approx([one.probability for one in whole.sentences])
