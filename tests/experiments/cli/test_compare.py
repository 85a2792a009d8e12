"""`python -m experiments baseline` and `compare` as their user runs them, on a small store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.systems.comparison import ours
from experiments.systems.registry import BASELINES
from experiments.tokens.trials import Trial
from lrp4rag.classifiers import ensemble
from tests.experiments.tokens.stored import stored
from tests.training.labelled import examples, write_jsonl


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("store"), count=50).store.folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = dict.fromkeys((ours.DETECTOR, ours.FAST), Trial(("relevance",)))
    monkeypatch.setattr(ours, "TRIALS", trials)
    monkeypatch.setattr(ensemble, "EPOCHS", 3)


def without_time(page: str) -> str:
    return re.sub(r" in \d+ (min|s) on ", " on ", page)


BASELINE, COMPARE = ("baseline",), ("compare",)
READER = ["--reader", "smollm2-135m"]  # the store's own is nowhere


def test_the_systems_are_listed(run) -> None:
    listed = run("baseline").stdout
    table = listed.split("\n\nRun one")[0]
    assert [line.split()[0] for line in table.splitlines() if line[:1].isalpha()][1:] == list(BASELINES)


def test_one_is_cross_validated_and_goes_on(run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    options = ["--store", folder, *READER, "--cache", tmp_path / "work", "--bootstrap", 20]
    result = run("baseline", "novel-words", *options, "--out", out)
    for words in ("g1", "g2", "all", "AUROC", "Novel words", "chosen in the folds: novel words"):
        assert words in result.stdout
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 100
    assert all(0 <= line["probability"] <= 1 for line in lines)
    assert len(list((tmp_path / "work" / "folds").glob("*.json"))) == 5
    again = run("baseline", "novel-words", *options).stdout
    assert result.stdout.endswith(again)
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "work" / "folds").iterdir()}
    assert run("baseline", "novel-words", *options, "--anew").stdout.endswith(again)
    assert all(file.stat().st_mtime_ns > time for file, time in times.items())


def test_one_judges_other_responses(run, folder: Path, tmp_path: Path) -> None:
    data = write_jsonl(examples(4, first=200), tmp_path / "new.jsonl")
    out = tmp_path / "scores.jsonl"
    options = [data, "--store", folder, *READER, "--cache", tmp_path / "work"]
    run("baseline", "lexical", *options, "--out", out)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in made] == [one.id for one in examples(4, first=200)]
    shown = run("baseline", "lexical", *options).stdout
    assert [json.loads(line) for line in shown.splitlines()] == made


def test_the_comparison_is_a_page(run, quick: None, folder: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.json"
    systems = {name: {"seconds": 1, "forwards": 2, "peak_bytes": 3} for name in (ours.DETECTOR, "length")}
    costs.write_text(json.dumps({"systems": systems, "conditions": "one thread"}))
    options = ["--baselines", "length, novel-words", "--sources", 30, "--bootstrap", 20, "--workers", 1]
    command = [
        "compare",
        "--store",
        folder,
        *READER,
        "--out",
        tmp_path / "page",
        *options,
        "--costs",
        costs,
    ]
    result = run(*command, "--cache", tmp_path / "work")
    assert "README.md" in result.stdout
    page = (tmp_path / "page" / "README.md").read_text()
    for words in ("novel-words", "peak memory", "Together", f"--store={folder.name}"):
        assert words in page or words.replace("=", " ") in page
    assert str(tmp_path) not in page + (tmp_path / "page" / "results.json").read_text()
    scores = {file.name for file in (tmp_path / "page" / "scores").iterdir()}
    assert {"lrp4rag.json.xz", "lrp4rag-with-one-tangent.json.xz", "length.json.xz"} < scores
    run(*command, "--cache", tmp_path / "none")  # they are read: nothing is judged again
    assert not list((tmp_path / "none" / "folds").iterdir())
    elsewhere = [*COMPARE, "--store", folder, *READER, "--out", tmp_path / "other", *options]
    known = ["--scores", tmp_path / "page" / "scores"]
    run(*elsewhere, "--anew", "length", "--cache", tmp_path / "more", *known)
    assert {file.name for file in (tmp_path / "other" / "scores").iterdir()} == scores
    assert len(list((tmp_path / "more" / "folds").iterdir())) == 5  # of the one that was to be run
    again = (tmp_path / "page" / "README.md").read_text()
    assert without_time(again) == without_time(page).replace("--cache work", "--cache none")


def test_bad_input_is_told(run, folder: Path, tmp_path: Path) -> None:
    seen = write_jsonl(examples(2), tmp_path / "seen.jsonl")
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"question": "Who?", "passages": ["She."]}) + "\n")
    file = tmp_path / "file"
    file.write_text("{}")
    for arguments, words in (
        (
            [*BASELINE, "nothing", "--store", folder],
            "unknown baseline 'nothing'; choose from length",
        ),
        ([*BASELINE, "length"], "name the labelled responses to learn from: --store STORE"),
        (
            [*BASELINE, "lexical", seen, "--store", folder, *READER],
            "its score would be too good",
        ),
        (
            [*BASELINE, "lexical", bare, "--store", folder, *READER],
            "has no response to judge",
        ),
        (
            [*BASELINE, "length", "--store", folder],
            "the store was read by tiny: name its folder or hub id",
        ),
        (
            [*COMPARE, "--store", folder, "--out", tmp_path / "o"],
            "the store was read by tiny: name",
        ),
        ([*BASELINE, "length", "--store", tmp_path], "there is no store here"),
        (
            [*COMPARE, "--store", folder, "--out", tmp_path / "o", "--baselines", "x"],
            "unknown baseline 'x'",
        ),
        ([*COMPARE, "--store", folder, "--out", file], "this is no folder; name one"),
        (
            [*COMPARE, "--store", folder, "--out", tmp_path / "o", "--costs", file],
            "not what python -m benchmarks.systems wrote",
        ),
    ):
        result = run(*arguments, code=2)
        assert words in " ".join(result.stderr.split())
