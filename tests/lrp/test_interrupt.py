"""A pass that is ended before it is done."""

from __future__ import annotations

import pytest

from lrp4rag.lrp.interrupt import interruptible
from lrp4rag.reader.reader import Reader


class EndedError(Exception):
    """Raised by a check."""


def test_each_layer_is_checked_and_nothing_is_left_behind(tiny_reader: Reader) -> None:
    ids = tiny_reader.tokenizer("It is tall.", return_tensors="pt").input_ids
    layers, seen = tiny_reader.model.config.num_hidden_layers, list[None]()
    with interruptible(tiny_reader.model, lambda: seen.append(None)):
        tiny_reader.model(ids)
    tiny_reader.model(ids)
    assert len(seen) == layers


def test_what_a_check_raises_ends_the_pass(tiny_reader: Reader) -> None:
    ids = tiny_reader.tokenizer("It is tall.", return_tensors="pt").input_ids

    def check() -> None:
        raise EndedError

    with pytest.raises(EndedError), interruptible(tiny_reader.model, check):
        tiny_reader.model(ids)
