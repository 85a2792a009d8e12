"""Readers of any number of layers and heads: which of them are read is found from the size of the reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.features.replay import state_layers
from lrp4rag.reader import load_reader
from lrp4rag.training.extract import extract
from tests.tiny import save_tiny_reader
from tests.training.jobs import PARTS, responses

ALL = (*PARTS, "reading")


@pytest.mark.parametrize(("layers", "heads", "kv", "hidden"), [(1, 4, 4, 32), (2, 3, 1, 24), (5, 6, 2, 48)])
def test_all_that_is_extracted_fits_the_reader(
    tmp_path: Path, layers: int, heads: int, kv: int, hidden: int
) -> None:
    sizes = {"num_attention_heads": heads, "num_key_value_heads": kv, "hidden_size": hidden}
    folder = save_tiny_reader(tmp_path / "reader", num_hidden_layers=layers, **sizes)
    reader, rows = load_reader(str(folder), device="cpu"), responses(1)
    done = extract(rows, reader, tmp_path / "s", parts=ALL)
    assert (done.computed, done.failures) == (2, {})
    record = done.store.read_record(rows[0])
    tokens = len(record.encoded.response_ids)
    assert record.states["around"].shape == (1, tokens + 1, hidden)


@pytest.mark.parametrize(("layers", "kept"), [(1, 0), (2, 0), (3, 1), (30, 19), (32, 20), (80, 51)])
def test_the_layer_whose_states_are_read_stands_at_the_same_depth(layers: int, kept: int) -> None:
    class Model:
        def get_decoder(self) -> Model:
            return self

    model = Model()
    model.layers = range(layers)  # type: ignore[attr-defined]

    class Holder:
        pass

    holder = Holder()
    holder.model = model  # type: ignore[attr-defined]
    assert state_layers(holder) == (kept,)  # type: ignore[arg-type]
