"""`lrp4rag redteam`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lrp4rag.guard.redteam import load_cases

ROWS = [
    {
        "id": f"mine-{number}",
        "kind": kind,
        "question": "When was it opened?",
        "passages": ["The bridge was opened in 1874."],
        "response": response,
        "expected": expected,
        "why": "as it is",
    }
    for number, (kind, response, expected) in enumerate(
        [
            ("mine", "It was opened in 1874 [7].", ["withhold"]),
            ("mine", "It was opened in 1874.", ["serve", "mark", "withhold"]),
            ("other", "Aliens built it in 1874 [7].", ["serve", "mark"]),
        ]
    )
]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def local(cases: Path, detector: Path, reader_folder: Path) -> list[object]:
    return ["redteam", "--cases", cases, "--detector", detector, "--reader", reader_folder]


def test_a_run_is_printed_and_written(run, local, tmp_path: Path) -> None:
    out = tmp_path / "report"
    found = run(*local, "--out", out, "--min-share", 0.5, code=1)
    assert "below --min-share 0.5: other: 0.00" in found.stderr
    assert "3 cases are not" in found.stdout
    assert "0.67 [0.21, 0.94]" in found.stdout
    written = json.loads((out / "results.json").read_text())
    assert [one["action"] for one in written["results"]][::2] == ["withhold", "withhold"]
    assert set(written["versions"]) == {"package", "detector", "reader", "policy"}
    assert "mine-2: <span" in (out / "index.html").read_text()
    assert json.loads(run(*local, "--json").stdout)["kinds"] == written["kinds"]


def test_the_help_tells_how_many_cases_there_are(run) -> None:
    assert f"about {len(load_cases())} answers" in " ".join(run("redteam", "--help").stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server", "nowhere"], "field '--server': give 'local', or a server's address"),
        (["--server", "http://127.0.0.1:9"], "server running there"),
        (["--target", "http://127.0.0.1:9", "--policy", "p.yaml"], "its own policy"),
        (["--kind", "x"], "there are: no-document"),
        (["--cases", "missing.jsonl"], "no such file"),
        (["--min-share", "2"], "0<=x<=1"),
        (["--detector", "none"], "a policy needs a detector"),
        (["--out", "/dev/null"], "no folder"),
    ],
)
def test_bad_usage_is_told_before_anything_is_judged(run, arguments: list[str], words: str) -> None:
    assert words in run("redteam", *arguments, code=2).output


def test_no_output_takes_the_place_of_an_input_or_of_a_folder(run, cases: Path, tmp_path: Path) -> None:
    """Told before anything is judged: the detector is not even there."""
    out = tmp_path / "report"
    out.mkdir()
    own = cases.rename(out / "results.json")
    arguments = ["redteam", "--detector", tmp_path / "none", "--out", out]
    assert "is read as input" in run(*arguments, "--cases", own, code=2).stderr
    own.unlink()
    (out / "index.html").mkdir()
    assert "index.html: this is a folder" in run(*arguments, code=2).stderr


def test_a_run_in_which_nothing_was_judged_is_a_failure(run, local, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(ROWS[0] | {"passages": ["word " * 20_000]}) + "\n")
    found = run(*local, "--cases", path, "--out", tmp_path / "report", code=1)
    assert "no case was judged" in found.stderr
    assert not (tmp_path / "report").exists()
