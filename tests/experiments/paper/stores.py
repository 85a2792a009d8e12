"""Stores made by hand: hallucinated responses have less relevance, in every part that a store may have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.tokens.extraction import SIGNALS
from lrp4rag.example import Example, Label
from lrp4rag.features.parts import MATRIX, MATRIX_SHAPE, PROMPT
from lrp4rag.lrp.resampling import resample
from lrp4rag.training.store import Configuration, Store
from tests.classifiers.samples import READER, relevance_of
from tests.tiny import bridge_example

SMALL, LARGE = "llama-2-7b-chat", "llama-2-13b-chat"
WORDS = ["It", "was", "opened", "long", "ago", "and", "nobody", "knows", "quite", "when"]
LAYERS, HEADS, FEATURES, PROMPT_TOKENS = 2, 3, 6, 4


def examples(sources: int = 30, generators: tuple[str, ...] = (SMALL, LARGE)) -> list[Example]:
    """Each generator answers each source; every second answer is hallucinated, every sixth by a true span."""
    return [
        bridge_example(
            k,
            id=f"{generator}-{k}",
            response=" ".join([f"Bridge{k}", *WORDS, *(["indeed"] * (k % 5 + 3 * place))]),
            labels=(Label(0, 7, implicit_true=k % 6 == 1),) if (k + place) % 2 else (),
            generator=generator,
        )
        for k in range(sources)
        for place, generator in enumerate(generators)
    ]


def store(
    folder: Path,
    rows: list[Example] | None = None,
    *,
    parts: tuple[str, ...] = (SIGNALS, PROMPT, MATRIX),
    composite: str = "attnlrp",
    chat_template: bool = True,
    seed: int = 0,
) -> Path:
    """A store with these parts of every example."""
    rows = examples() if rows is None else rows
    reader = READER | {"chat_template": chat_template, "digest": f"{chat_template}"}
    made = Store.open(folder, Configuration(reader, composite))
    made.add_examples(rows)
    # Two generators: relevance is the same whatever parts there are beside it.
    noise, more = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    for example in rows:
        _add(made, example, parts, reader, noise, more)
    return folder


def _add(made: Store, example: Example, parts: tuple[str, ...], reader: dict, noise, more) -> None:
    t = len(example.response.split(" "))
    # A level for each row as well, so that no classifier is always right.
    level = noise.normal(0.0 if example.hallucinated else 0.5, 0.3)
    matrix = noise.normal(level, 0.5, (t, PROMPT_TOKENS))
    composite = made.configuration.composite
    relevance = relevance_of(matrix.sum(1), reader=reader, composite=composite, text=example.response)
    made.write(example, replace(relevance, by_segment=None))
    if SIGNALS in parts:
        made.write_arrays(example, SIGNALS, _signals(matrix, more))
    if PROMPT in parts:
        made.write_arrays(example, PROMPT, {"prompt": matrix.mean(0)})
    if MATRIX in parts:
        made.write_arrays(example, MATRIX, {"matrix": resample(matrix, MATRIX_SHAPE)})


def _signals(matrix: np.ndarray, noise) -> dict[str, np.ndarray]:
    t = len(matrix)
    segments = matrix.T
    return {
        "by_segment": segments,
        "largest_by_segment": 2 * segments,
        "mean_by_segment": 0.1 * segments + noise.normal(size=segments.shape),
        "cp_by_segment": np.stack([segments[2:].sum(0), segments[1], segments[0], np.ones(t)]),
        "hidden_mean": noise.normal(size=(LAYERS + 1, FEATURES)),
        "hidden_last": noise.normal(size=(LAYERS + 1, FEATURES)),
        "lookback": noise.uniform(size=(LAYERS, HEADS, t)),
        "logprob": -noise.exponential(size=t),
        "entropy": noise.exponential(size=t),
        "logprob_without_passages": -noise.exponential(size=t),
    }
