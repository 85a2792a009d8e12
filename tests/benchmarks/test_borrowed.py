"""What is counted of answers that rest on a passage about something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import borrowed
from lrp4rag import Detector, Example
from lrp4rag.classifiers.assessor import Assessor
from lrp4rag.reader import Reader
from tests.claims.test_borrowed import FIXED, FLEX
from tests.cli.plain_detector import plain_detector


def test_answers_are_counted_by_kind(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    monkeypatch.setattr(borrowed.Detector, "load", lambda *_, **__: detector)
    unborrowed = Assessor._unborrowed

    def is_flagged(_: Detector, example: Example) -> bool:
        return Assessor._unborrowed is unborrowed or "Fees" in str(example.response)

    monkeypatch.setattr(borrowed, "is_flagged", is_flagged)
    given = {"question": "What does leaving Hearth Fixed 24 cost?", "passages": [FIXED, FLEX]}
    leave = "It has no minimum term, so you can leave at any time."
    rows = [
        given | {"response": text, "labels": labels}
        for text, labels in (
            ("Leaving costs an exit fee of £60.", []),
            (leave, [{"start": 0, "end": 2, "kind": "misattributed"}]),
            (f"{leave} Fees are 9 euros.", [{"start": 63, "end": 70, "kind": "misattributed"}]),
        )
    ]
    data = tmp_path / "answers.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    result = CliRunner().invoke(borrowed.main, ["--data", str(data), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["answers"] == {"right": 1, "misattributed": 2}
    assert figures["borrowing"] == figures["flagged"] == {"misattributed": 2}
    assert figures["flagged_for_that_alone"] == {"misattributed": 1}
