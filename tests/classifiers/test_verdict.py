import numpy as np
import pytest

from lrp4rag.classifiers.verdict import judge, merged_spans
from lrp4rag.reader.encoding import tokens_in
from tests.classifiers.samples import relevance_of

TEXT = "All is well here. Nothing of this is so."


def test_sentences_carry_relevance_and_the_passage_they_rest_on():
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


def test_suspect_spans_are_where_smoothed_relevance_is_low():
    text = " ".join(["good"] * 30 + ["bad"] * 30)
    verdict = judge(
        (given := relevance_of([1.0] * 30 + [0.0] * 30, text=text)).encoded, given, token_threshold=0.5
    )
    (span,) = verdict.spans
    assert text[span.start : span.end] == " ".join(["bad"] * 30)
    assert span.relevance < 0.5
    assert verdict.token_relevance.shape == (60,)


def test_without_a_detector_there_is_evidence_and_no_verdict():
    verdict = judge((given := relevance_of([1.0, -5.0, 1.0])).encoded, given)
    assert verdict.hallucinated is None
    assert verdict.spans == ()
    assert not any(sentence.suspect for sentence in verdict.sentences)


def test_a_probability_on_the_threshold_is_flagged():
    relevance = relevance_of([1.0])
    assert judge(relevance.encoded, relevance, probability=0.5, threshold=0.5).hallucinated is True
    assert judge(relevance.encoded, relevance, probability=0.49, threshold=0.5).hallucinated is False


def test_tokens_that_share_a_character_with_a_span_are_labelled():
    offsets = [(0, 3), (3, 6), (6, 9)]
    assert tokens_in(offsets, [(5, 7)]).tolist() == [False, True, True]
    assert tokens_in(offsets, [(3, 6)]).tolist() == [False, True, False]
    assert tokens_in(offsets, []).tolist() == [False] * 3


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
        ([1, 1, 0], ("🗼x", [(0, 1), (0, 1), (1, 2)]), [(0, 1)]),  # bytes of one character
    ],
)
def test_runs_of_suspect_tokens_become_trimmed_spans(suspect, given, spans):
    text, offsets = given
    assert merged_spans(np.array(suspect, dtype=bool), offsets, text) == spans
