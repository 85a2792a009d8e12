"""`lrp4rag drift` and `lrp4rag review`: what they print, their files, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lrp4rag.cli import main
from lrp4rag.guard.monitoring.windows import Period
from tests.guard.monitoring.logs import TEXTS, records, spread, write

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a log of usual answers, one of which the last week is worse, and an empty one."""
    place = tmp_path_factory.mktemp("logs")
    now = datetime.now(UTC)
    early, late = (
        Period(now - timedelta(days=35), now - timedelta(days=7)),
        Period(now - timedelta(days=7), now),
    )
    usual = spread(early, records(60, 1))
    write(place / "same.db", [*usual, *spread(late, records(60, 2))], texts=TEXTS)
    write(place / "worse.db", [*usual, *spread(late, records(60, 2, worse=0.5))])
    write(place / "empty.db", [])
    return place


@pytest.fixture
def command(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(*words: str, code: int, log: str = "same") -> Result:
        result = CliRunner().invoke(main, [*words, "--audit", str(folder / f"{log}.db")])
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.output
        return result

    return invoke


def test_the_exit_code_tells_a_scheduler(command: Run) -> None:
    assert command("drift", code=0).stdout.startswith("No drift was found")
    assert command("drift", code=3, log="worse").stdout.startswith("Drift: quality is worse")


def test_json_and_the_page(command: Run, tmp_path: Path) -> None:
    result = command("drift", "--json", "--html", "page.html", code=3, log="worse")
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["drift"] is True
    assert (found["baseline"]["answers"], found["window"]["answers"]) == (60, 60)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "lrp4rag drift --json --html page.html" in page
    assert "wrote page.html" in result.stderr


@pytest.mark.parametrize(
    ("words", "log", "expected"),
    [
        (["--since", "7 days"], "same", "field 'since': '7 days'"),
        (["--since", "2199-01-01"], "same", "is yet to come"),
        (["--since", "7d", "--reference", "3d"], "same", "field 'reference'"),
        (["--since", "7d", "--reference", "20d..5d"], "same", "the windows overlap"),
        (["--since", "1h"], "same", "20 are needed"),
        ([], "empty", "holds no answers"),
        ([], "none", "no audit log here"),
        (["--alpha", "0"], "same", "'--alpha'"),
        (["--alpha", "nan"], "same", "not a finite number"),
        (["--html", "no/page.html"], "same", "folder does not exist"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_no_clean_verdict(
    command: Run, words: list[str], log: str, expected: str
) -> None:
    result = command("drift", *words, code=2, log=log)
    assert expected in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.parametrize("words", [["drift", "--html"], ["review", "--out"], ["audit", "export"]], ids=str)
def test_no_output_takes_the_place_of_the_log(command: Run, folder: Path, words: list[str]) -> None:
    before = (folder / "same.db").read_bytes()
    assert "read as input" in command(*words, str(folder / "same.db"), code=2).stderr
    assert (folder / "same.db").read_bytes() == before


def test_a_list_to_review(command: Run, tmp_path: Path) -> None:
    result = command("review", "--limit", "3", "--sample", "2", "--out", "week.csv", code=0)
    assert "60 answers, 0 of them reviewed" in result.stdout
    assert "question: How many days?␛[31m" in result.stdout
    assert "response: =1+1 It is ten days." in result.stdout
    assert "drawn at random, 2 of" in result.stdout
    assert "wrote 5 answers to week.csv" in result.stderr
    assert len((tmp_path / "week.csv").read_text(encoding="utf-8").splitlines()) == 6
    found = json.loads(command("review", "--json", "--limit", "3", "--sample", "2", code=0).stdout)
    assert len(found["items"]) == 5


def test_a_list_of_a_log_without_texts_says_so(command: Run) -> None:
    result = command("review", "--limit", "1", code=0, log="worse")
    assert "question:" not in result.stdout
    assert "keep_texts" in result.stdout


@pytest.mark.parametrize(
    ("words", "log", "expected"),
    [
        ([], "empty", "holds no answers"),
        (["--since", "soon"], "same", "'soon' is no time"),
        (["--limit", "-1"], "same", "'--limit'"),
    ],
    ids=str,
)
def test_what_is_no_list(command: Run, words: list[str], log: str, expected: str) -> None:
    assert expected in command("review", *words, code=2, log=log).stderr
