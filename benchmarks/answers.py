"""Labelled answers that some benchmarks judge, the kinds of their faults, and what judges them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.training.sets import load_set

RIGHT = "right"


def some_answers(data: str, every: int) -> list[Example]:
    """Load a set, or a file, and return its answers `of_some_questions`."""
    return of_some_questions(load_set(data), every)


def of_some_questions(examples: Sequence[Example], every: int) -> list[Example]:
    """Return the answers to the first question and to each so-many-th after it."""
    chosen = set(list(dict.fromkeys(one.source for one in examples))[::every])
    return [one for one in examples if one.source in chosen]


def kind_of(example: Example) -> str:
    """Return the kind of an answer's first fault, or that it is right."""
    return next((str(one.kind) for one in example.labels or ()), RIGHT)


def detector_of(reader: str, dtype: str) -> Detector:
    """Load the bundled detector beside a reader, or with "none" that of texts."""
    options: dict[str, Any] = {} if reader == "none" else {"dtype": dtype, "truncation": "passages"}
    return Detector.load(reader=None if reader == "none" else reader, **options)
