"""Sentences that say that something is missing are judged by whether the passages have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scipy.special import expit, logit

from lrp4rag import Detector
from lrp4rag.classifiers import assessor
from lrp4rag.classifiers.refused import SHIFTS
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector

QUESTION = "What does the course cost, and is there parking?"
PASSAGES = ["The course starts on 16 September.", "The course fee is 90 euros for all ten evenings."]
FALSE = "The course fee is not mentioned in the documents."
RIGHT = "The documents do not mention parking."
RESPONSE = f"It starts on 16 September. {FALSE} {RIGHT}"
assess = TokenModel.assess


@pytest.fixture(params=(0.4, 0.6))
def before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The probability of each sentence without what is known of refusals."""
    value: float = request.param

    def all_alike(self: Any, record: Any) -> Any:
        found = assess(self, record)
        claims = replace(found.claims, probabilities=found.claims.probabilities * 0 + value)
        return replace(found, claims=claims, probability=value)

    monkeypatch.setattr(TokenModel, "assess", all_alike)
    return value


@pytest.fixture
def detector(tiny_reader: Reader) -> Detector:
    return Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24)


def test_a_false_one_is_more_suspect_and_a_right_one_less(detector: Detector, before: float) -> None:
    verdict = detector.judge(QUESTION, PASSAGES, RESPONSE)
    expected = [before, *(expit(logit(before) + SHIFTS[each]) for each in ("there", "absent"))]
    assert [one.probability for one in verdict.sentences] == pytest.approx(expected)
    assert verdict.probability == pytest.approx(expected[1])
    assert verdict.sentences[1].status == "unsupported"
    assert verdict.sentences[2].status == "supported"


def test_the_verdict_says_where_it_is(detector: Detector, before: float) -> None:
    verdict = detector.judge(QUESTION, PASSAGES, RESPONSE)
    (one,) = verdict.differences
    assert (one.kind, one.passage, one.words) == ("answered", 1, PASSAGES[1])
    assert RESPONSE[one.start : one.end] == FALSE
    assert any("says that this is missing" in reason.words for reason in verdict.reasons)


def test_a_stream_says_the_same(detector: Detector, before: float) -> None:
    with detector:
        whole = detector.judge(QUESTION, PASSAGES, RESPONSE)
        reading = detector.reading(QUESTION, PASSAGES)
        pieces = [
            *(piece for word in RESPONSE.split(" ") for piece in reading.feed(word + " ")),
            *reading.end(),
        ]
    assert [one.probability for one in pieces] == pytest.approx([one.probability for one in whole.sentences])


def test_a_right_one_is_not_compared_with_its_counter_claim(
    detector: Detector, before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "I can find that" would be no claim that passages could support."""
    countered = list[str]()

    def noted(response: str, passages: Any, sentence: Any) -> tuple[()]:
        countered.append(response[sentence.start :])
        return ()

    monkeypatch.setattr(assessor, "counter_claims", noted)
    right = "I can't find that in the documents."
    detector.judge("May I park a bus?", PASSAGES, f"{right} It starts on 16 September.")
    assert countered == ["It starts on 16 September."][: before < 0.5]  # what is suspect is not, either
