"""Stores made by hand: every part, with numbers that say where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, SENTENCES, SIGNALS
from lrp4rag.training.store import Configuration, Store
from tests.classifiers.samples import READER, relevance_of

CONFIGURATION = Configuration(READER, "attnlrp")


def fill(store: Store, example: Example, parts: Sequence[str], value: float = 1.0) -> None:
    """Relevance of `value` a token; its words are the tokens."""
    words = len(example.response.split(" "))
    store.write(example, relevance_of(np.full(words, value), text=example.response))
    if SIGNALS in parts:
        line = np.full(words, value)
        names = ("logits", "logprob", "entropy", "logprob_without_passages", "logprob_other_passages")
        arrays = {**dict.fromkeys(names, line), "rank": np.arange(words, dtype=np.int32)}
        for name in ("by_segment", "mean_by_segment", "largest_by_segment", "cp_by_segment"):
            arrays[name] = np.full((4, words), value)
        arrays["lookback"] = np.arange(6.0 * words).reshape(2, 3, words)
        arrays["shares"] = arrays["norms"] = np.full((2, 4, words), 0.25)
        store.write_arrays(example, SIGNALS, arrays)
    prompt = np.full(4, value / 4)
    if PROMPT in parts:
        store.write_arrays(example, PROMPT, {"prompt": prompt})
    if SENTENCES in parts:
        arrays = {"sentences": prompt[None], "tokens": np.array([words])}
        store.write_arrays(example, SENTENCES, arrays | {"spans": np.array([[0, len(example.response)]])})
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
