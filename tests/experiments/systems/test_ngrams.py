"""Surprise by n-grams, counted by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from lrp4rag.experiments.systems.ngrams import NGrams
from lrp4rag.experiments.systems.samples import Samples
from lrp4rag.experiments.systems.selfcheck import surprising
from tests.tiny import bridge_example

TWO = bridge_example(response="It is old. It is new.")
SAMPLES = Samples(("It is old.", "It is very old. Yes."))


def test_ngrams_count_what_comes_before_a_word() -> None:
    sentences = [["a", "b", "a"], ["a", "c"]]
    single = NGrams.of(sentences, 1)
    assert single.surprise(["a", "b"]) == pytest.approx([-log(3 / 5), -log(1 / 5)])
    double = NGrams.of(sentences, 2)
    # "a" comes first in both sentences; it is followed by b and by c.
    assert double.surprise(["a", "b", "a"]) == pytest.approx([0, -log(1 / 2), 0])
    assert double.surprise([]).tolist() == []


def test_surprise_by_ngrams_of_samples_and_response() -> None:
    row = surprising(TWO, SAMPLES)
    # it 4, is 4, old 3, very 1, yes 1, new 1: 14 words. After "is": old 2, very 1, new 1.
    it, old, new = log(14 / 4), log(14 / 3), log(14)
    bigrams = [(log(5 / 4), 0, log(4 / 2)), (log(5 / 4), 0, log(4))]  # five sentences, four begin with "it"
    expected = [
        ((it + it + old) / 3 + (it + it + new) / 3) / 2,
        (old + new) / 2,
        np.mean(bigrams),
        (log(2) + log(4)) / 2,
    ]
    assert row.numbers == pytest.approx(expected)
    assert row.suspicion.scores == pytest.approx([old, new])
    assert row.suspicion.spans.tolist() == [[0, 10], [11, 21]]


def test_a_response_that_no_sample_resembles_has_finite_surprise_and_one_without_words_none() -> None:
    assert np.isfinite(surprising(TWO, Samples(("Something else.",))).numbers).all()
    row = surprising(bridge_example(response="..."), SAMPLES)
    assert row.numbers.tolist() == [0, 0, 0, 0]
    assert np.isnan(surprising(TWO, Samples(())).numbers).tolist() == [True] * 4
