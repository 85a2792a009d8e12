"""A verdict of a response's probability, its sentences and its tokens: each sentence has a status."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lrp4rag.claims.stating import Stating
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import FLAGGED, Claims, Reason, TokenMarks, Verdict, merged_spans
from lrp4rag.util.errors import RelevanceError
from tests.classifiers.samples import judge, relevance_of

TEXT = "All is well here. Nothing of this is so."


def of_vector(values: Sequence[float], text: str, *, probability: float | None = 0.7, **more) -> Verdict:
    """By a detector that judges the response only."""
    given = relevance_of(values, text=text)
    threshold = None if probability is None else 0.5
    return judge(given.encoded, given, probability=probability, threshold=threshold, **more)


def of_claims(
    text: str,
    *claims: tuple[float, Stating],
    threshold: float | None = 0.5,
    marked: Sequence[str] = (),
    **more,
) -> Verdict:
    """By a detector that judges sentences; the tokens of some words are marked."""
    encoded = relevance_of(np.ones(len(text.split(" "))), text=text).encoded
    tokens = np.array([0.9 if word in marked else 0.1 for word in text.split(" ")], dtype=np.float32)
    probabilities = np.array([probability for probability, _ in claims])
    known = [probability for probability, stating in claims if stating != "nothing"]
    return judge(
        encoded,
        probability=max(known, default=None),
        threshold=threshold,
        marks=TokenMarks(tokens, 0.5),
        claims=Claims(probabilities, tuple(stating for _, stating in claims)),
        **more,
    )


def statuses(verdict: Verdict) -> list[str]:
    return [one.status for one in verdict.sentences]


# Relevance.


def test_sentences_carry_relevance_and_the_passage_they_rest_on() -> None:
    values = [4.0, 4.0, 4.0, 4.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    by_segment = np.zeros((4, 9), dtype=np.float32)
    by_segment[3, :4] = 2.0  # passage 2 holds up the first sentence
    by_segment[2:, 4:] = -1.0  # no passage holds up the second
    relevance = relevance_of(values, text=TEXT, by_segment=by_segment)
    verdict = judge(relevance.encoded, relevance, probability=0.7, threshold=0.5, token_threshold=0.5)
    first, second = verdict.sentences
    assert (TEXT[first.start : first.end], first.relevance, first.passage) == ("All is well here.", 4.0, 1)
    assert first.by_passage == (0.0, 2.0)
    assert (second.relevance, second.passage) == (-1.0, None)
    assert verdict.hallucinated is True


def test_suspect_spans_are_where_smoothed_relevance_is_low() -> None:
    text = " ".join(["good"] * 30 + ["bad"] * 30)
    verdict = of_vector([1.0] * 30 + [0.0] * 30, text, token_threshold=0.5)
    (span,) = verdict.spans
    assert text[span.start : span.end] == " ".join(["bad"] * 30)
    assert span.relevance < 0.5
    assert verdict.token_relevance.shape == (60,)


def test_without_a_detector_there_is_evidence_and_no_verdict() -> None:
    verdict = of_vector([1.0, -5.0, 1.0], "w0 w1 w2", probability=None, token_threshold=0.5)
    assert verdict.hallucinated is None
    assert not verdict.states_nothing
    assert verdict.spans == ()
    assert statuses(verdict) == ["not judged"]
    assert verdict.token_relevance is not None


# A detector that judges the response only.


@pytest.mark.parametrize(
    ("values", "suspect"),
    [
        ([9.0] * 40 + [0.0] * 40, [1]),
        ([0.0] * 40 + [9.0] * 40, [0]),
        ([0.0] * 80, [0, 1]),
        ([9.0] * 40 + [8.0] * 40, [1]),  # none is low: the lowest
    ],
)
def test_suspect_are_the_sentences_where_relevance_is_low(values: list[float], suspect: list[int]) -> None:
    text = " ".join(["good"] * 39 + ["well.", "Bad"] + ["bad"] * 38 + ["bad."])
    verdict = of_vector(values, text, token_threshold=5.0)
    assert [k for k, one in enumerate(verdict.sentences) if one.status == "unsupported"] == suspect
    assert all(one.status in (*FLAGGED, "supported") for one in verdict.sentences)
    assert {one.probability for one in verdict.sentences} == {None}
    for span in verdict.spans:
        assert any(verdict.sentences[k].start <= span.start < verdict.sentences[k].end for k in suspect)
    # Of a response that is not flagged, no sentence is.
    calm = of_vector(values, text, probability=0.4, token_threshold=5.0)
    assert statuses(calm) == ["supported"] * 2
    assert (calm.spans, calm.hallucinated) == ((), False)


def test_a_flagged_response_has_a_suspect_sentence_without_a_threshold_of_relevance_too() -> None:
    verdict = of_vector([4.0] * 4 + [-1.0] * 5, TEXT)
    assert statuses(verdict) == ["supported", "unsupported"]
    assert [one.text for one in verdict.spans] == ["Nothing of this is so."]


def test_what_states_nothing_is_not_suspect_where_the_response_only_is_judged() -> None:
    text = "Hello there! All is well here."
    verdict = of_vector([-9.0, -9.0, 4.0, 4.0, 4.0, 4.0], text)
    assert statuses(verdict) == ["states nothing", "unsupported"]
    assert of_vector([-9.0, -9.0], "Hello there!").states_nothing


# A detector that judges sentences.


@pytest.mark.parametrize(
    ("probability", "stating", "status"),
    [
        (0.5, "a claim", "unsupported"),
        (0.49, "a claim", "supported"),
        (0.5, "an aside", "unsupported"),  # it holds a claim after all
        (0.49, "an aside", "states nothing"),
        (0.99, "nothing", "states nothing"),
        (0.01, "nothing", "states nothing"),
    ],
)
def test_a_sentence_is_suspect_from_the_threshold_on(
    probability: float, stating: Stating, status: str
) -> None:
    verdict = of_claims(TEXT, (0.1, "a claim"), (probability, stating))
    assert statuses(verdict) == ["supported", status]
    assert verdict.sentences[1].probability == (None if stating == "nothing" else probability)
    assert verdict.hallucinated == (status == "unsupported")
    assert verdict.sentences[1].suspect == (status == "unsupported")


def test_a_response_is_called_hallucinated_where_a_sentence_is_suspect_and_nowhere_else() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        claims = [(float(draw.random()), str(draw.choice(["a claim", "an aside", "nothing"]))) for _ in "ab"]
        threshold = float(draw.random())
        verdict = of_claims(TEXT, *claims, threshold=threshold)
        suspect = any(one.suspect for one in verdict.sentences)
        assert bool(verdict.hallucinated) == suspect == bool(verdict.spans)
        assert (verdict.hallucinated is None) == verdict.states_nothing
        assert verdict.states_nothing == (statuses(verdict) == ["states nothing"] * 2)


def test_spans_are_in_suspect_sentences_only() -> None:
    verdict = of_claims(TEXT, (0.2, "a claim"), (0.8, "a claim"), marked=("well", "this", "so."))
    assert [one.text for one in verdict.spans] == ["this", "so."]
    assert [one.probability for one in verdict.spans] == pytest.approx([0.9, 0.9])
    assert of_claims(TEXT, (0.2, "a claim"), (0.3, "a claim"), marked=("well", "so.")).spans == ()


def test_a_suspect_sentence_without_a_marked_token_is_marked_whole() -> None:
    verdict = of_claims(TEXT, (0.8, "a claim"), (0.2, "a claim"), marked=("so.",))
    assert [one.text for one in verdict.spans] == ["All is well here."]


def test_without_a_threshold_no_sentence_is_judged() -> None:
    verdict = of_claims(TEXT, (0.9, "a claim"), (0.9, "nothing"), threshold=None)
    assert statuses(verdict) == ["not judged"] * 2
    assert (verdict.hallucinated, verdict.states_nothing, verdict.spans) == (None, False, ())


# What is unlike the training data.

ODD = Unlike("response tokens", "the response's tokens: 9", decides=True)
LONG = Unlike("passages", "the number of passages: 9", decides=False)


def test_a_sentence_that_is_unlike_the_training_data_is_not_judged() -> None:
    claims: tuple[tuple[float, Stating], ...] = ((0.8, "a claim"), (0.9, "a claim"))
    verdict = of_claims(TEXT, *claims, unlike=[(), (LONG, ODD)])
    assert statuses(verdict) == ["unsupported", "not judged"]
    assert verdict.unlike == (ODD, LONG)  # that which decides first
    assert verdict.abstained
    assert verdict.hallucinated is None
    assert [one.text for one in verdict.spans] == ["All is well here."]


def test_what_does_not_decide_is_told_once_and_changes_nothing() -> None:
    claims: tuple[tuple[float, Stating], ...] = ((0.8, "a claim"), (0.2, "a claim"))
    verdict = of_claims(TEXT, *claims, unlike=[(LONG,), (LONG,)])
    assert statuses(verdict) == ["unsupported", "supported"]
    assert (verdict.unlike, verdict.abstained, verdict.hallucinated) == ((LONG,), False, True)


def test_a_greeting_that_is_unlike_the_training_data_is_no_reason_to_abstain() -> None:
    """It is short, and states nothing."""
    verdict = of_claims("Hello there! All is well.", (0.3, "nothing"), (0.2, "a claim"), unlike=[(ODD,), ()])
    assert statuses(verdict) == ["states nothing", "supported"]
    assert (verdict.unlike, verdict.abstained, verdict.hallucinated) == ((), False, False)


# Numbers.


def test_a_probability_on_the_threshold_is_flagged() -> None:
    assert of_vector([1.0], "Paris", probability=0.5).hallucinated is True
    assert of_vector([1.0], "Paris", probability=0.49).hallucinated is False


@pytest.mark.parametrize("probability", [float("nan"), -0.1, 1.1])
def test_what_is_no_probability_is_no_verdict(probability: float) -> None:
    with pytest.raises(RelevanceError, match="no verdict"):
        of_vector([1.0], "Paris", probability=probability)


@pytest.mark.parametrize(
    ("value", "usual"), [(0.2, False), (0.25, True), (0.5, True), (0.75, True), (0.8, False), (None, False)]
)
def test_what_lies_in_the_middle_half_of_faithful_sentences_is_usual(
    value: float | None, usual: bool
) -> None:
    faithful = () if value is None else (0.05, 0.25, 0.5, 0.75, 0.95)
    assert Reason("entropy", 0.3, 0, value, faithful).usual == usual


WORDS = "one two  three four", [(0, 3), (3, 7), (7, 14), (14, 19)]
APART = "one two three", [(0, 3), (3, 7), (7, 8), (8, 13)]
DATE = "In 1878.", [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]


@pytest.mark.parametrize(
    ("suspect", "given", "spans"),
    [
        ([1, 0, 1, 1], WORDS, [(0, 3), (9, 19)]),
        ([0, 1, 0, 0], WORDS, [(4, 7)]),
        ([1], ("  ", [(0, 2)]), []),  # white space only leaves nothing,
        ([1, 0, 1, 1], APART, [(0, 3), (8, 13)]),  # and joins no spans that are apart
        ([0, 0, 0, 1, 0, 0, 0], DATE, [(3, 7)]),  # a span never cuts a word or a number
        ([0, 0, 0, 1, 0, 1, 1], DATE, [(3, 8)]),
        ([0, 1], ("Ha\u0302vre", [(0, 3), (3, 6)]), [(0, 6)]),  # nor an accent from its letter
        ([1, 0], ("Zoe\u0308", [(0, 3), (3, 4)]), [(0, 4)]),
        ([0, 0, 1], ("31,000 m", [(0, 2), (2, 3), (3, 6)]), [(0, 6)]),
        ([1, 1, 0], ("🗼x", [(0, 1), (0, 1), (1, 2)]), [(0, 1)]),  # bytes of one character
    ],
)
def test_runs_of_suspect_tokens_become_trimmed_spans(suspect, given, spans):
    text, offsets = given
    assert merged_spans(np.array(suspect, dtype=bool), offsets, text) == spans
