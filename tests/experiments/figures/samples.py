"""Small rows in which hallucinated responses have less relevance in their second half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.card import Interval
from lrp4rag.lrp.resampling import resample

GENERATORS = ("llama-2-7b-chat", "mistral-7B-instruct")


@dataclass
class Data:
    labels: np.ndarray
    groups: np.ndarray
    vectors: dict[str, list[np.ndarray]]

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
    vectors = {"prompt": [m.mean(0) for m in matrices], "response": [m.mean(1) for m in matrices]}
    return Data(labels, np.array([f"s{k // 2}" for k in range(count)]), vectors)


def by_generator() -> dict[str, Data]:
    return {name: data(seed=k) for k, name in enumerate(GENERATORS)}


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
