"""RAGulator's encoder: a sentence is in context where one window of the context supports it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.experiments.systems.baseline import SPANS, Facts
from lrp4rag.experiments.systems.encoders.chunks import chunks_of
from lrp4rag.experiments.systems.encoders.weights import MINILM_PACKAGE
from lrp4rag.experiments.systems.measurement import Measured, Measurement
from lrp4rag.experiments.systems.suspicion import Suspicion
from lrp4rag.experiments.systems.taught import entailed
from lrp4rag.sentences import sentences_of, split_sentences

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.entailment import Entailment
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

WINDOW_WORDS = 220  # with a sentence of the response these are fewer than 512 tokens
NUMBER = "highest probability of being out of context"


def windows_of(example: Example) -> list[str]:
    """Of all passages as one text: a window may begin in one and end in the next."""
    return chunks_of(["\n".join(example.passages)], WINDOW_WORDS)


def measure(group: Sequence[Example], model: Entailment) -> list[Measurement]:
    """Of responses to one source; all pairs are read together."""
    windows = windows_of(group[0])
    texts = [sentences_of(example.response) for example in group]
    support = model([(window, text) for own in texts for text in own for window in windows])
    places = np.cumsum([len(own) for own in texts])[:-1]
    parts = np.split(out_of_context(support.reshape(-1, len(windows))), places)
    return [
        Measurement(
            np.array([part.max()]), Suspicion(np.array(split_sentences(example.response or "")), part)
        )
        for example, part in zip(group, parts, strict=True)
    ]


def out_of_context(support: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of sentences whose support by each window is given (S, W): the smallest of 1 - support, (S,)."""
    smallest: NDArray[np.float64] = (1 - support).min(axis=1)
    return smallest


def read_windows(rows: Rows, kit: Kit, model: Entailment) -> list[Measurement]:
    """Of each response; suspicion is that of its sentences."""
    settings = {"entailment": model.name, "words": WINDOW_WORDS}
    return kit.measured(
        "ragulator-windows", settings, rows.examples, Measurement, lambda group: measure(group, model)
    )


_FACTS = Facts(
    "RAGulator (encoder)",
    "arXiv 2411.03920",
    "text",
    SPANS,
    "MiniLM (22M), cross-encoder trained in the folds",
    choices=("entailment",),
    modules=(MINILM_PACKAGE,),
)
RAGULATOR_ENCODER = entailed(
    _FACTS, lambda model: Measured(_FACTS, partial(read_windows, model=model), (NUMBER,), marks=True)
)
