"""Stores whose hallucinated tokens have little relevance to the passages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.tokens.extraction import SIGNALS, STATES
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store
from tests.classifiers.samples import relevance_of
from tests.experiments.tokens.records import random_record, random_states
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION


def stored(folder: Path, count: int = 40) -> Rows:
    """The first word of every second response is labelled; passages give it less than the others, and its
    state's first feature is high."""
    store = Store.open(folder, CONFIGURATION)
    rows = [*examples(count), *examples(count, generator="g2")]
    store.add_examples([replace(row, id=f"{row.id}-{row.generator}") for row in rows])
    for k, example in enumerate(store.examples()):
        words = len(example.response.split(" "))
        by_segment = np.random.default_rng(k).normal(1.0, 0.3, (4, words)).astype(np.float32)
        if example.labels:
            by_segment[2:, 0] -= 1.5
        store.write(example, relevance_of(by_segment.sum(0), text=example.response))
        store.write_arrays(example, SIGNALS, random_record(words, k, by_segment).signals)
        states = random_states(words, k)
        states["whole"][:, 0, 0] += 2.0 * bool(example.labels)
        store.write_arrays(example, STATES, states)
    return Rows.open(folder)
