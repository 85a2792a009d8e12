"""Tokens under a protocol: what is chosen where, and that no token is judged by its own source."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

from lrp4rag.classifiers.pooling import pooled, top_mean
from lrp4rag.experiments.protocol import HONEST
from lrp4rag.experiments.tokens import Tokens, best_threshold, located

ONE = replace(HONEST, repeats=1)


def planted(rows: int = 60, seed: int = 0) -> Tokens:
    """Odd responses have a run of made-up tokens, whose first feature is high. Two rows have one source."""
    draw = np.random.default_rng(seed)
    tables, flags, lengths = [], [], draw.integers(20, 50, rows)
    for k, length in enumerate(lengths):
        flag = np.zeros(length, dtype=bool)
        if (k // 2) % 2:
            start = draw.integers(0, length - 8)
            flag[start : start + 8] = True
        table = draw.normal(size=(length, 3)).astype(np.float32)
        table[:, 0] += 1.5 * flag
        tables.append(table)
        flags.append(flag)
    return Tokens(
        np.concatenate(tables),
        np.concatenate(flags),
        np.repeat(np.arange(rows), lengths),
        np.array([flag.any() for flag in flags]),
        (np.arange(rows) // 2).astype(str),
    )


def test_planted_tokens_are_found() -> None:
    tokens = planted()
    found = located(tokens, LogisticRegression(), ONE)
    assert np.isfinite(found.probabilities).all()
    assert roc_auc_score(tokens.flags, found.probabilities) > 0.8
    assert roc_auc_score(tokens.labels, found.outcome.probabilities[0]) > 0.9
    assert f1_score(tokens.flags, found.marked) > 0.4
    assert len(found.tops) == 5
    assert found.outcome.chosen[0] == f"{found.tops[0]} tokens"


class Recorder(ClassifierMixin, BaseEstimator):
    """Learns nothing, and notes the groups that it was fitted on and asked about."""

    seen: ClassVar[list[tuple[set[float], set[float]]]] = []

    def fit(self, X, y):  # noqa: N803
        self.classes_, self.fitted_ = np.array([False, True]), set(X[:, 0])
        return self

    def predict_proba(self, X):  # noqa: N803
        self.seen.append((self.fitted_, set(X[:, 0])))
        return np.random.default_rng(0).uniform(0.1, 0.9, (len(X), 1)) * [[-1.0, 1.0]] + [[1.0, 0.0]]


def test_no_source_is_on_both_sides_outside_or_inside() -> None:
    tokens = planted()
    sources = tokens.groups[tokens.owner].astype(np.float32)
    Recorder.seen.clear()
    located(replace(tokens, table=sources[:, None]), Recorder(), ONE)
    assert len(Recorder.seen) == 5 * (1 + 3)
    for fitted, asked in Recorder.seen:
        assert fitted
        assert asked
        assert not fitted & asked
    outer = Recorder.seen[::4]
    assert set.union(*(asked for _, asked in outer)) == set(sources)
    for k, (_, asked) in enumerate(outer):  # nor is the outer fold seen by what chooses
        for fitted, inner in Recorder.seen[4 * k + 1 : 4 * k + 4]:
            assert not (fitted | inner) & asked


def test_the_highest_are_averaged() -> None:
    scores = np.array([1.0, 5, 3, 2, 8, 8])
    assert top_mean(scores[:4], 2) == 4
    assert top_mean(scores[:4], 9) == 2.75
    owner = np.array([0, 0, 0, 0, 2, 2])
    np.testing.assert_allclose(pooled(scores, owner, np.array([0, 2]), 1), [5, 8])
    with pytest.raises(ValueError, match="no tokens"):
        pooled(scores, owner, np.array([1]), 1)


def test_the_threshold_maximises_f1() -> None:
    draw = np.random.default_rng(0)
    flags = draw.random(200) < 0.3
    scores = np.round(draw.random(200) * 0.5 + 0.3 * flags, 2)  # with ties
    best = best_threshold(scores, flags)
    values = [f1_score(flags, scores >= threshold) for threshold in np.unique(scores)]
    assert f1_score(flags, scores >= best) == pytest.approx(max(values))


def test_nothing_made_up_marks_nothing() -> None:
    scores = np.array([0.2, 1.0, 3.0])
    assert not (scores >= best_threshold(scores, np.zeros(3, dtype=bool))).any()
