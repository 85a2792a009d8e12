"""The rows that slow systems are judged on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lrp4rag.experiments.systems.comparison.sample import GENERATORS, sample_of
from lrp4rag.training.rows import Rows
from tests.training.labelled import examples

NAMES = (*GENERATORS, "gpt-4")


@pytest.fixture(scope="module")
def rows() -> Rows:
    """20 sources with a response of both default generators, and ten with one of another."""
    made = [
        replace(one, generator=name, response=f"{name}: {one.response}", labels=())
        for name in NAMES
        for one in (examples(20) if name in GENERATORS else examples(10, first=20))
    ]
    return Rows(None, tuple(made))


def test_all_responses_of_the_generators_to_the_sources_drawn(rows: Rows) -> None:
    chosen = sample_of(rows, sources=8)
    assert chosen.tolist() == sorted(chosen.tolist())
    assert set(rows.generators[chosen]) == set(GENERATORS)
    assert len(set(rows.groups[chosen])) == 8
    assert len(chosen) == 8 * len(GENERATORS)


def test_drawn_once(rows: Rows) -> None:
    assert sample_of(rows, sources=8).tolist() == sample_of(rows, sources=8).tolist()
    assert sample_of(rows, sources=8, seed=1).tolist() != sample_of(rows, sources=8).tolist()
    # Whatever the order of the rows.
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = rows.select(order)
    assert set(shuffled.groups[sample_of(shuffled, sources=8)]) == set(
        rows.groups[sample_of(rows, sources=8)]
    )


def test_fewer_sources_are_some_of_more(rows: Rows) -> None:
    samples = [set(sample_of(rows, sources=count).tolist()) for count in (2, 5, 9, 20)]
    for fewer, more in pairwise(samples):
        assert fewer < more


def test_no_more_sources_than_there_are(rows: Rows) -> None:
    assert len(sample_of(rows)) == 20 * len(GENERATORS)
    assert set(rows.generators[sample_of(rows, generators=["gpt-4"])]) == {"gpt-4"}
    assert len(sample_of(rows, generators=["gpt-4"])) == 10


def test_where_none_of_the_generators_is_there_all_count(rows: Rows) -> None:
    chosen = sample_of(rows, sources=100, generators=["unheard of"])
    assert chosen.tolist() == list(range(len(rows)))
