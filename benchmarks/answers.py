"""Labelled answers that some benchmarks judge, the kinds of their faults, and what judges them."""

from __future__ import annotations

from typing import Any

from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.training.sets import load_set

RIGHT = "right"


def some_answers(data: str, every: int) -> list[Example]:
    """Load a set, or a file, and return the answers to its first question and to each so-many-th after it."""
    examples = load_set(data)
    chosen = set(list(dict.fromkeys(one.source for one in examples))[::every])
    return [one for one in examples if one.source in chosen]


def kind_of(example: Example) -> str:
    """Return the kind of an answer's first fault, or that it is right."""
    return next((str(one.kind) for one in example.labels or ()), RIGHT)


def detector_of(reader: str, dtype: str) -> Detector:
    """Load the bundled detector beside a reader, or with "none" that of texts."""
    options: dict[str, Any] = {} if reader == "none" else {"dtype": dtype, "truncation": "passages"}
    return Detector.load(reader=None if reader == "none" else reader, **options)
