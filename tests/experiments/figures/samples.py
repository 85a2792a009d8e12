"""Small rows in which hallucinated responses have less relevance in their second half."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lrp4rag.classifiers.card import Interval
from lrp4rag.errors import InputError
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.lrp.resample import resample
from tests.classifiers.samples import relevance_of

GENERATORS = ("llama-2-7b-chat", "mistral-7B-instruct")


@dataclass
class Data:
    labels: np.ndarray
    groups: np.ndarray
    vectors: dict[str, list[np.ndarray]]
    matrices: np.ndarray

    def resampled(self, vector: str, length: int = 100) -> np.ndarray:
        return np.stack([resample(row, length) for row in self.vectors[vector]])


def data(count: int = 48, seed: int = 0) -> Data:
    noise = np.random.default_rng(seed)
    labels = np.arange(count) % 2 == 0
    matrices = []
    for label in labels:
        t, n = noise.integers(20, 60), noise.integers(40, 80)
        matrix = noise.normal(0.01, 0.004, (t, n))
        matrix[t // 2 :] *= 0.2 if label else 1.0
        matrices.append(matrix)
    return Data(
        labels,
        np.array([f"s{k // 2}" for k in range(count)]),
        {"prompt": [m.mean(0) for m in matrices], "response": [m.mean(1) for m in matrices]},
        np.stack([resample(m, (8, 4)) for m in matrices]).astype(np.float32),
    )


def by_generator() -> dict[str, Data]:
    return {name: data(seed=k) for k, name in enumerate(GENERATORS)}


@dataclass
class FakeRows:
    """What the exhibits need of `Rows`: several generators' rows, interleaved."""

    relevances: list[Relevance]
    labels: np.ndarray
    groups: np.ndarray
    generators: np.ndarray

    def __len__(self) -> int:
        return len(self.relevances)

    @property
    def matrices(self) -> np.ndarray:
        if any(row.resampled is None for row in self.relevances):
            raise InputError("no R* here")
        return np.stack([row.resampled for row in self.relevances])

    def select_generators(self, names: list[str]) -> FakeRows:
        kept = np.flatnonzero(np.isin(self.generators, names))
        return FakeRows(
            [self.relevances[k] for k in kept], self.labels[kept], self.groups[kept], self.generators[kept]
        )


def fake_rows(*, prompt: bool = True, matrix: bool = True) -> FakeRows:
    found = by_generator()
    relevances, labels, groups, generators = [], [], [], []
    for k in range(len(data().labels)):
        for name, rows in found.items():
            # Four prompt tokens in the encoding, whatever R_prompt has: the exhibits do not look at it.
            relevance = relevance_of(rows.vectors["response"][k] * 4)
            relevances.append(
                replace(
                    relevance,
                    prompt=rows.vectors["prompt"][k] if prompt else None,
                    resampled=rows.matrices[k] if matrix else None,
                )
            )
            labels.append(rows.labels[k])
            groups.append(rows.groups[k])
            generators.append(name)
    return FakeRows(relevances, np.array(labels), np.array(groups), np.array(generators))


def interval(value: float | None, half: float = 0.03) -> Interval:
    if value is None:
        return Interval(value=None, low=None, high=None)
    return Interval(value=value, low=value - half, high=value + half)


def panels(drawn):
    """Axes that are not colour bars."""
    return [ax for ax in drawn.axes if ax.get_label() != "<colorbar>"]


def texts(drawn) -> str:
    """All words of a figure: titles, labels, ticks and legends."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in drawn.findobj(Text))
