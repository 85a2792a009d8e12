"""Blocks of hidden states: which layer, which part, and what is said where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.features.blocks import BLOCKS, FAST_BLOCKS, FULL_BLOCKS, blocks_named, parts_of, wanted_by
from lrp4rag.features.record import Record
from lrp4rag.features.states import StateBlock
from lrp4rag.features.units import smoothed
from lrp4rag.lrp.signals import EVERYTHING, FAST, FULL, Wanted
from tests.features.records import random_record


def deep(layers: list[int], depth: int) -> Record:
    """States after these layers of `depth`, each filled with the layer's number."""
    record = random_record(4)
    whole = np.array(layers, dtype=np.float32)[:, None, None] * np.ones((len(layers), 4, 2), np.float32)
    signals = {**record.signals, "hidden_mean": np.zeros((depth + 1, 2))}
    return replace(
        record, signals=signals, states={"layers": np.array(layers), "whole": whole, "passages": -whole}
    )


@pytest.mark.parametrize(("depth", "layer"), [(0.65, 19), (0.1, 3), (1.0, 27), (0.5, 15)])
def test_the_stored_layer_nearest_to_the_depth_is_read(depth: float, layer: int) -> None:
    record = deep([3, 7, 11, 15, 19, 23, 27], 30)
    assert (StateBlock("whole", depth)(record) == layer).all()
    assert (StateBlock("passages", depth)(record) == -layer).all()


def test_states_are_averaged_over_neighbours() -> None:
    record = random_record(30)
    whole = record.states["whole"][0]
    np.testing.assert_array_equal(StateBlock("whole")(record), whole)
    found = StateBlock("whole", window=9)(record)
    np.testing.assert_allclose(found, smoothed(whole.T, 9).T, rtol=1e-5, atol=1e-6)
    assert StateBlock("passages").columns(record)[5] == "passages' part of the state 5"


def test_what_is_missing_is_told() -> None:
    bare = replace(random_record(), states={})
    with pytest.raises(InputError, match="parts relevance,signals,states"):
        StateBlock("whole")(bare)
    with pytest.raises(InputError, match="too few layers"):
        StateBlock("whole")(deep([], 2))
    for options in ({"part": "question"}, {"part": "whole", "depth": 2}, {"part": "whole", "window": 4}):
        with pytest.raises(InputError):
            StateBlock(**options)


def test_blocks_ask_for_no_more_than_they_read() -> None:
    assert wanted_by(blocks_named(FULL_BLOCKS)) == FULL
    assert wanted_by(blocks_named(["quick"])) == FAST
    assert wanted_by(blocks_named(FAST_BLOCKS)) == FAST
    assert wanted_by({"all": replace(BLOCKS["signals"], features=("gain over others", "lead"))}) == Wanted(
        each_segment=True, provenance=True, without_passages=False, other_passages=True
    )
    assert wanted_by(blocks_named(["segments"])) == replace(FULL, provenance=False)
    assert wanted_by(blocks_named(["passages"])) == Wanted(False, True, False, False)
    assert wanted_by({"all": replace(BLOCKS["signals"])}) != EVERYTHING
    assert parts_of(blocks_named(["signals"])) == ("relevance", "signals")
    assert parts_of(blocks_named(["signals", "state"])) == ("relevance", "signals", "states")
    with pytest.raises(InputError, match="unknown block 'nothing'; choose from signals"):
        blocks_named(["nothing"])
    with pytest.raises(InputError, match="at least one block"):
        blocks_named([])


def test_quick_features_are_the_same_where_passages_are_one_segment() -> None:
    record = random_record()
    merged = {
        f"{name}passages": record.signals[f"{name}by_segment"][2:].sum(0)
        for name in ("", "mean_", "largest_")
    }
    kept = {name: value for name, value in record.signals.items() if "segment" not in name}
    together = replace(record, signals={**kept, **merged})
    np.testing.assert_allclose(BLOCKS["quick"](together), BLOCKS["quick"](record), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="by_segment"):
        BLOCKS["segments"](together)
