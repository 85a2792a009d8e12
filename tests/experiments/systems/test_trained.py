"""Weights that are trained in a fold, on some of its sources, and cached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.systems import entailment, lettuce
from experiments.systems.encoders import IGNORED, Embedder, Training
from experiments.systems.resources import Resources, seen_sources
from lrp4rag.example import Label
from lrp4rag.training.rows import Rows
from lrp4rag.util.files import write_atomically
from tests.experiments.systems.stand_ins import WordVectors, couples, judged, rows_of
from tests.experiments.systems.tiny import save_tiny_encoder, tiny_wordpiece
from tests.tiny import bridge_example

SETTINGS = {"kind": "test", "size": 1}
QUICK = Training(epochs=6, rate=5e-3, batch=8)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return rows_of(couples(10), tmp_path_factory.mktemp("rows") / "s")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("minilm") / "bert", initializer_range=0.1)


@pytest.fixture(autouse=True)
def quick(monkeypatch, tiny):
    """A tiny encoder for MiniLM, and vectors of words for its embeddings."""
    monkeypatch.setattr(entailment, "MINILM", tiny)
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())
    monkeypatch.setattr(entailment, "TRAINING", QUICK)
    monkeypatch.setattr(lettuce, "TRAINING", QUICK)


def trained(resources, rows, settings=SETTINGS, folders=None, **options):
    """The text of the weights, which are the number of the training."""
    folders = [] if folders is None else folders

    def train(examples, folder):
        folders.append(folder)
        write_atomically(folder / "weights", str(len(folders)))

    return resources.trained(rows, settings, train, lambda folder: Path(folder) / "weights", **options)


def test_weights_are_written_once(rows, tmp_path):
    folders = []
    first, _ = trained(Resources(Cache(tmp_path)), rows, folders=folders)
    assert first.parent.name.startswith("test-")
    assert first.parent.parent == tmp_path / "weights"
    assert trained(Resources(Cache(tmp_path)), rows, dict(SETTINGS), folders)[0] == first
    assert first.read_text() == "1"
    # They are written elsewhere, and nothing is left there.
    assert len(folders) == 1
    assert folders[0] != first.parent
    assert list(first.parent.parent.iterdir()) == [first.parent]


def test_other_rows_labels_settings_and_seeds_are_other_folders(rows, tmp_path):
    resources = Resources(Cache(tmp_path))
    turned = Rows(rows.store, tuple(replace(one, labels=(Label(0, 3),)) for one in rows.examples))
    found = {
        trained(resources, rows)[0],
        trained(resources, rows.select(np.arange(19)))[0],
        trained(resources, turned)[0],
        trained(resources, rows, {**SETTINGS, "size": 2})[0],
        trained(Resources(Cache(tmp_path), seed=1), rows)[0],
        trained(resources, rows, training_rows=rows.select(np.arange(10)))[0],
    }
    assert len(found) == 6


def test_four_fifths_of_the_sources_are_learned_from(rows):
    seen = seen_sources(rows, 0)
    assert len(seen) == len(set(seen)) == 8
    assert set(seen) < set(rows.groups)
    # The order of rows and how many each source has do not matter.
    assert seen_sources(rows.select(np.arange(19, 0, -1)), 0).tolist() == seen.tolist()
    assert {tuple(sorted(seen_sources(rows, seed))) for seed in range(5)} != {tuple(sorted(seen))}


def test_the_training_rows_less_some_sources_are_learned_from(rows, tmp_path):
    seen, ids = set(seen_sources(rows, 0)), []
    given = Rows(rows.store, (*rows.examples[4:12], *couples(3, first=50)))
    resources = Resources(Cache(tmp_path), training_rows=rows)

    def train(examples, folder):
        ids.extend(one.id for one in examples)
        write_atomically(folder / "weights", "")

    _, unseen = resources.trained(given, SETTINGS, train, str)
    assert ids == [one.id for one in rows.examples if one.source in seen]
    assert unseen.tolist() == [one.source not in seen for one in given.examples]
    assert unseen[-6:].all()
    assert not unseen.all()


def test_a_cross_encoder_learns_what_is_annotated_and_is_saved_as_safetensors(tmp_path):
    rows, resources = rows_of(couples(30), tmp_path / "s"), Resources(Cache(tmp_path / "r"))
    said = ["It was a stone bridge.", "The old bridge 77 is red.", "A dragon burned it."]
    pairs = [("The old bridge 77 is red. It was a stone bridge.", text) for text in said]
    found = entailment.entailment_of(rows, resources)
    assert entailment.entailment_of(rows, resources).model is found.model  # loaded once
    (folder,) = (tmp_path / "r" / "weights").iterdir()
    assert {file.suffix for file in folder.iterdir()} == {".json", ".safetensors"}
    assert found.model.name.startswith(f"{folder.name} (")
    support = found.model(pairs)
    assert support[2] < min(*support[:2], 0.5)
    # The same rows and seed make the same weights.
    again = entailment.entailment_of(rows, Resources(Cache(tmp_path / "again"))).model
    assert again(pairs).tolist() == support.tolist()


@pytest.fixture
def items(monkeypatch):
    """What a model would learn from."""
    given = []

    def stand_in(model, _tokenizer, made, *_, **_options):
        given.extend(made)
        return model

    for module in (entailment, lettuce):
        monkeypatch.setattr(module, "finetune", stand_in)
    return given


def test_a_cross_encoder_learns_from_premise_and_sentence(tmp_path, items, monkeypatch):
    monkeypatch.setattr(entailment, "LONGEST", 40)
    entailment.train_entailment(couples(4), Resources(Cache(tmp_path)), tmp_path)
    texts = [tiny_wordpiece().decode(item["input_ids"]) for item in items]
    assert len(texts) == 4 + 4 + 2
    assert [item["labels"] for item, text in zip(items, texts, strict=True) if "dragon" in text] == [0] * 4
    assert sum(item["labels"] for item in items) == 4
    assert all(text.count("[SEP]") == 2 for text in texts)
    assert all(len(item["input_ids"]) == len(item["token_type_ids"]) <= 40 for item in items)


def test_a_token_classifier_learns_from_all_windows_with_the_labels_of_their_tokens(tmp_path, items):
    lettuce.train_classifier(couples(1), Resources(), QUICK)
    faithful, hallucinated = items
    assert set(faithful["labels"]) == {IGNORED, 0}
    found = np.array(hallucinated["input_ids"])[np.array(hallucinated["labels"]) == 1]
    assert tiny_wordpiece().convert_ids_to_tokens(found.tolist()) == ["a", "dragon", "burned", "it", "."]
    # What does not fit becomes several items, of which each has its own tokens' labels.
    items.clear()
    text = " ".join(["It was old."] * 90) + " A dragon burned it."
    example = bridge_example(response=text, labels=(Label(len(text) - 19, len(text)),))
    lettuce.train_classifier([example], Resources(), QUICK)
    assert len(items) > 2
    assert [sum(one == 1 for one in item["labels"]) for item in items] == [0] * (len(items) - 1) + [5]
    assert sum(one != IGNORED for item in items for one in item["labels"]) == 4 * 90 + 5


def test_a_trained_token_classifier_marks_what_was_annotated(tmp_path):
    given = rows_of(couples(25), tmp_path / "s")
    others = rows_of(couples(3, first=60), tmp_path / "s")
    resources = Resources(Cache(tmp_path / "r"))
    scores = judged(lettuce.LETTUCE.fit(given, resources), others, resources)
    assert [one.flagged for one in scores] == [False, True] * 3
    for example, score in zip(others.examples, scores, strict=True):
        marks = "".join(example.response[start:end] for start, end, _, mark in score.parts if mark)
        assert ("dragonburned" in marks) == bool(example.labels)
        assert "bridge" not in marks
