"""Controls: what a result must beat. They go through its folds, and those that imitate relevance also
through its resampling and its classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import Labels, candidates_on
from lrp4rag.classifiers.features import VECTORS, Features
from lrp4rag.lrp.resample import Mode
from lrp4rag.training import candidates
from lrp4rag.training.candidates import Candidates, one_number
from lrp4rag.training.folds import Protocol
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError

Values = NDArray[np.float64]


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
    return _candidates(setting, lambda features: features(rows.relevances))


def length(rows: Rows, _: Setting) -> Candidates:
    """The number of response tokens."""
    return one_number([len(row.response_ids) for row in rows.encodings], "length")


def constant(rows: Rows, setting: Setting, mode: Mode) -> Candidates:
    """Relevance 1 for every token: what resampling reveals of the length."""
    features = tuple(replace(features, mode=mode) for features in setting.features)
    return _imitated(rows, replace(setting, features=features), lambda values, _: np.ones_like(values))


def shuffled_rows(rows: Rows, setting: Setting) -> Candidates:
    """Each row has the relevance of another: chance, unless the protocol leaks."""
    order = np.random.default_rng(setting.seed).permutation(len(rows))
    return _candidates(setting, lambda features: features(rows.relevances)[order])


def shuffled_tokens(rows: Rows, setting: Setting) -> Candidates:
    """Each row's tokens in another order: what their values say without their places."""
    return _imitated(rows, setting, lambda values, rng: rng.permutation(values, axis=values.ndim - 1))


def noise(rows: Rows, setting: Setting) -> Candidates:
    """White noise of the response's length: averages of more tokens vary less, which reveals the length."""
    return _imitated(rows, setting, lambda values, rng: rng.normal(size=values.shape))


def _imitated(
    rows: Rows, setting: Setting, imitate: Callable[[Values, np.random.Generator], Values]
) -> Candidates:
    """The setting's classifier on relevance that `imitate` has replaced before resampling."""

    def inputs(features: Features) -> Values:
        rng = np.random.default_rng(setting.seed)  # the same imitation for every length
        vectors = [np.asarray(VECTORS[features.vector].of(row), dtype=float) for row in rows.relevances]
        return features.resampled([imitate(vector, rng) for vector in vectors])

    return _candidates(setting, inputs)


def _candidates(setting: Setting, inputs: Callable[[Features], Values]) -> Candidates:
    """Every candidate of the classifier on the inputs of every length."""
    return tuple(
        candidate
        for features in setting.features
        for candidate in candidates_on(
            setting.classifier, inputs(features), f"{features.vector}, {features.length}"
        )
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A control, and the arrays that the rows must have for it."""

    make: Control
    needs: tuple[str, ...] = ()


def _of_rows(make: Callable[[Rows], Candidates], *needs: str) -> Entry:
    return Entry(lambda rows, _: make(rows), needs)


FLAG_EVERYTHING = "flag everything"

CONTROLS: dict[str, Entry] = {
    "length only": Entry(length),
    "constant relevance (interpolate)": Entry(partial(constant, mode="interpolate")),
    "constant relevance (zeros)": Entry(partial(constant, mode="zeros")),
    "relevance of another row": Entry(shuffled_rows),
    "relevance in another token order": Entry(shuffled_tokens),
    "noise of the response's length": Entry(noise),
    "novel words": _of_rows(candidates.novel_words),
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


def flag_everything(labels: Labels, protocol: Protocol) -> Outcome:
    """Every row is called hallucinated, with probability 1."""
    probabilities = np.ones((protocol.repeats, len(labels)))
    return Outcome(probabilities, probabilities.astype(bool))
