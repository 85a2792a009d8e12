"""What a detector says of labelled responses, kept as JSON so that nothing is judged twice."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Cell, Cells
from benchmarks.elsewhere.sets import Item
from lrp4rag.example import Example
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.training.controls import words_outside
from lrp4rag.util.files import check_folder
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.text import words_of

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]

# To be raised when what is kept of a response changes.
FORMAT = 2
OURS, LENGTH, NOVEL = "the detector", "number of words", "novel words"
CONTROLS = (LENGTH, NOVEL)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Responses of one set, the detector's `cells` of them, and the threshold from which it flags."""

    items: tuple[Item, ...]
    cells: tuple[Cell, ...]
    threshold: float

    def __len__(self) -> int:
        return len(self.items)

    @property
    def labels(self) -> Flags:
        return np.array([bool(item.example.hallucinated) for item in self.items], dtype=bool)

    @property
    def groups(self) -> NDArray[np.str_]:
        return np.array([item.example.source for item in self.items], dtype=np.str_)

    @property
    def kinds(self) -> NDArray[np.str_]:
        return np.array([item.kind for item in self.items], dtype=np.str_)

    @property
    def probabilities(self) -> Scores:
        """0 of what states nothing."""
        return np.array([cell["probability"] or 0.0 for cell in self.cells], dtype=np.float64)

    @property
    def flagged(self) -> Flags:
        """By the probability, also where there is no verdict."""
        return self.probabilities >= self.threshold

    @property
    def abstained(self) -> Flags:
        return np.array([cell["abstained"] for cell in self.cells], dtype=bool)

    @property
    def whys(self) -> tuple[tuple[str, ...], ...]:
        """What each one without a verdict is unlike the training data in."""
        return tuple(tuple(cell["unlike"]) for cell in self.cells)

    @property
    def scores(self) -> dict[str, Scores]:
        """By way: the probability, the number of the response's words, and the part of its distinct words
        that no passage has."""
        length, novel = np.array([controls_of(item.example) for item in self.items], dtype=np.float64).T
        return {OURS: self.probabilities, LENGTH: length, NOVEL: novel}

    def select(self, rows: Flags) -> Judged:
        numbers = np.flatnonzero(rows)
        return Judged(
            tuple(self.items[k] for k in numbers), tuple(self.cells[k] for k in numbers), self.threshold
        )


def controls_of(example: Example) -> tuple[int, float]:
    """Count the response's words, and return the part of its distinct words that no passage has."""
    words = words_of(example.response or "")
    return len(words), len(words_outside(example)) / max(len(set(words)), 1)


def cache_of(folder: Path | None, name: str, detector: Detector) -> Cells:
    """What is known of the responses of a set, by this detector and reader; nothing without a folder."""
    identity = detector.reader.identity
    setup = {
        "format": FORMAT,
        "detector": detector.card.sha256,
        "reader": identity.digest,
        "dtype": identity.dtype,
    }
    if folder is None:
        return Cells(None, setup)
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    return Cells(folder / f"{name}.json", setup)


def judge_all(detector: Detector, items: Sequence[Item], cells: Cells, label: str) -> Judged:
    """Judge what the cells lack, prompt by prompt: each is read once, and then its verdicts are kept."""
    keys = [json_hash([item.example.prompt, item.example.response])[:16] for item in items]
    missing: dict[str, list[int]] = defaultdict(list)
    for k, key in enumerate(keys):
        if key not in cells:
            missing[items[k].example.prompt].append(k)
    with detector:
        for numbers in track(missing.values(), len(missing), label):
            started = time.perf_counter()
            verdicts = detector.judge_many([items[k].example for k in numbers], evidence=False)
            seconds = (time.perf_counter() - started) / len(numbers)
            made = zip(numbers, verdicts, strict=True)
            cells.add({keys[k]: {**_cell(verdict), "seconds": round(seconds, 3)} for k, verdict in made})
    return Judged(tuple(items), tuple(cells[key] for key in keys), detector.card.threshold)


def _cell(verdict: ExplainedVerdict) -> Cell:
    """The probability, whether there is no verdict and what it is unlike, whether the prompt was read in an
    excerpt, the suspect spans, and of a token detector each token's place and probability."""
    tokens: list[list[Any]] | None = None
    if verdict.marks is not None:
        offsets = verdict.judgement.encoded.response_offsets
        tokens = [
            [start, end, round(float(one), 5)]
            for (start, end), one in zip(offsets, verdict.marks.probabilities, strict=True)
        ]
    return {
        "probability": verdict.probability,
        "abstained": verdict.abstained,
        "unlike": [facet.facet for facet in verdict.unlike if facet.decides],
        "excerpt": verdict.read is not None,
        "spans": [[span.start, span.end] for span in verdict.spans],
        "tokens": tokens,
    }
