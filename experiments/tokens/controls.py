"""Controls: what a result must beat. They go through its folds, and those that imitate relevance also
through its resampling and its classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.tokens import candidates
from lrp4rag.classifiers.vectors import VECTORS, Features
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training import controls as package
from lrp4rag.training.controls import Candidates, Values, imitated, on_relevance, on_vectors
from lrp4rag.training.folds import Protocol
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Setting:
    """The result that controls stand beside: a classifier on features (each length is a candidate)."""

    classifier: str
    features: tuple[Features, ...]
    seed: int = 0

    @classmethod
    def of(cls, protocol: Protocol, classifier: str = "svm", vector: str = "total") -> Setting:
        """The lengths and the resampling of a protocol; a vector that is shorter keeps its length."""
        lengths = protocol.lengths
        if vector in VECTORS and VECTORS[vector].most < max(lengths):
            lengths = (VECTORS[vector].length,)
        features = (Features(vector, length, protocol.mode) for length in lengths)
        return cls(classifier, tuple(features), protocol.seed)


Control = Callable[[Rows, Setting], Candidates]


def relevance(rows: Rows, setting: Setting) -> Candidates:
    """The result itself: the classifier on relevance."""
    return on_relevance(rows, setting.classifier, setting.features)


def constant(rows: Rows, setting: Setting, mode: Mode) -> Candidates:
    """Relevance 1 for every token: what resampling reveals of the length."""
    return package.constant(rows, setting.classifier, setting.features, mode)


def shuffled_rows(rows: Rows, setting: Setting) -> Candidates:
    """Each row has the relevance of another: chance, unless the protocol leaks."""
    order = np.random.default_rng(setting.seed).permutation(len(rows))
    return on_vectors(setting.classifier, setting.features, lambda one: one(rows.relevances)[order])


def shuffled_tokens(rows: Rows, setting: Setting) -> Candidates:
    """Each row's tokens in another order: what their values say without their places."""

    def shuffle(values: Values, random: np.random.Generator) -> Values:
        return random.permutation(values, axis=values.ndim - 1)

    return imitated(rows, setting.classifier, setting.features, shuffle, setting.seed)


def noise(rows: Rows, setting: Setting) -> Candidates:
    """White noise of the response's length: averages of more tokens vary less, which reveals the length."""

    def draw(values: Values, random: np.random.Generator) -> Values:
        return random.normal(size=values.shape)

    return imitated(rows, setting.classifier, setting.features, draw, setting.seed)


@dataclass(frozen=True, slots=True)
class Entry:
    """A control, and the arrays that the rows must have for it."""

    make: Control
    needs: tuple[str, ...] = ()


def _of_rows(make: Callable[[Rows], Candidates], *needs: str) -> Entry:
    return Entry(lambda rows, _: make(rows), needs)


CONTROLS: dict[str, Entry] = {
    "length only": _of_rows(package.length),
    "constant relevance (interpolate)": Entry(partial(constant, mode="interpolate")),
    "constant relevance (zeros)": Entry(partial(constant, mode="zeros")),
    "relevance of another row": Entry(shuffled_rows),
    "relevance in another token order": Entry(shuffled_tokens),
    "noise of the response's length": Entry(noise),
    "novel words": _of_rows(package.novel_words),
    "six lexical features": _of_rows(candidates.lexical),
    "log-probability": _of_rows(candidates.log_probability, "signals"),
    "entropy": _of_rows(candidates.entropy, "signals"),
    "log-probability gain of the passages": _of_rows(candidates.passage_gain, "signals"),
    "lookback ratios": _of_rows(candidates.lookback, "signals"),
    "hidden state": _of_rows(candidates.hidden_probe, "signals"),
}
"""What is cross-validated beside a result. `FLAG_EVERYTHING` is an outcome by itself."""


def available(rows: Rows, names: Iterable[str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Which of the named controls (default: all) these rows admit, and why the others are left out."""
    kept, left_out = [], {}
    for name in CONTROLS if names is None else names:
        if name not in CONTROLS:
            raise InputError(f"unknown control '{name}'; choose from {', '.join(CONTROLS)}")
        missing = [need for need in CONTROLS[name].needs if not rows.has(need)]
        if missing:
            left_out[name] = f"the store has no {' and no '.join(missing)}"
        else:
            kept.append(name)
    return kept, left_out


RELEVANCE_VECTOR = "R_response alone (SVM)"
POOLED = "features of the whole response"


def of_responses(names: Iterable[str], protocol: Protocol) -> dict[str, package.Control]:
    """Controls of whole responses by name, as `lrp4rag.training.localisation` takes them."""
    setting = Setting.of(protocol)
    makers = {name: one.make for name, one in CONTROLS.items()} | {
        RELEVANCE_VECTOR: relevance,
        POOLED: lambda rows, _: candidates.pooled_features(rows),
    }
    return {name: partial(_set, makers[name], setting) for name in names}


def _set(make: Control, setting: Setting, rows: Rows) -> Candidates:
    return make(rows, setting)
