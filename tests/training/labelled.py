"""Small labelled data with relevance made by hand: low where the response is hallucinated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from lrp4rag.example import Label
from lrp4rag.training.extract import Extraction
from lrp4rag.training.store import Configuration, Store
from tests.classifiers.samples import READER, relevance_of
from tests.tiny import bridge_example

WORDS = ["It", "was", "opened", "long", "ago", "and", "nobody", "knows", "quite", "when"]


def examples(count: int = 40, *, first: int = 0, generator: str = "g1"):
    """Every second response is labelled; each has a source of its own."""
    return [
        bridge_example(
            k,
            response=" ".join([f"Bridge{k}", *WORDS, *(["indeed"] * (k % 7))]),
            labels=(Label(0, 9),) if k % 2 else (),
            generator=generator,
        )
        for k in range(first, first + count)
    ]


def extraction(rows, folder: Path, *, failures=None) -> Extraction:
    """A store with relevance for these examples, as extraction would leave it."""
    noise = np.random.default_rng(0)
    store = Store.open(folder, Configuration(READER, "attnlrp"))
    for example in rows:
        length = len(example.response.split(" "))
        values = noise.normal(0.0 if example.hallucinated else 1.0, 0.4, length)
        store.write(example, relevance_of(values, text=example.response))
    return Extraction(store, len(rows), 0, failures or {})


def write_jsonl(rows, path: Path) -> Path:
    lines = [
        {
            "id": example.id,
            "question": example.question,
            "passages": list(example.passages),
            "response": example.response,
            "labels": [{"start": label.start, "end": label.end} for label in example.labels],
            "generator": example.generator,
        }
        for example in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
