"""Commands of the research as their user runs them: a small model of entailment, and localisation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.systems import entailment
from experiments.systems.encoders import CrossEncoder, Embedder
from tests.experiments.systems.stand_ins import WordVectors
from tests.experiments.systems.tiny import save_tiny_encoder
from tests.experiments.tokens.stored import stored
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import few_steps
from tests.training.stored import store_of


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tiny encoder in MiniLM's place."""
    monkeypatch.setattr(entailment, "MINILM", save_tiny_encoder(tmp_path / "tiny"))
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())


@pytest.mark.usefixtures("tiny")
def test_a_model_of_entailment_is_trained_and_refused_where_it_has_learned(run, tmp_path: Path) -> None:
    data, out = write_jsonl(examples(20), tmp_path / "train.jsonl"), tmp_path / "model"
    assert str(out) in run("entailment", data, "--out", out).stdout
    model = CrossEncoder.load(str(out))
    assert model.support == 1
    assert 0 <= model([("a bridge", "it is")])[0] <= 1
    assert list(out.glob("*.safetensors"))
    assert not list(out.glob("*.bin"))
    options = ["--store", stored(tmp_path / "store", count=20).store.folder, "--reader", "smollm2-135m"]
    options += ["--entailment", out, "--cache", tmp_path / "cache"]
    refused = run("baseline", "entailment", *options, code=2)
    assert "has learned from" in refused.stderr
    (out / "lrp4rag_lessons.json").write_text("{}")
    assert "not a list" in run("baseline", "entailment", *options, code=2).stderr


def test_data_without_spans_and_a_folder_in_use_are_refused(run, tmp_path: Path) -> None:
    data = write_jsonl(examples(4), tmp_path / "train.jsonl")
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"question": "Who?", "passages": ["She."], "response": "She.", "labels": []}\n')
    for arguments, words in (
        ([data, "--out", tmp_path], "new or empty folder"),
        ([bare, "--out", tmp_path / "m"], "annotated spans"),
    ):
        assert words in run("entailment", *arguments, code=2).stderr


@pytest.fixture(scope="module")
def signals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("store")).store.folder


def test_localisation_prints_a_table_of_each_generator_and_writes_the_record(
    run, signals: Path, tmp_path: Path
) -> None:
    out = tmp_path / "record.json"
    options = ["--store", signals, "--block", "likelihood", "--bootstrap", 20]
    with few_steps():
        result = run("localise", *options, "--out", out)
        again = run("localise", *options, "--generator", "g1", "--generator", "g2", "--json")
    for words in ("g1: 40 responses, 20 hallucinated", "g2", "token classifier", "flag everything", "AUROC"):
        assert words in result.stdout
    record = json.loads(out.read_text())
    assert list(record["settings"]["blocks"]) == ["likelihood"]
    assert record["generators"]["g2"]["lines"]["flag everything"]["spans"]["recall"][0] == 1
    assert json.loads(again.stdout) == record


def test_localisation_names_what_is_missing(run, signals: Path, tmp_path: Path) -> None:
    bare = store_of(tmp_path / "bare", examples(20)).folder
    for options, words in (
        (["--store", bare, "--block", "signals"], "has no signals"),
        (["--store", signals, "--block", "nothing"], "unknown block 'nothing'"),
        (["--store", signals, "--generator", "g9"], "no responses of 'g9'"),
    ):
        assert words in " ".join(run("localise", *options, code=2).stderr.split())
