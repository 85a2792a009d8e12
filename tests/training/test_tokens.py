"""Tokens under a protocol: what is chosen where, and that no token is judged by its own source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from lrp4rag.classifiers.decision import COMPARED
from lrp4rag.training.folds import HONEST
from lrp4rag.training.token_folds import cross_validate_tokens, folds_of
from lrp4rag.training.tokens import Tokens

ONE = replace(HONEST, repeats=1, folds=2)


def planted(rows: int = 60, seed: int = 0) -> Tokens:
    """Two rows of each source; those of every second one have flagged tokens, whose first feature is high."""
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
    owner = np.repeat(np.arange(rows), lengths)
    return Tokens(
        {"signals": np.concatenate(tables)},
        np.concatenate(flags),
        owner,
        owner,  # one sentence each
        np.array([flag.any() for flag in flags]),
        (np.arange(rows) // 2).astype(str),
        np.full(rows, ""),
        np.full(rows, ""),
        np.ones(rows, dtype=bool),
        np.zeros((rows, len(COMPARED))),
    )


@pytest.mark.usefixtures("few_networks")
def test_planted_tokens_are_found() -> None:
    tokens = planted()
    found = cross_validate_tokens(tokens, ONE)
    assert np.isfinite(found.probabilities).all()
    assert roc_auc_score(tokens.flags, found.probabilities) > 0.8
    assert roc_auc_score(tokens.labels, found.outcome.probabilities[0]) > 0.85
    assert f1_score(tokens.flags, found.marked) > 0.4
    assert f1_score(tokens.labels, found.sentences[np.unique(tokens.owner, return_index=True)[1]]) > 0.7
    assert len(found.outcome.chosen) == 2
    assert "from 0." in found.outcome.chosen[0]


def test_no_source_is_on_both_sides_outside_or_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = planted()
    sources = tokens.groups[tokens.owner].astype(np.float32)
    seen: list[tuple[set[float], set[float]]] = []

    class Recorder:
        """Learns nothing, and notes the sources that it was fitted on and asked about."""

        def __init__(self, fitted: set[float]) -> None:
            self.fitted = fitted

        @classmethod
        def fit(cls, inputs, flags, weights, train, held, seed):
            return cls(set(inputs[train, 0]))

        def log_odds(self, inputs):
            seen.append((self.fitted, set(inputs[:, 0])))
            return np.random.default_rng(0).normal(size=len(inputs))

    monkeypatch.setattr("lrp4rag.training.token_folds.Network", Recorder)
    cross_validate_tokens(replace(tokens, blocks={"sources": sources[:, None]}), ONE)
    assert len(seen) == 2 * (5 + 5)  # in each outer fold, each network is asked inside and outside
    judged: set[float] = set()
    for k in range(2):
        inside, outside = seen[10 * k : 10 * k + 5], seen[10 * k + 5 : 10 * k + 10]
        asked = outside[0][1]
        judged |= asked
        for fitted, held in inside:
            assert fitted
            assert not fitted & held
            assert not (fitted | held) & asked  # nor is the outer fold seen by what chooses
        assert all(theirs == asked and not fitted & asked for fitted, theirs in outside)
    assert judged == set(sources)


def test_folds_may_learn_from_some_rows_and_judge_others() -> None:
    tokens = planted()
    first = np.arange(60) % 2 == 0
    for split in folds_of(tokens, ONE, learn=first, judged=~first):
        assert first[split.train].all()
        assert not first[split.test].any()
        assert not set(tokens.groups[split.train]) & set(tokens.groups[split.test])
