"""A sentence that passages support less than its counter-claim is contradicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from scipy.special import expit, logit

from lrp4rag import Detector
from lrp4rag.claims.counterclaims import CounterClaim
from lrp4rag.claims.grounds import Counterpart
from lrp4rag.classifiers import assessor, wording
from lrp4rag.classifiers.countered import MARGIN, with_counter_claim
from lrp4rag.classifiers.verdict import Assessment, Claims, Contradiction
from lrp4rag.features.growing import Growing
from lrp4rag.reader import Encoded, Reader
from lrp4rag.reader.encoding import WindowError
from lrp4rag.reader.reading import PromptReading
from lrp4rag.streaming import verdict_of
from tests.cli.plain_detector import plain_detector

PASSAGES = ("Dogs are not allowed aboard, bicycles are.", "Bags travel free of charge.")
RESPONSE = "Bags travel free. Dogs are allowed on the train. The train leaves at noon."
THRESHOLD = 0.7
SENTENCE = 18, 50
"""The second one's characters."""
ALLOWED = RESPONSE.index("allowed")
COUNTER = CounterClaim(
    "Dogs are not allowed on the train.", Counterpart(ALLOWED, ALLOWED + 7, 0, 13, 20, 0.5)
)


def assessment(*probabilities: float, known: tuple[Contradiction, ...] = ()) -> Assessment:
    claims = Claims(np.array(probabilities), ("a claim",) * len(probabilities))
    return Assessment(max(probabilities), claims=claims, contradictions=known)


def countered(found: Assessment, other: float | None) -> Assessment:
    own = 0.0 if found.claims is None else float(found.claims.probabilities[1])
    return with_counter_claim(found, 1, own, COUNTER, other, THRESHOLD, RESPONSE, SENTENCE, PASSAGES)


@pytest.mark.parametrize("above", [0.0, 0.5, 3.0])
def test_from_the_margin_on_it_is_flagged(above: float) -> None:
    found = countered(assessment(0.2, 0.4, 0.3), float(expit(logit(0.4) - MARGIN - above - 1e-9)))
    assert found.claims is not None
    np.testing.assert_allclose(found.claims.probabilities, [0.2, expit(logit(THRESHOLD) + above), 0.3])
    assert found.probability == found.claims.probabilities[1]
    (one,) = found.contradictions
    assert (one.text, one.instead) == ("Dogs are allowed on the train", "Dogs are not allowed aboard")
    assert RESPONSE[one.start : one.end] == one.text
    assert PASSAGES[0][one.passage_start : one.passage_end] == one.instead


def test_what_the_passages_say_in_the_same_words_needs_no_margin() -> None:
    said = replace(COUNTER, is_said=True)
    found = with_counter_claim(
        assessment(0.2, 0.4, 0.3), 1, 0.4, said, None, THRESHOLD, RESPONSE, SENTENCE, PASSAGES
    )
    assert found.claims is not None
    assert found.claims.probabilities[1] > THRESHOLD
    assert len(found.contradictions) == 1


def test_of_what_was_added_the_phrase_is_named() -> None:
    response = "Bags travel free. Dogs are allowed, whatever their size. The train leaves at noon."
    start, end = response.index(", whatever"), response.index(". The train")
    counter = CounterClaim("Dogs are allowed.", Counterpart(start, end, 0, 0, 42, 0.5), kind="addition")
    found = with_counter_claim(
        assessment(0.2, 0.4, 0.3), 1, 0.4, counter, 0.05, THRESHOLD, response, SENTENCE, PASSAGES
    )
    (one,) = found.contradictions
    assert (one.text, one.instead) == ("whatever their size", PASSAGES[0])
    assert found.probability is not None
    assert found.probability > THRESHOLD


