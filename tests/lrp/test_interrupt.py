"""A pass that is ended before it is done."""

from __future__ import annotations

import pytest

from lrp4rag.lrp.interrupt import interruptible
from lrp4rag.reader.reader import Reader


class EndedError(Exception):
    """Raised by a check."""


def test_each_layer_is_checked_and_what_a_check_raises_ends_the_pass(tiny_reader: Reader) -> None:
    """Nothing is left behind."""
    ids = tiny_reader.tokenizer("It is tall.", return_tensors="pt").input_ids
    checks = list[None]()

    def check() -> None:
        checks.append(None)
        if len(checks) > tiny_reader.model.config.num_hidden_layers:
            raise EndedError

    with interruptible(tiny_reader.model, check):
        tiny_reader.model(ids)
        assert len(checks) == tiny_reader.model.config.num_hidden_layers
        with pytest.raises(EndedError):
            tiny_reader.model(ids)
    count = len(checks)
    tiny_reader.model(ids)
    assert len(checks) == count
