"""The paper's claims, from the tables of results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lrp4rag.classifiers.card import Interval
from lrp4rag.errors import InputError
from lrp4rag.experiments.paper.claims import Line, Tables, best_published, lines

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def test_the_page_is_that_of_its_tables(run, tmp_path: Path) -> None:
    """So it is not written by hand."""
    out = tmp_path / "claims"
    folders = ["--paper", RESULTS / "paper", "--matrix", RESULTS / "matrix", "--out", out]
    run("experiments", "claims", *folders)
    for name in ("README.md", "claims.csv"):
        assert (out / name).read_text() == (RESULTS / "claims" / name).read_text()


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.6, 0.7, "holds"), (0.3, 0.4, "fails"), (0.4, 0.6, "cannot be told")],
)
def test_a_verdict_is_by_the_interval(low: float, high: float, verdict: str) -> None:
    here = Interval(value=(low + high) / 2, low=low, high=high)
    assert Line("1", "", "", "", here, 0.5, "").verdict == verdict


def test_the_larger_generator_is_ahead_where_its_accuracy_is_higher() -> None:
    found = lines(Tables.read(RESULTS / "paper"), pd.read_csv(RESULTS / "matrix" / "findings.csv"))
    step = next(line for line in found if line.where == "llama-2-7b-chat to llama-2-70b-chat")
    assert step.here.value == pytest.approx(0.0667461)
    assert step.verdict == "holds"


def test_the_papers_best_lines_are_those_of_its_table() -> None:
    assert best_published("lrp4rag", "llama-2-13b-chat").accuracy == 0.6987
    assert best_published("baseline", "llama-2-7b-chat").accuracy == 0.6157


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table of lrp4rag experiments reproduce"):
        Tables.read(tmp_path)
