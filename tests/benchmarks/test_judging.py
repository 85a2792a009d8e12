"""What judging costs: that the ratios are of what they say; how fast anything is, is not judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import judging
from lrp4rag import Detector, attribute
from lrp4rag.classifiers import Features
from lrp4rag.reader import Reader
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.training.labelled import examples, write_jsonl


@pytest.fixture
def detector(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Detector:
    """One that is quick, whatever folder is asked for."""
    rows = examples(12)
    relevances = [attribute(tiny_reader, tiny_reader.encode(one)) for one in rows]
    labels = np.array([bool(one.hallucinated) for one in rows])
    flags = [
        np.full(len(one.response), label, dtype=bool) for one, label in zip(relevances, labels, strict=True)
    ]
    fitted = fit_vector_detector(relevances, labels, token_flags=flags, features=Features(length=8))
    found = Detector(fitted, tiny_reader, name="tiny")
    monkeypatch.setattr(judging.Detector, "load", lambda *given, **more: found)
    return found


@pytest.mark.usefixtures("detector")
def test_ratios_of_judging(tmp_path: Path) -> None:
    out = tmp_path / "judging.json"
    example = write_jsonl(examples(1), tmp_path / "one.jsonl")
    arguments = ["--example", str(example), "--responses", "3", "--rounds", "1", "--against", "old"]
    arguments += ["--json", "--out", str(out)]
    result = CliRunner().invoke(judging.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert json.loads(out.read_text()) == found
    for ratio, (over, under) in {
        "one_over_forward": ("one", "forward"),
        "verdict_over_forward": ("verdict", "forward"),
        "one_over_other": ("one", "other"),
        "together_over_apart": ("together", "apart"),
        "together_over_one": ("together", "verdict"),
    }.items():
        assert found[ratio] == pytest.approx(found[f"{over}_seconds"] / found[f"{under}_seconds"])
