"""What many answers cost: that work is counted and ratios are of what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import many
from lrp4rag import Detector
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector
from tests.tiny import bridge_example
from tests.training.labelled import write_jsonl

SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def test_work_and_ratios_of_many_answers(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector, load = Detector(plain_detector(tiny_reader), tiny_reader), Detector.load
    monkeypatch.setattr(
        many.Detector, "load", lambda name, **more: load(name, **more) if name == many.TEXT else detector
    )
    monkeypatch.setattr(many, "SIZES", SMALL | {"vocab_size": 300, "pad_token_id": 0})
    rows = [
        bridge_example(prompt, id=f"{prompt}-{k}", response=f"It is {'very ' * k}long.", labels=())
        for prompt in range(3)
        for k in range(3)
    ]
    data = write_jsonl(rows, tmp_path / "rows.jsonl")
    arguments = ["--data", str(data), "--prompts", "2", "--answers", "2", "--json"]
    result = CliRunner().invoke(many.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert (found["prompts"], found["judged"]) == (2, 4)
    chosen = [tiny_reader.encode(rows[number]) for number in (0, 1, 3, 4)]
    assert found["tokens"] == sum(len(one.prompt_ids) + len(one.response_ids) for one in chosen)
    assert found["tokens_read"] < found["tokens"]
    for way in ("verdicts", "texts"):
        ratio = found["encoder_a_second"] / found[f"{way}_a_second"]
        assert found[f"{way}_over_encoder"] == pytest.approx(ratio)
    assert found["first_half_peak_bytes"] > 0
