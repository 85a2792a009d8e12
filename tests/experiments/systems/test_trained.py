"""Weights that are trained in a fold, on some of its sources, and cached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.systems import entailment, lettuce, trained
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.training import IGNORED, Training
from experiments.systems.resources import Choices, Resources
from experiments.systems.trained import cached_weights, refuse_seen, seen_sources
from lrp4rag.example import Label
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from tests.experiments.systems.encoders.tiny import (
    save_tiny_classifier,
    save_tiny_encoder,
    save_tiny_marker,
    tiny_wordpiece,
)
from tests.experiments.systems.stand_ins import WordVectors, couples, rows_of
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
    monkeypatch.setattr(trained, "MINILM", tiny)
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())
    monkeypatch.setattr(entailment, "TRAINING", QUICK)
    monkeypatch.setattr(lettuce, "TRAINING", QUICK)


class Maker:
    """Writes a file, and keeps where."""

    def __init__(self):
        self.folders = []

    def __call__(self, folder):
        self.folders.append(folder)
        write_atomically(folder / "weights", str(len(self.folders)))


def test_weights_are_written_once(rows, tmp_path):
    make = Maker()
    first = cached_weights(Resources(tmp_path), rows, SETTINGS, make)
    assert first.parent == tmp_path / "weights"
    assert first.name.startswith("test-")
    assert cached_weights(Resources(tmp_path), rows, dict(SETTINGS), make) == first
    assert (first / "weights").read_text() == "1"
    # They are written elsewhere, and nothing is left there.
    assert len(make.folders) == 1
    assert make.folders[0] != first
    assert list(first.parent.iterdir()) == [first]


def test_where_another_process_was_faster_its_weights_are_taken(rows, tmp_path):
    def slow(folder):
        theirs = cached_weights(Resources(tmp_path / "elsewhere"), rows, SETTINGS, Maker())
        theirs.rename(folder.parent / theirs.name)
        (folder / "weights").write_text("ours")

    place = cached_weights(Resources(tmp_path), rows, SETTINGS, slow)
    assert (place / "weights").read_text() == "1"
    assert list(place.parent.iterdir()) == [place]


def test_other_rows_labels_settings_and_seeds_are_other_folders(rows, tmp_path):
    make, resources = Maker(), Resources(tmp_path)
    turned = Rows(rows.store, tuple(replace(one, labels=(Label(0, 3),)) for one in rows.examples))
    found = {
        cached_weights(resources, rows, SETTINGS, make),
        cached_weights(resources, rows.select(np.arange(19)), SETTINGS, make),
        cached_weights(resources, turned, SETTINGS, make),
        cached_weights(resources, rows, {**SETTINGS, "size": 2}, make),
        cached_weights(Resources(tmp_path, seed=1), rows, SETTINGS, make),
    }
    assert len(found) == len(make.folders) == 5


def test_without_a_folder_weights_last_as_long_as_the_resources(rows):
    make, resources = Maker(), Resources()
    place = cached_weights(resources, rows, SETTINGS, make)
    of_another_fold = replace(resources, training_rows=rows)
    assert cached_weights(of_another_fold, rows, SETTINGS, make) == place
    assert len(make.folders) == 1
    assert cached_weights(Resources(), rows, SETTINGS, make).parent != place.parent


def test_four_fifths_of_the_sources_are_learned_from(rows):
    seen = seen_sources(rows, 0)
    assert len(seen) == len(set(seen)) == 8
    assert set(seen) < set(rows.groups)
    # The order of rows and how many each source has do not matter.
    assert seen_sources(rows.select(np.arange(19, 0, -1)), 0).tolist() == seen.tolist()
    assert {tuple(sorted(seen_sources(rows, seed))) for seed in range(5)} != {tuple(sorted(seen))}


MODELS = [
    (entailment, entailment.entailment_of, "train_entailment", save_tiny_classifier),
    (entailment, entailment.ragulator_encoder_of, "train_entailment", save_tiny_classifier),
    (lettuce, lettuce.classifier_of, "train_classifier", save_tiny_marker),
]


@pytest.mark.parametrize(
    ("module", "model_of", "train", "save"), MODELS, ids=["entailment", "ragulator", "lettuce"]
)
def test_the_training_rows_less_some_sources_are_learned_from(
    rows, tmp_path, monkeypatch, module, model_of, train, save
):
    ids = []

    def stand_in(examples, _, folder, **_options):
        ids.append([one.id for one in examples])
        save(folder)

    monkeypatch.setattr(module, train, stand_in)
    fitted = Rows(rows.store, (*rows.examples[4:12], *couples(3, first=50)))
    resources = Resources(tmp_path, training_rows=rows)
    found, seen = model_of(fitted, resources), seen_sources(rows, 0)
    assert ids == [[one.id for one in rows.examples if one.source in seen]]
    assert found.unseen.tolist() == [one.source not in seen for one in fitted.examples]
    assert found.unseen[-6:].all()
    assert not found.unseen.all()
    # Another system, with other rows, takes the same weights.
    again = model_of(rows.select(np.arange(6)), Resources(tmp_path, training_rows=rows))
    assert len(ids) == 1
    assert again.model.name == found.model.name == next((tmp_path / "weights").iterdir()).name
    # Without training rows, those that are given are learned from.
    part = rows.select(np.arange(10))
    alone = model_of(part, Resources(tmp_path / "alone"))
    assert ids[1] == [one.id for one in part.examples if one.source in seen_sources(part, 0)]
    assert alone.unseen.sum() == 2


def test_a_published_model_has_seen_nothing(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "finetune", None)
    folder = save_tiny_marker(tmp_path / "published")
    resources = Resources(tmp_path / "r", Choices(token_classifier=folder))
    found = lettuce.classifier_of(rows, resources)
    assert found.unseen.all()
    assert found.model.name.startswith("published (")
    assert lettuce.classifier_of(rows.select([0]), resources).model is found.model
    assert not (tmp_path / "r" / "weights").exists()


def test_a_cross_encoder_learns_what_is_annotated_and_is_saved_as_safetensors(tmp_path):
    rows, resources = rows_of(couples(30), tmp_path / "s"), Resources(tmp_path / "r")
    said = ["It was a stone bridge.", "The old bridge 77 is red.", "A dragon burned it."]
    pairs = [("The old bridge 77 is red. It was a stone bridge.", text) for text in said]
    found = entailment.entailment_of(rows, resources)
    assert entailment.entailment_of(rows, resources).model is found.model  # loaded once
    (folder,) = (tmp_path / "r" / "weights").iterdir()
    assert {file.suffix for file in folder.iterdir()} == {".json", ".safetensors"}
    assert (found.model.name, found.model.support) == (folder.name, 1)
    assert found.model.model.config.id2label == entailment.LABELS
    support = found.model(pairs)
    assert support[2] < min(*support[:2], 0.5)
    # The same rows and seed make the same weights.
    again = entailment.entailment_of(rows, Resources(tmp_path / "again")).model
    assert again(pairs).tolist() == support.tolist()
    # They may be chosen by name later, but not for what they have seen.
    seen = seen_sources(rows, 0)
    choices = Choices(entailment=str(folder))
    refuse_seen(choices, [one for one in rows.examples if one.source not in seen])
    learned = sum(one.source in seen for one in rows.examples)
    with pytest.raises(InputError, match=rf"from {learned} of the responses .* --entailment out"):
        refuse_seen(choices, rows.examples)


@pytest.fixture
def items(monkeypatch):
    """What a model would learn from."""
    given = []

    def stand_in(model, _tokenizer, made, *_, **_options):
        given.extend(made)
        return model

    monkeypatch.setattr(trained, "finetune", stand_in)
    return given


def test_a_cross_encoder_learns_from_premise_and_sentence(tmp_path, items, monkeypatch):
    monkeypatch.setattr(entailment, "LONGEST", 40)
    entailment.train_entailment(couples(4), Resources(tmp_path), tmp_path)
    texts = [tiny_wordpiece().decode(item["input_ids"]) for item in items]
    assert len(texts) == 4 + 4 + 2
    assert [item["labels"] for item, text in zip(items, texts, strict=True) if "dragon" in text] == [0] * 4
    assert sum(item["labels"] for item in items) == 4
    assert all(text.count("[SEP]") == 2 for text in texts)
    assert all(len(item["input_ids"]) == len(item["token_type_ids"]) <= 40 for item in items)


def test_a_token_classifier_learns_from_all_windows_with_the_labels_of_their_tokens(tmp_path, items):
    lettuce.train_classifier(couples(1), Resources(tmp_path / "r"), tmp_path / "out")
    faithful, hallucinated = items
    assert set(faithful["labels"]) == {IGNORED, 0}
    found = np.array(hallucinated["input_ids"])[np.array(hallucinated["labels"]) == 1]
    assert tiny_wordpiece().convert_ids_to_tokens(found.tolist()) == ["a", "dragon", "burned", "it", "."]
    # What does not fit becomes several items, of which each has its own tokens' labels.
    items.clear()
    text = " ".join(["It was old."] * 90) + " A dragon burned it."
    example = bridge_example(response=text, labels=(Label(len(text) - 19, len(text)),))
    lettuce.train_classifier([example], Resources(tmp_path / "r"), tmp_path / "out")
    assert len(items) > 2
    assert [sum(one == 1 for one in item["labels"]) for item in items] == [0] * (len(items) - 1) + [5]
    assert sum(one != IGNORED for item in items for one in item["labels"]) == 4 * 90 + 5


def test_a_trained_token_classifier_marks_what_was_annotated(tmp_path):
    given = rows_of(couples(25), tmp_path / "s")
    judged = rows_of(couples(3, first=60), tmp_path / "s")
    resources = Resources(tmp_path / "r")
    scores = lettuce.LETTUCE.fit(given, resources).score(judged, resources)
    assert [one.flagged for one in scores] == [False, True] * 3
    for example, score in zip(judged.examples, scores, strict=True):
        marks = "".join(example.response[part.start : part.end] for part in score.suspects if part.marked)
        assert ("dragonburned" in marks) == bool(example.labels)
        assert "bridge" not in marks
    # Measurements are cached under the name of the weights.
    (folder,) = (tmp_path / "r" / "weights").iterdir()
    assert folder.name.startswith("lettuce-")
    assert folder.name in next((tmp_path / "r" / "measured").glob("lettuce-*/settings.json")).read_text()
