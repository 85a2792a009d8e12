"""Stores made by hand: every part, with numbers that say where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, SEGMENTS
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import FORMER_SEGMENTS, Configuration, Store
from tests.classifiers.samples import READER, relevance_of
from tests.features.records import random_record
from tests.training.labelled import examples

SIGNALS, SENTENCES = FORMER_SEGMENTS, "sentences"
"""Parts that earlier versions and the research write."""
CONFIGURATION = Configuration(READER, "attnlrp")


def fill(store: Store, example: Example, parts: Sequence[str], value: float = 1.0) -> None:
    """Relevance of `value` a token; its words are the tokens."""
    words = len(example.response.split(" "))
    store.write(example, relevance_of(np.full(words, value), text=example.response))
    if SEGMENTS in parts:
        store.write_arrays(example, SEGMENTS, {"by_segment": np.full((4, words), value)})
    if SIGNALS in parts:
        line = np.full(words, value)
        arrays = {"logits": line, "logprob": line, "entropy": line, "by_segment": np.full((4, words), value)}
        store.write_arrays(example, SIGNALS, arrays | {"rank": np.arange(words, dtype=np.int32)})
    if SENTENCES in parts:
        arrays = {"sentences": np.full((1, 4), value / 4), "tokens": np.array([words])}
        store.write_arrays(example, SENTENCES, arrays | {"spans": np.array([[0, len(example.response)]])})
    if READING in parts:
        line = np.full(words, value)
        likelihoods = {"logprob": line, "entropy": line, "rank": np.arange(words, dtype=np.int32)}
        store.write_record(example, random_record(words, text=example.response, **likelihoods))
    if PROMPT in parts:
        store.write_arrays(example, PROMPT, {"prompt": np.full(4, value / 4)})
    for part in parts:
        if part.startswith("matrix-"):
            store.write_arrays(example, part, {"matrix": np.full((3, 2), value)})


def store_of(folder: Path, rows: Sequence[Example], parts: Sequence[str] = (), **changes) -> Store:
    """Row k has relevance k + 1."""
    store = Store.open(folder, Configuration(**{"reader": READER, "composite": "attnlrp", **changes}))
    store.add_examples(rows)
    for k, row in enumerate(rows):
        fill(store, row, parts, k + 1.0)
    return store


def stored(folder: Path, count: int = 40) -> Rows:
    """Readings and relevance of responses by two generators. The first word of every second one is labelled:
    other tokens are likelier than it, its relevance is low and the first feature of its state high."""
    store = Store.open(folder, CONFIGURATION)
    rows = [*examples(count), *examples(count, generator="g2")]
    store.add_examples([replace(row, id=f"{row.id}-{row.generator}") for row in rows])
    for k, example in enumerate(store.examples()):
        words, labelled = len(example.response.split(" ")), bool(example.labels)
        best = np.random.default_rng(k).normal(-1.0, 0.3, words)
        best[0] += 3.0 * labelled
        record = random_record(words, k, example.response, best=best)
        record.states["around"][0, 1, 0] += 1.0 * labelled
        store.write_record(example, record)
        store.write(example, relevance_of(-best, text=example.response))
    return Rows.open(folder)
