"""Lookback Lens: how much attention heads look back at the prompt (Chuang et al., arXiv 2407.07071).

The lookback ratio of a head at a response token is its mean attention to a prompt token, divided by that plus
its mean attention to a response token (section 2). Logistic regression reads the ratios of all heads: means
over the whole response, or over windows of 8 tokens that are judged one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from experiments.systems.baseline import BestClassifier, Fitted, Reading
from experiments.systems.facts import LABELS, SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import Calibration, PartScores, threshold_of
from experiments.tokens import candidates
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, fit, grouped_folds, worth
from lrp4rag.training.controls import logistic
from lrp4rag.training.rows import Rows

WINDOW = 8
# There are many more windows than columns: weak penalties are candidates too.
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)

Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
POOLINGS: dict[str, Callable[[Scores], np.floating[Any]]] = {"mean": np.mean, "maximum": np.max}


def starts(tokens: int, stride: int, width: int = WINDOW) -> Numbers:
    """Where windows of a response begin, so that every token is in one; what is shorter is one window."""
    last = max(tokens - width, 0)
    return np.array(sorted({*range(0, last, stride), last}))


def window_means(values: NDArray[Any], stride: int, width: int = WINDOW) -> NDArray[Any]:
    """Of values (t, ...): their means over windows (windows, ...)."""
    views = sliding_window_view(values, min(width, len(values)), axis=0)
    means: NDArray[Any] = views[starts(len(values), stride, width)].mean(axis=-1)
    return means


def window_flags(flags: NDArray[np.bool_], stride: int, width: int = WINDOW) -> NDArray[np.bool_]:
    """Of tokens' flags (t,): which windows have a flagged token (windows,)."""
    return window_means(flags, stride, width) > 0


def over_tokens(windows: Scores, tokens: int, width: int = WINDOW) -> Scores:
    """Of the scores of windows at stride 1: the mean of those that cover each token, (t,)."""
    covering = np.arange(tokens)[:, None] - np.arange(len(windows))
    inside = (covering >= 0) & (covering < width)
    found: Scores = inside @ windows / inside.sum(axis=1)
    return found


def ratios_of(rows: Rows) -> Iterator[NDArray[np.float32]]:
    """Of each row, (t, layers x heads)."""
    for row in rows.arrays("lookback", SIGNALS):
        yield row.reshape(-1, row.shape[-1]).T


def window_scores(model: Any, rows: Rows) -> list[Scores]:
    """Log odds of each response's windows at stride 1, (windows,)."""
    # They are linear in the ratios: the mean of the tokens' is that of the mean ratios.
    return [window_means(model.decision_function(ratios), 1) for ratios in ratios_of(rows)]


@dataclass(frozen=True, slots=True)
class LookbackWindows:
    """Windows that do not overlap are learned from (but the last of a response may), those at every token
    are scored. Penalty and pooling are chosen by the AUROC of responses on inner folds."""

    facts: Facts

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        labels, groups = rows.labels, rows.groups
        folds = grouped_folds(labels, groups, CALIBRATION_FOLDS, resources.seed)
        inputs = [window_means(ratios, WINDOW) for ratios in ratios_of(rows)]
        flags = np.concatenate([window_flags(one, WINDOW) for one in rows.token_flags])
        owner = np.repeat(np.arange(len(rows)), [len(one) for one in inputs])
        best, best_value = None, -np.inf
        for candidate in logistic(np.concatenate(inputs), f"windows of {WINDOW}", PENALTIES):
            outside: list[Scores] = [np.zeros(0)] * len(rows)
            for train, test in folds:
                own = np.isin(owner, train)
                model = fit(candidate.estimator, candidate.inputs[own], flags[own], groups[owner[own]])
                for k, scores in zip(test, window_scores(model, rows.select(test)), strict=True):
                    outside[k] = scores
            for pooling in POOLINGS:
                value = worth("auroc", labels, _pooled(outside, pooling), 0.0, calibrated=True)
                if value > best_value:
                    best, best_value = (candidate, pooling, outside), value
        assert best is not None
        candidate, pooling, outside = best
        model = fit(candidate.estimator, candidate.inputs, flags, groups[owner])

        def read(rows: Rows, _: Resources) -> Reading:
            windows = window_scores(model, rows)
            return Reading(_pooled(windows, pooling), _parts(rows, windows))

        calibration = Calibration.of(_pooled(outside, pooling), labels, rows.generators)
        threshold = threshold_of(_parts(rows, outside), rows.examples)
        return Fitted(f"{candidate.label}, {pooling}", read, calibration, threshold)


def _pooled(windows: Sequence[Scores], pooling: str) -> Scores:
    return np.array([POOLINGS[pooling](one) for one in windows])


def _parts(rows: Rows, windows: Sequence[Scores]) -> list[PartScores]:
    """Log odds of tokens."""
    offsets = (np.array(one.encoded.response_offsets) for one in rows.relevances)
    return [
        PartScores(spans, over_tokens(scores, len(spans)))
        for spans, scores in zip(offsets, windows, strict=True)
    ]


_PAPER, _NEEDS = "arXiv 2407.07071", ("signals",)

LOOKBACK_WHOLE = BestClassifier(
    Facts("Lookback Lens, whole response", _PAPER, "reader's states", LABELS, "the reader's", _NEEDS),
    lambda rows, _: candidates.lookback(rows),
)
LOOKBACK_WINDOWS = LookbackWindows(
    Facts("Lookback Lens, windows", _PAPER, "reader's states", SPANS, "the reader's", _NEEDS)
)
