"""Blocks: tables of token features and of hidden states, what they ask for, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from experiments.tokens.blocks import BLOCKS, FAST_BLOCKS, FULL_BLOCKS, blocks_named, parts_of
from experiments.tokens.features import PROFILES, TOKEN_FEATURES
from experiments.tokens.states import PartOfState
from experiments.tokens.table import TokenTable
from lrp4rag.features.record import Record
from lrp4rag.features.units import smoothed
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.records import HEADS, LAYERS, ORIGINS, random_record

RECORD = random_record()


def deep(layers: list[int], depth: int) -> Record:
    """States after these layers of `depth`, each filled with the layer's number."""
    whole = np.array(layers, dtype=np.float32)[:, None, None] * np.ones((len(layers), 30, 2), np.float32)
    states = {"layers": np.array(layers), "whole": whole, "passages": -whole}
    return replace(RECORD, signals={"hidden_mean": np.zeros((depth + 1, 2))}, states=states)


# Tables.


def test_columns_are_the_features_by_window_then_the_profiles() -> None:
    values, names = TokenTable()(RECORD), TokenTable().columns(RECORD)
    layers = -(-LAYERS // 3)
    assert values.shape == (30, 3 * len(TOKEN_FEATURES) + LAYERS * HEADS + 2 * layers * ORIGINS)
    assert len(names) == len(set(names)) == values.shape[1]
    column = dict(zip(names, values.T, strict=True))
    passages, head = TOKEN_FEATURES["passages"](RECORD), RECORD["lookback"][1, 2]
    np.testing.assert_allclose(column["passages"], passages, rtol=1e-6)
    np.testing.assert_allclose(column["passages, 17 tokens"], smoothed(passages, 17), rtol=1e-5)
    np.testing.assert_allclose(column[f"lookback {HEADS + 2}"], smoothed(head, 9), rtol=1e-5)


def test_profiles_have_every_third_layer_and_the_last() -> None:
    shares, norms = (RECORD[name][[1, 4]].reshape(-1, 30) for name in ("shares", "norms"))
    np.testing.assert_array_equal(PROFILES["shares"](RECORD), shares)
    np.testing.assert_allclose(PROFILES["norms"](RECORD), np.log1p(norms))


def test_smoothing_is_a_mean_of_neighbours_on_the_last_axis() -> None:
    values = np.random.default_rng(0).normal(size=(2, 7))
    expected = [[row[max(k - 2, 0) : k + 3].mean() for k in range(7)] for row in values]
    np.testing.assert_allclose(smoothed(values, 5), expected)
    np.testing.assert_allclose(smoothed(values, 1), values)
    np.testing.assert_allclose(smoothed(values[0], 99), np.full(7, values[0].mean()))


# Hidden states.


@pytest.mark.parametrize(("depth", "layer"), [(0.65, 19), (0.1, 3), (1.0, 27), (0.5, 15)])
def test_the_stored_layer_nearest_to_the_depth_is_read(depth: float, layer: int) -> None:
    record = deep([3, 7, 11, 15, 19, 23, 27], 30)
    assert (PartOfState("whole", depth)(record) == layer).all()
    assert (PartOfState("passages", depth)(record) == -layer).all()


def test_states_are_averaged_over_neighbours() -> None:
    whole = RECORD.states["whole"][0]
    np.testing.assert_array_equal(PartOfState("whole")(RECORD), whole)
    found = PartOfState("whole", window=9)(RECORD)
    np.testing.assert_allclose(found, smoothed(whole.T, 9).T, rtol=1e-5, atol=1e-6)
    assert PartOfState("passages").columns(RECORD)[5] == "passages' part of the state 5"


# Blocks by name.


@pytest.mark.parametrize("blocks", [FULL_BLOCKS, FAST_BLOCKS, ["quick"]])
def test_blocks_ask_for_the_parts_that_they_read(blocks: Sequence[str]) -> None:
    states = ("states",) if {"state", "passages"} & set(blocks) else ()
    assert parts_of(blocks_named(blocks)) == ("relevance", "signals", *states)


def test_quick_features_are_the_same_where_passages_are_one_segment() -> None:
    names = {f"{name}passages": f"{name}by_segment" for name in ("", "mean_", "largest_")}
    merged = {name: RECORD.signals[by_segment][2:].sum(0) for name, by_segment in names.items()}
    kept = {name: value for name, value in RECORD.signals.items() if "segment" not in name}
    together = replace(RECORD, signals={**kept, **merged})
    np.testing.assert_allclose(BLOCKS["quick"](together), BLOCKS["quick"](RECORD), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="by_segment"):
        BLOCKS["segments"](together)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TokenTable(("nothing",)), "unknown token feature 'nothing'; choose from passages"),
        (lambda: TokenTable(profiles=("nothing",)), "choose from lookback"),
        (lambda: TokenTable(windows=(4,)), "odd"),
        (lambda: TokenTable(profile_window=0), "odd"),
        (lambda: PartOfState("question"), "unknown part of a state 'question'"),
        (lambda: PartOfState("whole", depth=2), "depth must be 0 to 1"),
        (lambda: PartOfState("whole", window=4), "window odd"),
        (lambda: PartOfState("whole")(replace(RECORD, states={})), "hidden states"),
        (lambda: PartOfState("whole")(deep([], 2)), "too few layers"),
        (lambda: blocks_named(["nothing"]), "unknown block 'nothing'; choose from plain, around"),
        (lambda: blocks_named([]), "at least one block"),
    ],
)
def test_what_is_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
