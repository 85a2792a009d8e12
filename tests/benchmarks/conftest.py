"""What the benchmarks' tests share."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from lrp4rag.reader import Reader


@pytest.fixture
def tiny(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks load the tiny reader in place of the default one, and start no process."""
    from benchmarks import devices, long_context, passes, precision, verdict

    def load(*_: Any, dtype: str = "float32", **__: Any) -> Reader:
        if dtype == "float32":
            return tiny_reader
        model = type(tiny_reader.model)(tiny_reader.model.config).to(getattr(torch, dtype)).eval()
        model.load_state_dict(tiny_reader.model.state_dict())
        return Reader(model, tiny_reader.tokenizer, tiny_reader.identity)

    for module in (devices, long_context, precision, verdict):
        monkeypatch.setattr(module, "load_reader", load)
    for module in (passes, verdict):
        monkeypatch.setattr(module, "apart", lambda function, *arguments: function(*arguments))


def measured(command: Any, arguments: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    result = CliRunner().invoke(command, [*arguments.split(), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
