"""`python -m experiments entailment`, with a tiny encoder in MiniLM's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.systems import entailment, trained
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.entailment import CrossEncoder
from experiments.systems.encoders.training import Training
from tests.experiments.systems.encoders.tiny import save_tiny_encoder
from tests.experiments.systems.stand_ins import WordVectors
from tests.experiments.tokens.stored import stored
from tests.training.labelled import examples, write_jsonl


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trained, "MINILM", save_tiny_encoder(tmp_path / "tiny"))
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())
    monkeypatch.setattr(entailment, "TRAINING", Training(epochs=1, batch=8))


def test_a_model_is_trained_and_refused_where_it_has_learned(run, tmp_path: Path) -> None:
    data = write_jsonl(examples(20), tmp_path / "train.jsonl")
    out = tmp_path / "model"
    assert str(out) in run("entailment", data, "--out", out).stdout
    model = CrossEncoder.load(str(out))
    assert model.support == 1
    assert ((model([("a bridge", "it is")]) >= 0) & (model([("a bridge", "it is")]) <= 1)).all()
    assert list(out.glob("*.safetensors"))
    assert not list(out.glob("*.bin"))
    store = stored(tmp_path / "store", count=20).store.folder
    options = [
        "--store",
        store,
        "--reader",
        "smollm2-135m",
        "--entailment",
        out,
        "--cache",
        tmp_path / "work",
        "--bootstrap",
        20,
    ]
    refused = run("baseline", "entailment", *options, code=2)
    assert "has learned from" in refused.stderr
    other = write_jsonl(examples(20, first=50), tmp_path / "other.jsonl")
    run("entailment", other, "--out", tmp_path / "second")
    options[5] = tmp_path / "second"
    unseen = write_jsonl(examples(2, first=50), tmp_path / "unseen.jsonl")
    assert "has learned from" in run("baseline", "entailment", unseen, *options, code=2).stderr


def test_bad_input_is_told(run, tmp_path: Path) -> None:
    data = write_jsonl(examples(4), tmp_path / "train.jsonl")
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"question": "Who?", "passages": ["She."], "response": "She.", "labels": []}\n')
    for arguments, words in (
        ([data, "--out", tmp_path], "needs a new or empty folder"),
        ([bare, "--out", tmp_path / "m"], "no response here has annotated spans"),
    ):
        assert words in run("entailment", *arguments, code=2).stderr