def test_of_what_was_exchanged_the_words_are_named() -> None:
    response = "Bags travel free. Cats are not allowed aboard. The train leaves at noon."
    cats = response.index("Cats")
    counter = CounterClaim(
        "Dogs are not allowed aboard.", Counterpart(cats, cats + 4, 0, 0, 4, 0.9), kind="exchange"
    )
    found = with_counter_claim(
        assessment(0.2, 0.4, 0.3), 1, 0.4, counter, 0.05, THRESHOLD, response, SENTENCE, PASSAGES
    )
    (one,) = found.contradictions
    assert (one.text, one.instead, one.passage) == ("Cats", "Dogs", 0)
    assert (
        with_counter_claim(
            assessment(0.2, 0.4), 1, 0.4, counter, 0.3, THRESHOLD, response, SENTENCE, PASSAGES
        ).contradictions
        == ()
    )


def test_values_that_the_reader_prefers_are_no_reason() -> None:
    preferred = Contradiction(ALLOWED, ALLOWED + 7, "allowed", "not allowed", 0, 9, 20, margin=-2.6)
    others = (replace(preferred, start=19, end=22, margin=0.3), replace(preferred, start=60, end=65))
    found = countered(assessment(0.2, 0.4, 0.3, known=(preferred, *others)), 0.05)
    assert [one.margin for one in found.contradictions] == [None, 0.3, -2.6]
    assert preferred not in found.contradictions
    kept = countered(assessment(0.2, 0.4, 0.3, known=(preferred, *others)), 0.39)
    assert kept.contradictions == (preferred, *others)


def test_what_is_more_suspect_and_what_was_named_stays() -> None:
    named = Contradiction(0, 4, "Bags", "bag", 1, 0, 4, 1.0)
    found = countered(assessment(0.2, 0.6, 0.95, known=(named,)), 0.3)
    assert found.probability == 0.95
    assert found.contradictions[0] == named
    assert len(found.contradictions) == 2
    assert found.contradictions == countered(found, 0.01).contradictions, "a clause is named once"


def test_probabilities_of_nothing_and_all_are_no_error() -> None:
    assert countered(assessment(0.2, 0.0, 0.3), 0.0).probability == 0.3
    assert countered(assessment(0.2, 1.0, 0.3), 1.0).probability == 1.0
    assert countered(assessment(0.2, 0.4, 0.3), 0.0).probability == 1.0


@pytest.mark.parametrize("other", [None, 0.4, 0.9, float(expit(logit(0.4) - MARGIN + 1e-6))])
def test_below_the_margin_nothing_changes(other: float | None) -> None:
    before = assessment(0.2, 0.4, 0.3)
    assert countered(before, other) is before


def test_a_model_that_judges_no_sentences_has_none() -> None:
    before = Assessment(0.4)
    assert countered(before, 0.01) is before


@pytest.fixture
def detector(tiny_reader: Reader) -> Detector:
    model = plain_detector(tiny_reader)
    strict = replace(model, card=model.card.model_copy(update={"threshold": 1 - 1e-9}))
    return Detector(strict, tiny_reader, prompt_bytes=2**24)


