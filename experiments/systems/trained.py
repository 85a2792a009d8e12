"""Weights that are trained in the folds, on the sources of the training rows less some that stay unseen.

They are cached in the folder of the resources, named after the rows and settings that they depend on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.baseline import TrainedModel
from experiments.systems.encoders.running import seeded
from experiments.systems.encoders.training import AfterEpoch, Item, Training, finetune
from experiments.systems.encoders.weights import MINILM, load_encoder
from experiments.systems.resources import Choices, Resources
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import folder_written_whole, read_bytes, remove_leftovers, write_atomically
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import LARGEST, parse

UNSEEN = 0.2  # the part of the sources that weights are not trained on, so that they can be calibrated
SEEN_FILE = "lrp4rag_lessons.json"  # beside the weights: hashes of question and passages they learned from


def model_of_fold(
    rows: Rows,
    resources: Resources,
    settings: dict[str, Any],
    train: Callable[[list[Example], Resources, Path], None],
    load: Callable[[str], Any],
    *,
    published: str | None = None,
    training_rows: Rows | None = None,
) -> TrainedModel[Any]:
    """The `published` model if one was chosen, which has seen none of the rows; else the model that `train`
    writes to a folder, trained once for the same training rows and settings.

    The training rows are those of the resources, unless others are given, less the sources that stay unseen.
    """
    kind = settings["kind"]
    if published is not None:
        model = resources.once(f"published {kind}", lambda: load(published))
        return TrainedModel(model, np.ones(len(rows), dtype=bool))
    learned = training_rows or resources.training_rows or rows
    seen = seen_sources(learned, resources.seed)
    examples = [one for one in learned.examples if one.source in set(seen.tolist())]
    folder = cached_weights(resources, learned, settings, lambda to: train(examples, resources, to))
    model = resources.once(kind, lambda: replace(load(str(folder)), name=folder.name), of=str(folder))
    return TrainedModel(model, ~np.isin(rows.groups, seen))


def seen_sources(rows: Rows, seed: int) -> NDArray[np.str_]:
    """The sources that weights are trained on, drawn once."""
    order: NDArray[np.str_] = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    return order[: round((1 - UNSEEN) * len(order))]


def cached_weights(
    resources: Resources, rows: Rows, settings: dict[str, Any], write: Callable[[Path], None]
) -> Path:
    """The folder of what `write` writes, written once: whole or not at all."""
    content = json.dumps([settings, rows.digest, resources.seed, UNSEEN, MINILM], sort_keys=True)
    name = f"{settings['kind']}-{hash_of(content)[:16]}"
    place = resources.weights_folder / name
    if not place.is_dir():
        resources.weights_folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(resources.weights_folder)
        try:
            with folder_written_whole(place) as partial:
                write(partial)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise
    return place


def train_encoder(
    kind: Any,
    items_of: Callable[[Any, Any], list[Item]],
    examples: Sequence[Example],
    resources: Resources,
    folder: Path | None,
    training: Training,
    label: str,
    after_epoch: AfterEpoch | None = None,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Train MiniLM under a new head on the items that `items_of` makes for model and tokenizer; save both to
    a folder, if there is one. `kind` is the class of transformers that loads it."""
    with seeded(resources.seed):  # the head is drawn
        options = {"num_labels": 2, "attention_probs_dropout_prob": training.attention_dropout} | dict(config)
        model, tokenizer = load_encoder(MINILM, kind, device=resources.choices.device, **options)
    items = items_of(model, tokenizer)
    trained = finetune(model, tokenizer, items, training, label, after_epoch=after_epoch)
    if folder is None:
        return
    save(trained, tokenizer, folder)
    # Beside weights that may be chosen by name later.
    hashes = sorted({example.content_hash for example in examples})
    write_atomically(folder / SEEN_FILE, json.dumps(hashes) + "\n")


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Weights as safetensors."""
    model.save_pretrained(folder, safe_serialization=True)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def refuse_seen(choices: Choices, examples: Sequence[Example]) -> None:
    """Raise `InputError` where a model that was trained here has learned from these examples' sources, and
    where the list of what it learned from cannot be read."""
    named = {"--entailment": choices.entailment, "--token-classifier": choices.token_classifier}
    for option, name in named.items():
        if name is None:
            continue
        known = _seen_hashes(Path(name) / SEEN_FILE)
        seen = [example.id for example in examples if example.content_hash in known]
        if seen:
            raise InputError(
                f"this model has learned from {len(seen)} of the responses (first: '{seen[0]}'); train it on "
                f"others, or leave {option} out, which trains it inside the folds",
                path=name,
            )


def _seen_hashes(file: Path) -> set[str]:
    """None without such a file, or such a folder (a hub id)."""
    try:
        hashes = parse(read_bytes(file, LARGEST))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except ValueError as error:
        raise InputError(f"not a list of what a model learned from: {error}", path=file) from error
    if not isinstance(hashes, list) or not all(isinstance(one, str) for one in hashes):
        raise InputError("not a list of what a model learned from", path=file)
    return set(hashes)
