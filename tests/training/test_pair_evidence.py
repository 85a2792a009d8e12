"""How well minimal pairs are told apart, against answers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.classifiers.card import PairEvidence
from lrp4rag.training.pair_evidence import EVERY, Twin, pair_evidence

MADE = "made"
RESAMPLES = 200


def evidence(
    twins: list[Twin],
    probabilities: list[float],
    flagged: list[int] | None = None,
    groups: list[str] | None = None,
) -> list[PairEvidence]:
    """Each row has a source of its own, unless given."""
    count = len(probabilities)
    return pair_evidence(
        twins,
        np.array(probabilities),
        np.array(flagged or [0] * count, dtype=bool),
        np.array(groups or [f"s{k}" for k in range(count)]),
        resamples=RESAMPLES,
    )


def faulty(row: int, faithful: int = 0, kind: str = "number", set: str = MADE) -> Twin:
    return Twin(row, faithful, kind, False, set)


def harmless(row: int, faithful: int = 0, kind: str = "reworded", set: str = MADE) -> Twin:
    return Twin(row, faithful, kind, True, set)


# Pairs.


@pytest.mark.parametrize(
    ("made", "ranked"),
    [
        ([0.9], 1.0),
        ([0.1], 0.0),
        ([0.4], 0.5),  # a tie
        ([0.9, 0.1], 0.5),
        ([0.9, 0.4], 0.75),
        ([0.9, 0.9, 0.4, 0.1], 0.625),
    ],
)
def test_twins_that_are_more_probable_are_ranked_rightly(made: list[float], ranked: float) -> None:
    """The faithful one has 0.4."""
    (found,) = evidence([faulty(k + 1) for k in range(len(made))], [0.4, *made])
    assert found.ranked.value == pytest.approx(ranked)
    assert found.pairs == len(made)


def test_each_twin_is_compared_with_its_own_faithful_row() -> None:
    (found,) = evidence([faulty(2, 0), faulty(3, 1)], [0.3, 0.8, 0.5, 0.7])
    assert found.ranked.value == 0.5


def test_the_made_rows_are_those_that_are_flagged() -> None:
    (found,) = evidence([faulty(1), faulty(2), faulty(3), faulty(4)], [0.4] * 5, [1, 1, 0, 0, 0])
    assert (found.flagged.value, found.originals.value, found.more.value) == (0.25, 1, -0.75)


def test_kinds_and_sets_are_apart() -> None:
    twins = [
        faulty(1, kind="number"),
        faulty(2, kind="name"),
        faulty(3, kind="name", set="further"),
        faulty(4, kind="name", set="further"),
    ]
    found = evidence(twins, [0.4, 0.9, 0.1, 0.9, 0.4])
    assert [(one.set, one.kind, one.pairs, one.ranked.value) for one in found] == [
        ("further", "name", 2, 0.75),
        (MADE, "name", 1, 0.0),
        (MADE, "number", 1, 1.0),
    ]


def test_harmless_changes_are_apart_and_last() -> None:
    twins = [harmless(1, kind="number"), faulty(2, kind="number"), harmless(3), faulty(4, kind="name")]
    found = evidence(twins, [0.4, 0.1, 0.9, 0.4, 0.9])
    assert [(one.harmless, one.kind, one.ranked.value) for one in found] == [
        (False, "name", 1.0),
        (False, "number", 1.0),
        (True, "number", 0.0),
        (True, "reworded", 0.5),
    ]


def test_no_twins_give_no_evidence() -> None:
    assert evidence([], [0.4, 0.6]) == []


def test_intervals_hold_the_value() -> None:
    draw = np.random.default_rng(0)
    probabilities = np.concatenate([np.full(60, 0.5), draw.random(60)])
    twins = [faulty(60 + k, k) for k in range(60)]
    (found,) = evidence(twins, probabilities.tolist(), (probabilities > 0.7).tolist())
    for one in (found.ranked, found.flagged):
        assert 0 < one.low < one.value < one.high < 1


def test_sources_are_drawn_whole() -> None:
    """Of one source, nothing else can be drawn; of many, other shares can."""
    twins, probabilities = [faulty(k) for k in range(1, 5)], [0.4, 0.9, 0.9, 0.1, 0.1]
    (one,) = evidence(twins, probabilities, groups=["s"] * 5)
    (many,) = evidence(twins, probabilities)
    assert (one.ranked.low, one.ranked.high) == (0.5, 0.5)
    assert many.ranked.low < 0.5 < many.ranked.high


def test_a_kind_that_was_left_out_is_ranked_by_the_models_that_did_not_learn_from_it() -> None:
    twins = [faulty(1, kind="number"), faulty(2, kind="name"), harmless(3, kind="number")]
    name, number, mild = pair_evidence(
        twins,
        np.array([0.4, 0.9, 0.9, 0.9]),
        np.zeros(4, dtype=bool),
        np.array(["a", "b", "c", "d"]),
        halves={EVERY: np.array([0.4, 0.9, 0.9, 0.9]), "number": np.array([0.4, 0.1, 0.9, 0.9])},
        resamples=RESAMPLES,
    )
    assert (number.halves.value, number.left_out.value) == (1, 0)
    assert name.left_out is None, "no models left it out"
    assert mild.left_out is None, "what is harmless is no kind of fault"