def test_a_counter_claim_is_judged_as_if_it_were_written(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of it the reader reads what differs, and nothing of what follows."""
    found: list[float | None] = []
    judged = assessor.Assessor._probability

    def kept(self: assessor.Assessor, *given: Any) -> float | None:
        found.append(judged(self, *given))
        return found[-1]

    monkeypatch.setattr(assessor.Assessor, "_probability", kept)
    read: list[int] = []
    go_on = PromptReading._go_on

    def counted(self: PromptReading, ids: Any, /, **options: Any) -> Any:
        read.append(len(ids))
        return go_on(self, ids, **options)

    monkeypatch.setattr(PromptReading, "_go_on", counted)
    with detector:
        detector.judge("Are dogs allowed?", PASSAGES, RESPONSE)
        spent = sum(read)
        assert len(found) == 1
        start = RESPONSE.index("Dogs")
        cut = RESPONSE[:start] + COUNTER.words
        alone = detector.judge("Are dogs allowed?", PASSAGES, cut)
    assert found[0] == pytest.approx(alone.sentences[-1].probability, abs=1e-5)
    with Detector(detector.model, detector.reader) as other:
        read.clear()
        monkeypatch.setattr(assessor.Assessor, "_countered", lambda *given: given[-1])
        other.judge("Are dogs allowed?", PASSAGES, RESPONSE)
    assert spent - sum(read) < 2 * len(COUNTER.words), "its own tokens, and its values' alternatives"


def test_a_stream_asks_for_it_once(detector: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def better(*given: Any) -> float:
        asked.append(given[-1].words)
        return 1e-9

    monkeypatch.setattr(assessor.Assessor, "_probability", better)
    with detector:
        whole = detector.judge("Are dogs allowed?", PASSAGES, RESPONSE)
        assert asked == [COUNTER.words]
        reading = detector.reading("Are dogs allowed?", PASSAGES)
        pieces = [*reading.feed(RESPONSE), *reading.end()]
    assert asked == [COUNTER.words] * 2
    streamed = verdict_of(pieces, whole.threshold)
    assert streamed is not None
    assert [one.status for one in streamed.sentences] == [one.status for one in whole.sentences]
    assert whole.sentences[1].status == "contradicted"
    assert whole.hallucinated
    assert "Dogs are not allowed aboard" in [one.instead for one in whole.contradictions]


def test_one_that_does_not_fit_into_the_window_is_left_out(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = wording.View.encode

    def narrow(self: wording.View, response: str) -> Encoded:
        if COUNTER.words in response:
            raise WindowError("one token too many")
        return encode(self, response)

    with detector:
        before = detector.judge("Are dogs allowed?", PASSAGES, RESPONSE)
        monkeypatch.setattr(wording.View, "encode", narrow)
        after = detector.judge("Are dogs allowed?", PASSAGES, RESPONSE)
    assert after.probability == pytest.approx(before.probability, abs=1e-5)


def test_a_copy_of_what_grows_goes_on_by_itself(tiny_reader: Reader) -> None:
    first, made = Growing(), list[int]()
    encoded = object()
    first._encoded = encoded  # type: ignore[assignment]

    def more(known: Any) -> list[int]:
        made.append(len(known))
        return [1]

    assert first.of_each(encoded, "name", more) == [1]  # type: ignore[arg-type]
    other = first.copied()
    assert other.of_each(encoded, "name", lambda known: [2]) == [1, 2]  # type: ignore[arg-type]
    assert first._results == {"name": [1]}


def test_of_several_counter_claims_each_is_judged_beside_the_sentence_itself(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one makes it suspect; the second would seem better supported beside that."""
    second = replace(COUNTER, words="Dogs are rarely allowed on the train.")
    monkeypatch.setattr(assessor, "counter_claims", lambda *_: [COUNTER, second])
    given: list[tuple[float, float | None]] = []
    judged = with_counter_claim

    def kept(
        found: Assessment, number: int, own: float, counter: CounterClaim, other: float | None, *rest: Any
    ) -> Assessment:
        given.append((own, other))
        return judged(found, number, own, counter, other, *rest)

    monkeypatch.setattr(assessor, "with_counter_claim", kept)
    monkeypatch.setattr(assessor.Assessor, "_probability", lambda *_: 1e-9)
    with detector:
        detector.judge("Are dogs allowed?", PASSAGES, "Dogs are allowed on the train.")
    (first, _), (again, _) = given
    assert first == again < detector.model.card.threshold


@pytest.mark.parametrize(("kind", "more"), [("unit", -0.5), ("value", 0.2)])
def test_a_value_is_named_with_the_passages(kind: Literal["unit", "value"], more: float) -> None:
    response = "Bags travel free. Two bicycles cost 5 weeks. The train leaves at noon."
    start = response.index("5 weeks")
    counter = CounterClaim("", Counterpart(start, start + 7, 1, 0, 4, 0.5), kind=kind)
    for by, flagged in ((1e-9, True), (-1e-9, False)):
        other = float(expit(logit(0.4) - MARGIN - more - by))
        found = with_counter_claim(
            assessment(0.2, 0.4, 0.3), 1, 0.4, counter, other, THRESHOLD, response, (18, 44), PASSAGES
        )
        assert [(each.text, each.instead) for each in found.contradictions] == [("5 weeks", "Bags")] * flagged
