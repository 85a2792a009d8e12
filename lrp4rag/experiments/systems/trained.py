"""Encoders that are trained in the folds, on the rows a fold learns from less some sources that stay fresh.

Each is kept in a folder of the kit, named after the rows and settings it was made with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, grouped_folds
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments.systems.encoders.entailment import CrossEncoder
from lrp4rag.experiments.systems.encoders.running import encoded_pair, seeded
from lrp4rag.experiments.systems.encoders.training import Training, finetune
from lrp4rag.experiments.systems.encoders.weights import MINILM, load_encoder
from lrp4rag.experiments.systems.kit import Choices, Kit, Trained
from lrp4rag.experiments.systems.lessons import CHUNK_WORDS, SHORTEST, UNRELATED, lessons_of
from lrp4rag.files import folder_written_whole, read_bytes, remove_leftovers, write_atomically
from lrp4rag.strict_json import LARGEST, parse

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows

M = TypeVar("M")

FRESH = 0.2
"""The part of the sources that weights are not trained on, so that their users can be calibrated."""
ENTAILMENT = Training(epochs=2, rate=1e-4)
LONGEST = 256
LESSONS = "lrp4rag_lessons.json"
"""Beside the weights: hashes of the question and passages that they learned from."""
LABELS = {0: "not supported", 1: "supported"}


def trained_here(
    rows: Rows,
    kit: Kit,
    settings: dict[str, Any],
    train: Callable[[list[Example], Kit, Path], None],
    load: Callable[[Path], M],
    lessons: Rows | None = None,
) -> Trained[M]:
    """The model that `train` makes of the kit's lessons (or others), less the sources that stay fresh, and
    `load` reads; trained once for the same lessons and settings."""
    learned = lessons or kit.lessons or rows
    known = learned_sources(learned, kit.seed)
    folder = kept(kit, learned, settings, lambda to: train(examples_of(learned, known), kit, to))
    model = kit.once(settings["kind"], lambda: load(folder), of=str(folder))
    return Trained(model, ~np.isin(rows.groups, known))


def check_fresh(rows: Rows, fresh: NDArray[np.bool_], seed: int) -> None:
    """Raise `InputError` where fresh sources are too few to calibrate by."""
    try:
        grouped_folds(rows.labels[fresh], rows.groups[fresh], CALIBRATION_FOLDS, seed)
    except InputError as error:
        every, few = len(set(rows.groups)), len(set(rows.groups[fresh]))
        raise InputError(
            f"of {every} sources to learn from, a model is trained on all but {few}; these calibrate it, but "
            f"{error}; extract more sources, or draw more for slow systems (--sources)"
        ) from error


def trained_entailment(rows: Rows, kit: Kit) -> Trained[CrossEncoder]:
    """A cross-encoder from MiniLM, trained on annotated sentences of the kit's lessons."""

    def load(folder: Path) -> CrossEncoder:
        return replace(CrossEncoder.load(str(folder), kit.choices.device), name=folder.name)

    settings = {
        "kind": "entailment",
        "training": asdict(ENTAILMENT),
        "words": [CHUNK_WORDS, SHORTEST],
        "unrelated": UNRELATED,
        "tokens": LONGEST,
    }
    return trained_here(rows, kit, settings, train_entailment, load)


def train_entailment(examples: list[Example], kit: Kit, folder: Path) -> None:
    """Train on labelled examples and save model and tokenizer to a folder."""
    from transformers import AutoModelForSequenceClassification

    with seeded(kit.seed):  # the new head is drawn
        model, tokenizer = load_encoder(
            MINILM,
            AutoModelForSequenceClassification,
            device=kit.choices.device,
            num_labels=len(LABELS),
            attention_probs_dropout_prob=ENTAILMENT.attention_dropout,
            id2label=LABELS,
            label2id={label: k for k, label in LABELS.items()},
        )
    lessons = lessons_of(examples, kit.embedder, kit.seed)
    items = [
        dict(encoded_pair(tokenizer, *one.pair, LONGEST)) | {"labels": int(one.supported)} for one in lessons
    ]
    save(finetune(model, tokenizer, items, ENTAILMENT, "training entailment"), tokenizer, folder)
    note_lessons(examples, folder)


def note_lessons(examples: Sequence[Example], folder: Path) -> None:
    """Beside weights that may be chosen by name later."""
    hashes = sorted({example.content_hash for example in examples})
    write_atomically(folder / LESSONS, json.dumps(hashes) + "\n")


def refuse_learned(choices: Choices, examples: Sequence[Example]) -> None:
    """Raise `InputError` where a model that was trained here has learned from these examples' sources, and
    where what it learned from cannot be read."""
    for option, name in (
        ("--entailment", choices.entailment),
        ("--token-classifier", choices.token_classifier),
    ):
        if name is None:
            continue
        known = _known_lessons(Path(name) / LESSONS)
        seen = [example.id for example in examples if example.content_hash in known]
        if seen:
            raise InputError(
                f"this model has learned from {len(seen)} of the responses (first: '{seen[0]}'); train it on "
                f"others, or leave {option} out, which trains it inside the folds",
                path=name,
            )


def _known_lessons(note: Path) -> set[str]:
    """The hashes in a model's note; none where there is no note, or no such folder (a hub id)."""
    try:
        hashes = parse(read_bytes(note, LARGEST))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except ValueError as error:
        raise InputError(f"not a list of what a model learned from: {error}", path=note) from error
    if not isinstance(hashes, list) or not all(isinstance(one, str) for one in hashes):
        raise InputError("not a list of what a model learned from", path=note)
    return set(hashes)


def learned_sources(rows: Rows, seed: int) -> NDArray[np.str_]:
    """The sources that weights are trained on, drawn once."""
    order: NDArray[np.str_] = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    return order[: round((1 - FRESH) * len(order))]


def kept(kit: Kit, rows: Rows, settings: dict[str, Any], make: Callable[[Path], None]) -> Path:
    """The folder of what `make` writes, written once: whole or not at all."""
    content = json.dumps([settings, rows.digest, kit.seed, FRESH, MINILM], sort_keys=True)
    name = f"{settings['kind']}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    place = kit.weights_folder / name
    if not place.is_dir():
        kit.weights_folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(kit.weights_folder)
        try:
            with folder_written_whole(place) as partial:
                make(partial)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise
    return place


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Weights as safetensors."""
    model.save_pretrained(folder, safe_serialization=True)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def examples_of(rows: Rows, sources: NDArray[np.str_]) -> list[Example]:
    inside = set(sources.tolist())
    return [example for example in rows.examples if example.source in inside]
