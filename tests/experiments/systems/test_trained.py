"""Weights that are trained in a fold, on some of its sources, and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from lrp4rag.errors import InputError
from lrp4rag.example import Label
from lrp4rag.experiments.systems import trained
from lrp4rag.experiments.systems.encoders.embedder import Embedder
from lrp4rag.experiments.systems.encoders.entailment import CrossEncoder
from lrp4rag.experiments.systems.encoders.training import Training
from lrp4rag.experiments.systems.kit import Kit, Trained
from lrp4rag.experiments.systems.taught import Taught
from lrp4rag.experiments.systems.trained import examples_of, kept, learned_sources, trained_entailment
from lrp4rag.experiments.systems.words import LENGTH
from lrp4rag.files import write_atomically
from lrp4rag.reader import reader
from lrp4rag.training.rows import Rows
from tests.experiments.systems.couples import couples, rows_of
from tests.experiments.systems.encoders.tiny import save_tiny_encoder
from tests.experiments.systems.entailed_kit import WordVectors


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return rows_of(couples(10), tmp_path_factory.mktemp("rows") / "s")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_encoder(tmp_path_factory.mktemp("minilm") / "bert", initializer_range=0.1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tiny: str) -> None:
    """A tiny encoder for MiniLM, and vectors of words for its embeddings."""
    monkeypatch.setattr(trained, "MINILM", tiny)
    monkeypatch.setattr(Embedder, "load", lambda **_: WordVectors())
    monkeypatch.setattr(trained, "ENTAILMENT", Training(epochs=8, rate=5e-3, batch=8))
    monkeypatch.setattr(reader, "fastest_dtype", lambda device: "float32")


# What is kept.

SETTINGS = {"kind": "test", "size": 1}


class Maker:
    """Writes a file, and counts how often."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def __call__(self, folder: Path) -> None:
        self.folders.append(folder)
        write_atomically(folder / "weights", str(len(self.folders)))


def test_weights_are_written_once(rows: Rows, tmp_path: Path) -> None:
    make = Maker()
    first = kept(Kit(tmp_path), rows, SETTINGS, make)
    assert first.parent == tmp_path / "weights"
    assert first.name.startswith("test-")
    assert kept(Kit(tmp_path), rows, dict(SETTINGS), make) == first
    assert (first / "weights").read_text() == "1"
    # They are made elsewhere, and nothing is left there.
    assert len(make.folders) == 1
    assert make.folders[0] != first
    assert list(first.parent.iterdir()) == [first]


def test_a_failure_leaves_nothing_behind(rows: Rows, tmp_path: Path) -> None:
    def broken(folder: Path) -> None:
        Maker()(folder)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        kept(Kit(tmp_path), rows, SETTINGS, broken)
    assert list((tmp_path / "weights").iterdir()) == []
    assert (kept(Kit(tmp_path), rows, SETTINGS, Maker()) / "weights").is_file()


def test_where_another_process_was_faster_its_weights_are_taken(rows: Rows, tmp_path: Path) -> None:
    def slow(folder: Path) -> None:
        kept(Kit(tmp_path / "elsewhere"), rows, SETTINGS, Maker())
        (tmp_path / "elsewhere" / "weights").rename(tmp_path / "theirs")
        (theirs,) = (tmp_path / "theirs").iterdir()
        theirs.rename(folder.parent / theirs.name)
        (folder / "weights").write_text("ours")

    place = kept(Kit(tmp_path), rows, SETTINGS, slow)
    assert (place / "weights").read_text() == "1"
    assert list(place.parent.iterdir()) == [place]


def test_other_rows_labels_settings_and_seeds_are_other_folders(rows: Rows, tmp_path: Path) -> None:
    make, kit = Maker(), Kit(tmp_path)
    turned = [replace(one, labels=(Label(0, 3),)) for one in rows.examples]
    found = {
        kept(kit, rows, SETTINGS, make),
        kept(kit, rows.select(np.arange(19)), SETTINGS, make),
        kept(kit, Rows(rows.store, tuple(turned)), SETTINGS, make),
        kept(kit, rows, {**SETTINGS, "size": 2}, make),
        kept(Kit(tmp_path, seed=1), rows, SETTINGS, make),
    }
    assert len(found) == len(make.folders) == 5


def test_without_a_folder_weights_last_as_long_as_the_kit(rows: Rows) -> None:
    make, kit, other = Maker(), Kit(), Kit()
    place = kept(kit, rows, SETTINGS, make)
    assert kept(replace(kit, lessons=rows), rows, SETTINGS, make) == place  # the kit of another fold
    assert len(make.folders) == 1
    assert kept(other, rows, SETTINGS, make).parent != place.parent


# What is learned from.


def test_four_fifths_of_the_sources_are_learned_from(rows: Rows) -> None:
    known = learned_sources(rows, 0)
    assert len(known) == len(set(known)) == 8
    assert set(known) < set(rows.groups)
    assert learned_sources(rows, 0).tolist() == known.tolist()
    # The order of rows and how many each source has do not matter.
    assert learned_sources(rows.select(np.arange(19, 0, -1)), 0).tolist() == known.tolist()
    assert {tuple(sorted(learned_sources(rows, seed))) for seed in range(5)} != {tuple(sorted(known))}


