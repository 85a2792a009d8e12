import numpy as np

from lrp4rag.classifiers.localise import merged_spans, token_threshold
from lrp4rag.features.windows import smoothed
from lrp4rag.reader.encoding import tokens_in
from tests.classifiers.samples import labelled_rows, relevance_of


def test_smoothing_is_a_centred_mean_that_shortens_at_the_ends():
    assert smoothed(np.array([1.0, 2.0, 6.0, 3.0]), window=3).tolist() == [1.5, 3.0, 11 / 3, 4.5]
    assert np.allclose(smoothed(np.full(40, 0.5, dtype=np.float32)), 0.5)


def test_tokens_that_share_a_character_with_a_span_are_labelled():
    offsets = [(0, 3), (3, 6), (6, 9)]
    assert tokens_in(offsets, [(5, 7)]).tolist() == [False, True, True]
    assert tokens_in(offsets, [(3, 6)]).tolist() == [False, True, False]
    assert tokens_in(offsets, []).tolist() == [False] * 3


def test_runs_of_suspect_tokens_become_trimmed_spans():
    text = "one two  three four"
    offsets = [(0, 3), (3, 7), (7, 14), (14, 19)]
    assert merged_spans(np.array([True, False, True, True]), offsets, text) == [(0, 3), (9, 19)]
    assert merged_spans(np.array([False, True, False, False]), offsets, text) == [(4, 7)]
    # A token of white space only leaves nothing.
    assert merged_spans(np.array([True]), [(0, 2)], "  ") == []


def test_white_space_joins_no_spans_that_are_apart():
    text, offsets = "one two three", [(0, 3), (3, 7), (7, 8), (8, 13)]
    assert merged_spans(np.array([True, False, True, True]), offsets, text) == [(0, 3), (8, 13)]


def test_a_span_never_cuts_a_word_or_a_number():
    text, offsets = "In 1878.", [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]
    flags = np.array([False, False, False, True, False, False, False])
    assert merged_spans(flags, offsets, text) == [(3, 7)]
    flags = np.array([False, False, False, True, False, True, True])
    assert merged_spans(flags, offsets, text) == [(3, 8)]


def test_bytes_of_one_character_are_one_span():
    assert merged_spans(np.array([True, True, False]), [(0, 1), (0, 1), (1, 2)], "🗼x") == [(0, 1)]


def test_threshold_maximises_f1_over_all_tokens():
    rows = [relevance_of([0.0, 1.0, 2.0, 3.0])]
    flags = [np.array([True, True, False, False])]
    threshold = token_threshold(rows, flags, window=1)
    assert ((smoothed(rows[0].total, 1) < threshold) == flags[0]).all()

    rows, _, flags = labelled_rows()
    best = token_threshold(rows, flags)
    scores, truth = np.concatenate([smoothed(row.total) for row in rows]), np.concatenate(flags)

    def f1(threshold):
        called = scores < threshold
        return 2 * (called & truth).sum() / (called.sum() + truth.sum())

    assert f1(best) >= max(f1(x) for x in np.linspace(scores.min(), scores.max(), 200)) - 1e-12
