"""What is counted of answers with counter-claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import counterclaims
from lrp4rag import Detector, Example
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector


def test_answers_are_counted_by_kind_and_margin(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Detector(plain_detector(tiny_reader), tiny_reader)
    monkeypatch.setattr(counterclaims.Detector, "load", lambda *_, **__: found)
    margins = {"Bags are free.": [], "Dogs are allowed.": [1.2, -3.0], "Cats are allowed.": None}

    def margins_of(_: Detector, example: Example) -> list[float] | None:
        return margins[str(example.response)]

    monkeypatch.setattr(counterclaims, "margins_of", margins_of)
    given = {"question": "Who may come?", "passages": ["Dogs are not allowed. Bags are free."]}
    rows = [
        given | {"response": text, "labels": labels}
        for text, labels in (
            ("Bags are free.", []),
            ("Dogs are allowed.", [{"start": 9, "end": 16, "kind": "negation"}]),
            ("Cats are allowed.", [{"start": 0, "end": 4, "kind": "negation"}]),
        )
    ]
    data = tmp_path / "answers.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    command = ["--data", str(data), "--every", "1", "--margins", "1,2", "--json"]
    result = CliRunner().invoke(counterclaims.main, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    assert figures["answers"] == {"right": 1, "negation": 2}
    assert figures["with_counter_claims"] == {"right": 0, "negation": 1}
    assert figures["flagged"] == {"1.0": {"right": 0, "negation": 1}, "2.0": {"right": 0, "negation": 0}}


def test_margins_are_those_of_the_verdicts(tiny_reader: Reader) -> None:
    model = plain_detector(tiny_reader)
    detector = Detector(model, tiny_reader)
    example = Example(
        "Are dogs allowed?", ["Dogs are not allowed on the train."], "Dogs are allowed on the train."
    )
    with detector:
        found = counterclaims.margins_of(detector, example)
        flagged = detector.examine(detector.prompt(example), str(example.response)).hallucinated
    assert found is None if flagged else found
