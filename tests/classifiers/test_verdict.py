import numpy as np

from lrp4rag.classifiers.verdict import judge
from tests.classifiers.samples import relevance_of

TEXT = "All is well here. Nothing of this is so."


def test_sentences_carry_relevance_and_the_passage_they_rest_on():
    values = [4.0, 4.0, 4.0, 4.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    by_segment = np.zeros((4, 9), dtype=np.float32)
    by_segment[3, :4] = 2.0  # passage 2 holds up the first sentence
    by_segment[2:, 4:] = -1.0  # no passage holds up the second
    relevance = relevance_of(values, text=TEXT, by_segment=by_segment)
    verdict = judge(relevance, probability=0.7, threshold=0.5, token_threshold=0.5)
    first, second = verdict.sentences
    assert (TEXT[first.start : first.end], first.relevance, first.passage) == ("All is well here.", 4.0, 1)
    assert first.by_passage == (0.0, 2.0)
    assert (second.relevance, second.passage) == (-1.0, None)
    assert verdict.hallucinated is True


def test_suspect_spans_are_where_smoothed_relevance_is_low():
    text = " ".join(["good"] * 30 + ["bad"] * 30)
    verdict = judge(relevance_of([1.0] * 30 + [0.0] * 30, text=text), token_threshold=0.5)
    (span,) = verdict.spans
    assert text[span.start : span.end] == " ".join(["bad"] * 30)
    assert span.relevance < 0.5
    assert verdict.token_relevance.shape == (60,)


def test_without_a_detector_there_is_evidence_and_no_verdict():
    verdict = judge(relevance_of([1.0, -5.0, 1.0]))
    assert verdict.hallucinated is None
    assert verdict.spans == ()
    assert not any(sentence.suspect for sentence in verdict.sentences)


def test_a_probability_on_the_threshold_is_flagged():
    relevance = relevance_of([1.0])
    assert judge(relevance, probability=0.5, threshold=0.5).hallucinated is True
    assert judge(relevance, probability=0.49, threshold=0.5).hallucinated is False
