"""Sizes of readers: what is counted is what models have, and the tables tell measured from computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import sizes
from benchmarks.devices import config_of
from benchmarks.sizes import Counted, Passes, computed, counted, weights


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [("smollm2-135m", 134_515_008), ("llama-2-7b", 6_738_415_616), ("llama-3.1-8b", 8_030_261_248)],
)
def test_parameters_are_those_that_the_models_publish(shape: str, parameters: int) -> None:
    assert counted(shape, 10, 5).parameters == parameters


def test_operations_of_a_tiny_model_by_hand() -> None:
    config, one = config_of("tiny"), counted("tiny", 6, 3)
    d, m, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    kv = config.num_key_value_heads * (d // config.num_attention_heads)
    linear = layers * (2 * d * d + 2 * d * kv + 3 * d * m)
    assert one.operations == 2 * (linear * 8 + layers * 64 * d + config.vocab_size * d * 3)
    assert one.embedding == config.vocab_size * d


def test_fewer_bits_are_fewer_bytes_but_of_the_embedding() -> None:
    one = Counted(parameters=100, embedding=20, operations=0)
    assert weights(one, 32) == 400
    assert weights(one, 8) == 20 * 2 + 80


def test_what_is_computed_grows_with_the_operations() -> None:
    small, large = counted("smollm2-135m", 40, 20), counted("llama-3.1-8b", 40, 20)
    known = [(small, Passes(1.0, 2.0, 4.0, 1e9, 2e9))]
    found = computed("llama-3.1-8b", "float32", large, 59, known, 1e8)
    assert found.forward == pytest.approx(large.operations / small.operations)
    assert found.push == pytest.approx(2 * found.forward)
    assert found.pull == pytest.approx(4 * found.forward)
    assert found.push_peak > weights(large, 32)


def test_the_command_measures_and_computes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sizes, "SHAPES", {"tiny-": 0, "smollm2-135m": 0})
    monkeypatch.setattr(sizes, "counted", lambda shape, *_: counted(shape.replace("tiny-", "tiny"), 30, 9))
    monkeypatch.setattr(sizes, "config_of", lambda shape: config_of(shape.replace("tiny-", "tiny")))
    monkeypatch.setattr(sizes, "apart", lambda work, shape, *rest: work("tiny", *rest))
    out, plot = tmp_path / "s.json", tmp_path / "s.png"
    arguments = [
        "--measure",
        "tiny-",
        "--prompt",
        "30",
        "--response",
        "9",
        "--out",
        str(out),
        "--plot",
        str(plot),
    ]
    done = CliRunner().invoke(sizes.main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    rows = json.loads(out.read_text())["rows"]
    assert [row["measured"] is None for row in rows] == [False, True]
    assert rows[0]["measured"]["pull"] > 0
    assert "| tiny- |" in done.output
    assert plot.stat().st_size > 1000
