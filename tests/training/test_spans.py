"""Agreement of marked characters and sentences with the annotators'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.example import Label
from lrp4rag.training.spans import Overlap, annotated_sentences, characters, overlap_metrics, sentences
from tests.training.labelled import examples


@pytest.mark.parametrize(
    ("marked", "annotated", "expected"),
    [
        ([(0, 4)], [(2, 6)], Overlap(4, 4, 2)),
        ([(0, 4), (2, 6)], [(0, 6)], Overlap(6, 6, 6)),  # what two spans share counts once
        ([], [(0, 3)], Overlap(0, 3, 0)),
        ([(5, 99)], [], Overlap(5, 0, 0)),  # of ten characters
    ],
)
def test_characters(marked: list, annotated: list, expected: Overlap) -> None:
    assert characters(marked, annotated, 10) == expected


def test_sentences_that_touch_a_span() -> None:
    text = "One is true. Two is not. Three is."
    example = replace(examples(1)[0], response=text, labels=(Label(17, 23),))
    annotated = annotated_sentences(example)
    np.testing.assert_array_equal(annotated, [False, True, False])
    assert sentences(np.array([True, True, False]), annotated) == Overlap(2, 1, 1)


def test_counts_are_summed_before_they_are_divided() -> None:
    found = overlap_metrics([Overlap(10, 5, 5), Overlap(0, 15, 0)], np.array(["a", "b"]), resamples=50)
    assert found["precision"].value == pytest.approx(0.5)
    assert found["recall"].value == pytest.approx(0.25)
    assert found["f1"].value == pytest.approx(2 * 5 / 30)
    assert found["recall"].low == 0
    assert found["recall"].high == 1


def test_intervals_are_those_of_resampled_sources() -> None:
    draw = np.random.default_rng(0)
    overlaps = [Overlap(10, 10, int(both)) for both in draw.integers(0, 11, 60)]
    groups = np.repeat(np.arange(30), 2).astype(str)
    found = overlap_metrics(overlaps, groups, resamples=400)["f1"]
    shares = np.array([one.both for one in overlaps]).reshape(30, 2).sum(1) / 20
    spread = shares.std() / np.sqrt(30)
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.2)


def test_nothing_marked_has_no_precision() -> None:
    found = overlap_metrics([Overlap(0, 4, 0)] * 2, np.array(["a", "b"]), resamples=20)
    assert found["precision"].value is None
    assert found["recall"].value == 0
