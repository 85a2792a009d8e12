"""`python -m experiments localise` as its user runs it, on a small store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.tokens.stored import stored
from tests.training.labelled import examples
from tests.training.stored import store_of


@pytest.fixture(scope="module")
def signals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("store")).store.folder


def test_it_prints_a_table_of_each_generator_and_writes_the_record(
    run, signals: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found.json"
    options = ["--store", signals, "--feature", "passages", "--profile", "none", "--bootstrap", 20]
    result = run("localise", *options, "--out", out)
    for words in ("g1: 40 responses, 20 hallucinated", "g2", "token classifier", "flag everything", "AUROC"):
        assert words in result.stdout
    made = json.loads(out.read_text())
    assert made["settings"]["columns"] == {"chosen": 3}
    assert made["settings"]["blocks"]["chosen"]["features"] == ["passages"]
    lines = made["generators"]["g2"]["lines"]
    assert lines["flag everything"]["spans"]["recall"][0] == 1
    same = json.loads(run("localise", *options, "--generator", "g1", "--generator", "g2", "--json").stdout)
    assert same == made


def test_bad_input_is_told(run, signals: Path, tmp_path: Path) -> None:
    bare = store_of(tmp_path / "bare", examples(20)).folder
    for options, words in (
        (["--store", bare], "has no signals; extract them"),
        (["--store", signals, "--feature", "nothing"], "unknown token feature 'nothing'; choose from"),
        (["--store", signals, "--profile", "none", "--profile", "norms"], "name it alone"),
        (["--store", signals, "--generator", "g9"], "no responses of 'g9'; there are: g1, g2"),
    ):
        result = run("localise", *options, code=2)
        assert words in " ".join(result.stderr.split())
