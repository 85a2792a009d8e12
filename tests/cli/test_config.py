"""`--config`: options from a file, which those of the command line replace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.labelled import examples, write_jsonl


@pytest.fixture
def common(reader_folder: Path, tmp_path: Path) -> list[Any]:
    data = write_jsonl(examples(24), tmp_path / "data.jsonl")
    return ["train", data, "--store", tmp_path / "s", "--out", tmp_path / "d", "--reader", reader_folder]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_options_are_read_of_a_file_and_of_the_command_line_first(
    run: Any, common: list[Any], tmp_path: Path, suffix: str
) -> None:
    config = tmp_path / f"train.{suffix}"
    config.write_text(
        json.dumps({"vector": "response", "length": 9, "chat_template": False, "bootstrap": 10})
    )
    run(*common, "--config", config, "--length", 11, "--workers", 1)
    card = json.loads((tmp_path / "d" / "card.json").read_text())
    assert (card["input"]["vector"], card["input"]["length"]) == ("response", 11)
    assert not card["reader"]["chat_template"]
    assert "10 resamples" in card["evidence"]["protocol"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length: 9\nlenght: 8\n", "line 2"),
        ("length: nine", "'--length'"),
        ("resampling: other", "'other' is not one of"),
        ("- length", "mapping"),
        ("length: [", "line 1"),
    ],
)
def test_what_is_no_option_or_no_value_of_it_is_refused(
    run: Any, common: list[Any], tmp_path: Path, text: str, message: str
) -> None:
    config = tmp_path / "train.yaml"
    config.write_text(text)
    assert message in run(*common, "--config", config, code=2).stderr
    assert not (tmp_path / "s").exists()
