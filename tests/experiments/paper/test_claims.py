"""The paper's claims, from the tables of results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from experiments.paper.claims import Line, Tables, lines
from experiments.paper.manifest import read
from experiments.published import best_published
from lrp4rag.classifiers.card import Interval
from lrp4rag.util.errors import InputError

RESULTS = Path(__file__).parents[3] / "experiments" / "results"
CONTROL = "the best control here, lookback ratios"
BASELINES = RESULTS / "prompt", RESULTS / "fine-tuned"


def test_the_page_is_that_of_its_tables(run, tmp_path: Path) -> None:
    """So it is not written by hand."""
    out = tmp_path / "claims"
    folders = ["--paper", RESULTS / "paper", "--matrix", RESULTS / "matrix"]
    folders += [item for folder in BASELINES for item in ("--baselines", folder)]
    run("claims", *folders, "--out", out)
    assert (out / "claims.csv").read_text() == (RESULTS / "claims" / "claims.csv").read_text()
    shown = [(one / "README.md").read_text().split("**Rule.**")[1] for one in (out, RESULTS / "claims")]
    assert shown[0] == shown[1]  # what stands above says how long it took


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.6, 0.7, "holds"), (0.3, 0.4, "fails"), (0.4, 0.6, "cannot be told")],
)
def test_a_verdict_is_by_the_interval(low: float, high: float, verdict: str) -> None:
    here = Interval(value=(low + high) / 2, low=low, high=high)
    assert Line("1", "", 0, "", "", here, 0.5, "").verdict == verdict


@pytest.fixture(scope="module")
def found() -> list[Line]:
    return lines(RESULTS / "paper", RESULTS / "matrix", BASELINES)


def test_the_larger_generator_is_ahead_where_its_accuracy_is_higher(found: list[Line]) -> None:
    steps = [line for line in found if line.where == "llama-2-7b-chat to llama-2-70b-chat"]
    (step,) = (line for line in steps if "accuracy" in line.what)
    assert step.here.value == pytest.approx(0.0572, abs=1e-3)
    assert step.verdict == "holds"
    assert all(line.differs and line.against == -0.05 for line in steps)


def test_lines_say_how_many_responses_they_are_of(found: list[Line]) -> None:
    on_matrix = [line for line in found if "lstm on" in line.what]
    assert {line.rows for line in on_matrix} == {550}
    assert {line.rows for line in found if line.claim == "1"} == {839}
    assert next(line for line in found if "fine-tuned-llm" in line.what).rows == 120


def test_a_line_on_r_star_has_the_papers_figures(found: list[Line]) -> None:
    of_larger = [
        line
        for line in found
        if "lstm on" in line.what and line.where == "llama-2-13b-chat" and line.what.endswith("R_prompt")
    ]
    assert {line.paper for line in of_larger} == {"69.87 % beside 65.42 % (mlp)"}


def test_relevance_is_set_beside_each_baseline_that_was_run(found: list[Line]) -> None:
    beside = [line.what.split("that of ")[1] for line in found if "less that of" in line.what]
    assert sorted(set(beside) - {CONTROL, "flagging everything"}) == [
        "fine-tuned-llm",
        "prompt-judge",
        "selfcheck-ngram",
    ]
    assert beside.count(CONTROL) == 2


def test_what_can_be_paired_is_a_difference(found: list[Line]) -> None:
    assert all(line.differs for line in found if CONTROL in line.what)
    paired = [line for line in found if line.what.startswith("F1 of the threshold")]
    assert len(paired) == 2
    for line in paired:
        first, second = map(float, line.figures.split(" and "))
        assert line.differs
        assert line.against == 0
        assert line.here.value == pytest.approx(first - second, abs=2e-3)


def test_a_table_without_a_column_is_refused_by_its_name(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "paper", tmp_path / "paper")
    path = tmp_path / "paper" / "findings.csv"
    path.write_text(path.read_text().replace(",decides", ",decided", 1))
    with pytest.raises(InputError, match="make the table again") as refused:
        Tables.read(tmp_path / "paper")
    assert (refused.value.path, refused.value.field) == (path, "decides")


def test_a_manifest_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no manifest"):
        read(tmp_path)
    (tmp_path / "manifest.json").write_text('{"generators": {"a": 3}}')
    with pytest.raises(InputError, match="does not say what it is of"):
        read(tmp_path)


def test_the_papers_best_lines_are_those_of_its_table() -> None:
    assert best_published("lrp4rag", "llama-2-13b-chat").accuracy == 0.6987
    assert best_published("baseline", "llama-2-7b-chat").accuracy == 0.6157


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table of python -m experiments reproduce"):
        Tables.read(tmp_path)
