"""What the benchmarks' tests share."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks import long_context, passes, precision, shapes, verdict
from lrp4rag.reader import Reader


@pytest.fixture
def tiny(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks load the tiny reader in place of the default one, and start no process."""

    def load(*_: Any, dtype: str = "float32", **__: Any) -> Reader:
        if dtype == "float32":
            return tiny_reader
        model = type(tiny_reader.model)(tiny_reader.model.config).to(getattr(torch, dtype)).eval()
        model.load_state_dict(tiny_reader.model.state_dict())
        return Reader(model, tiny_reader.tokenizer, tiny_reader.identity)

    for module in (long_context, precision, shapes, verdict):
        monkeypatch.setattr(module, "load_reader", load)
    for module in (passes, verdict):
        monkeypatch.setattr(module, "apart", lambda function, *arguments: function(*arguments))
