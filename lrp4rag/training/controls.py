"""Controls: what a result must beat. They go through its folds, and those that imitate relevance also
through its resampling and its classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import Labels, contenders_of
from lrp4rag.classifiers.features import VECTORS, Features
from lrp4rag.errors import InputError
from lrp4rag.lrp.resample import Mode
from lrp4rag.training import internal, lexical, likelihood
from lrp4rag.training.folds import Protocol
from lrp4rag.training.search import Outcome
from lrp4rag.training.tabular import Contenders, one_number

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """The result that controls stand beside: a classifier on features (those of every length contend)."""

    classifier: str
    features: tuple[Features, ...]
    seed: int = 0

    @classmethod
    def of(cls, protocol: Protocol, classifier: str = "svm", vector: str = "total") -> Setting:
        """The lengths and the resampling of a protocol; a vector that is shorter keeps its own length."""
        lengths = protocol.lengths
        if vector in VECTORS and VECTORS[vector].most < max(lengths):
            lengths = (VECTORS[vector].length,)
        made = (Features(vector, length, protocol.mode) for length in lengths)
        return cls(classifier, tuple(made), protocol.seed)


Control = Callable[["Rows", Setting], Contenders]


def relevance(rows: Rows, setting: Setting) -> Contenders:
    """The result itself: the classifier on relevance."""
    return _contenders(setting, lambda features: features(rows.relevances))


def length(rows: Rows, _: Setting) -> Contenders:
    """The number of response tokens."""
    return one_number([len(row.response) for row in rows.relevances], "length")


def constant(rows: Rows, setting: Setting, mode: Mode) -> Contenders:
    """Relevance 1 for every token: what resampling tells of the length."""
    features = tuple(replace(features, mode=mode) for features in setting.features)
    return _imitated(rows, replace(setting, features=features), lambda values, _: np.ones_like(values))


def shuffled_rows(rows: Rows, setting: Setting) -> Contenders:
    """Each row has the relevance of another: chance, unless the protocol leaks."""
    order = np.random.default_rng(setting.seed).permutation(len(rows))
    return _contenders(setting, lambda features: features(rows.relevances)[order])


def shuffled_tokens(rows: Rows, setting: Setting) -> Contenders:
    """Each row's tokens in another order: what their values tell without their places."""

    def shuffled(values: Values, generator: np.random.Generator) -> Values:
        return generator.permutation(values, axis=values.ndim - 1)

    return _imitated(rows, setting, shuffled)


def noise(rows: Rows, setting: Setting) -> Contenders:
    """White noise of the response's length: averages of more tokens vary less, which tells the length."""
    return _imitated(rows, setting, lambda values, generator: generator.normal(size=values.shape))


def _imitated(
    rows: Rows, setting: Setting, imitate: Callable[[Values, np.random.Generator], Values]
) -> Contenders:
    """The setting's classifier on relevance that `imitate` has replaced before resampling."""

    def inputs(features: Features) -> Values:
        # The same seed for every length: they contend with the same imitation.
        generator = np.random.default_rng(setting.seed)
        vectors = [np.asarray(VECTORS[features.vector](row), dtype=float) for row in rows.relevances]
        return features.resampled([imitate(vector, generator) for vector in vectors])

    return _contenders(setting, inputs)


def _contenders(setting: Setting, inputs: Callable[[Features], Values]) -> Contenders:
    """Every candidate of the classifier on the inputs of every length."""
    return tuple(
        contender
        for features in setting.features
        for contender in contenders_of(
            setting.classifier, inputs(features), f"{features.vector}, {features.length}"
        )
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A control, and the arrays that the rows must have for it."""

    make: Control
    needs: tuple[str, ...] = ()


def _of_rows(make: Callable[[Rows], Contenders], *needs: str) -> Entry:
    return Entry(lambda rows, _: make(rows), needs)


FLAG_EVERYTHING = "flag everything"

CONTROLS: dict[str, Entry] = {
    "length only": Entry(length),
    "constant relevance (interpolate)": Entry(partial(constant, mode="interpolate")),
    "constant relevance (zeros)": Entry(partial(constant, mode="zeros")),
    "relevance of another row": Entry(shuffled_rows),
    "relevance in another token order": Entry(shuffled_tokens),
    "noise of the response's length": Entry(noise),
    "novel words": _of_rows(lexical.novel_words),
    "six lexical features": _of_rows(lexical.lexical),
    "log-probability": _of_rows(likelihood.log_probability, "signals"),
    "entropy": _of_rows(likelihood.entropy, "signals"),
    "log-probability gain of the passages": _of_rows(likelihood.passage_gain, "signals"),
    "lookback ratios": _of_rows(internal.lookback, "signals"),
    "hidden state": _of_rows(internal.hidden_probe, "signals"),
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
