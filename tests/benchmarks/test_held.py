"""What a sentence of a stream costs: what is counted; how fast anything is, is not judged here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import held
from lrp4rag import Detector, Example
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector


def test_tokens_and_sentences_are_those_of_the_clients(
    tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**28)
    monkeypatch.setattr(held.Detector, "load", lambda **_: found)
    answers = [
        Example(f"How tall is {k}?", ["It is 31 metres tall."], "It is 31. It is tall.") for k in (1, 2)
    ]
    monkeypatch.setattr(held, "long_answers", lambda number, _: answers[:number])
    result = CliRunner().invoke(held.main, ["--clients", "1,2", "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    assert len(figures["by_sentence_1"]) == len(figures["by_sentence_2"]) == 2
    assert figures["sentences_1"] == figures["sentences_2"] == 4, "all answers, whoever waits beside"
    assert 0 < figures["tokens_1"] == figures["tokens_2"]
    assert 0 < figures["p50_1"] <= figures["p95_1"]
    assert figures["pairs_1"] == 0
    result = CliRunner().invoke(held.main, ["--clients", "1", "--clock", "wall", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["clock"] == "wall"