def test_examples_of_sources_are_whole_and_in_order(rows: Rows) -> None:
    known = learned_sources(rows, 0)
    found = examples_of(rows, known)
    assert found == [one for one in rows.examples if one.source in known]
    assert len(found) == 16


# Entailment.


def trainer(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Ids of the examples of each training; what is written is an untrained classifier."""
    seen: list[list[str]] = []

    def stand_in(examples: Any, kit: Kit, folder: Path) -> None:
        seen.append([one.id for one in examples])
        model = AutoModelForSequenceClassification.from_pretrained(
            trained.MINILM, num_labels=2, id2label=trained.LABELS
        )
        trained.save(model, AutoTokenizer.from_pretrained(trained.MINILM), folder)

    monkeypatch.setattr(trained, "train_entailment", stand_in)
    return seen


def test_the_kits_lessons_are_learned_from_and_their_sources_are_not_fresh(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = trainer(monkeypatch)
    others = couples(3, first=50)
    fitted = Rows(rows.store, (*rows.examples[4:12], *others))
    found = trained_entailment(fitted, Kit(tmp_path, lessons=rows))
    known = learned_sources(rows, 0)
    assert seen == [[one.id for one in examples_of(rows, known)]]
    assert found.fresh.tolist() == [one.source not in known for one in fitted.examples]
    assert found.fresh[-6:].all()
    assert not found.fresh.all()
    # Another baseline, with other rows, takes the same weights.
    again = trained_entailment(rows.select(np.arange(6)), Kit(tmp_path, lessons=rows))
    assert len(seen) == 1
    assert again.model.name == found.model.name == next((tmp_path / "weights").iterdir()).name


def test_without_lessons_the_rows_given_are_learned_from(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = trainer(monkeypatch)
    part = rows.select(np.arange(10))
    found = trained_entailment(part, Kit(tmp_path))
    known = learned_sources(part, 0)
    assert seen == [[one.id for one in examples_of(part, known)]]
    assert set(rows.groups[:10][found.fresh]) == set(rows.groups[:10]) - set(known)
    assert found.fresh.sum() == 2


@pytest.mark.parametrize(
    ("fresh", "told"), [(1.0, "^5 folds need"), (0.5, "^of 4 sources .* all but 2; these")]
)
def test_few_sources_are_told_of_training_only_where_there_was_any(
    tmp_path: Path, fresh: float, told: str
) -> None:
    rows = rows_of(couples(4), tmp_path / "s")
    own = np.isin(rows.groups, np.unique(rows.groups)[: round(4 * fresh)])
    baseline = Taught(LENGTH.facts, lambda rows, kit: Trained("model", own), lambda model: LENGTH)
    with pytest.raises(InputError, match=told):
        baseline.fit(rows, Kit())


def test_a_cross_encoder_learns_what_is_annotated_and_is_kept_as_safetensors(tmp_path: Path) -> None:
    rows, kit = rows_of(couples(30), tmp_path / "s"), Kit(tmp_path / "kit")
    found = trained_entailment(rows, kit)
    assert trained_entailment(rows, kit).model is found.model  # loaded once
    (folder,) = (tmp_path / "kit" / "weights").iterdir()
    assert {file.suffix for file in folder.iterdir()} == {".json", ".safetensors"}
    assert (found.model.name, found.model.support) == (folder.name, 1)
    assert found.model.model.config.id2label == trained.LABELS
    premise = "The old bridge 77 is red. It was a stone bridge."
    texts = ["It was a stone bridge.", "The old bridge 77 is red.", "A dragon burned it."]
    support = found.model([(premise, text) for text in texts])
    assert support[2] < support[:2].min()
    assert support[2] < 0.5
    # The same rows and seed make the same weights.
    again = trained_entailment(rows, Kit(tmp_path / "again")).model([(premise, text) for text in texts])
    assert again.tolist() == support.tolist()


def test_a_sentence_that_exceeds_what_is_read_is_cut_off(tmp_path: Path) -> None:
    long = [
        replace(one, response=one.response + " " + "it was red " * 200, labels=one.labels)
        for one in couples(2)
    ]
    trained.train_entailment(long, Kit(tmp_path), tmp_path)
    assert CrossEncoder.load(str(tmp_path))([("it", "it was red")]).shape == (1,)


def test_what_is_learned_from_is_premise_and_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def stand_in(model: Any, tokenizer: Any, items: Any, training: Training, label: str) -> Any:
        given.extend((tokenizer.decode(item["input_ids"]), item) for item in items)
        return model

    monkeypatch.setattr(trained, "finetune", stand_in)
    monkeypatch.setattr(trained, "LONGEST", 40)
    trained.train_entailment(couples(4), Kit(tmp_path), tmp_path)
    texts = [text for text, _ in given]
    assert len(texts) == 4 + 4 + 2
    assert [item["labels"] for text, item in given if "dragon" in text] == [0] * 4
    assert sum(item["labels"] for _, item in given) == 4
    assert all(text.count("[SEP]") == 2 for text in texts)
    assert all(len(item["input_ids"]) == len(item["token_type_ids"]) <= 40 for _, item in given)
