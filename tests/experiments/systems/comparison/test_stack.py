"""Combinations: weights and choices come from rows learned from, by models that had not learned from them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lrp4rag.experiments.systems.comparison.folds import Judged
from lrp4rag.experiments.systems.comparison.stack import stacked
from lrp4rag.training.search import Outcome

COUNT = 400
LABELS = np.arange(COUNT) % 2 == 0
FOLDS = np.arange(COUNT) // 2 % 4


def judged(signal: np.ndarray, *, outside: np.ndarray | None = None, rows=slice(None)) -> Judged:
    """Probabilities that are the same on rows learned from and judged, unless `outside` says otherwise."""
    probabilities = 1 / (1 + np.exp(-signal))
    known = probabilities if outside is None else 1 / (1 + np.exp(-outside))
    folds = []
    for fold in range(4):
        test, train = np.flatnonzero(fold == FOLDS), np.flatnonzero(fold != FOLDS)[rows]
        folds.append((test, train, known[train]))
    outcome = Outcome(probabilities[None], probabilities[None] >= 0.5)
    return Judged(outcome, None, np.ones(COUNT, dtype=bool), tuple(folds))


@pytest.fixture
def noise() -> np.random.Generator:
    return np.random.default_rng(0)


def test_two_that_err_elsewhere_are_better_together(noise: np.random.Generator) -> None:
    first, second = (LABELS + noise.normal(0, 1, COUNT) for _ in range(2))
    found = stacked(judged(first), {"text": judged(second)}, LABELS)
    both, alone, chosen = found.both, found.alone, found.both.chosen
    values = [roc_auc_score(LABELS, values) for values in (both.probabilities[0], first, second)]
    assert values[0] > max(values[1:]) + 0.03
    assert set(chosen) == {"text"}
    assert alone.probabilities[0] == pytest.approx(1 / (1 + np.exp(-second)))
    assert np.isfinite(both.probabilities).all()
    # As many are flagged as are hallucinated, about: the rule of every system.
    assert both.flagged.mean() == pytest.approx(0.5, abs=0.05)


def test_the_best_is_chosen_by_rows_learned_from(noise: np.random.Generator) -> None:
    ours, weak = noise.normal(size=COUNT), noise.normal(size=COUNT)
    strong = LABELS + noise.normal(0, 0.5, COUNT)
    # One looks good on the rows judged only, the other on those learned from only.
    boasting, modest = judged(strong, outside=weak), judged(weak, outside=strong)
    found = stacked(judged(ours), {"boasting": boasting, "modest": modest}, LABELS)
    assert set(found.both.chosen) == {"modest"}
    assert found.alone.probabilities[0] == pytest.approx(1 / (1 + np.exp(-weak)))


def test_weights_come_from_rows_that_both_know(noise: np.random.Generator) -> None:
    ours, theirs = (LABELS + noise.normal(0, 1, COUNT) for _ in range(2))
    few = judged(theirs, rows=slice(0, 60))
    wrong = np.where(np.arange(COUNT) < 80, theirs, -50.0 * (LABELS - 0.5))
    spoiled = judged(theirs, outside=wrong, rows=slice(0, 60))
    first, second = (stacked(judged(ours), {"text": one}, LABELS).both for one in (few, spoiled))
    assert first.probabilities == pytest.approx(second.probabilities)
