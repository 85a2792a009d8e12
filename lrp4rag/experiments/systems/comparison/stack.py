"""Combinations: what the white-box detector adds to a text-only system, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.experiments.systems.comparison.folds import Judged
from lrp4rag.training.search import Outcome

EDGE = 1e-6  # of a probability, so that its log odds are finite
Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Stacked:
    """`both` combined, and the other one `alone`; `chosen` of both says which it was in each fold."""

    both: Outcome
    alone: Outcome


def stacked(ours: Judged, others: Mapping[str, Judged], labels: Labels) -> Stacked:
    """Logistic regression on the log odds of ours and of the best of the others.

    In each fold, the best (by AUROC), the weights and the threshold (where precision equals recall) are found
    on rows learned from, by probabilities of models that had not learned from them; the best on the rows that
    all of them have. All must have the same folds.
    """
    probabilities = np.full(ours.outcome.probabilities.shape, np.nan)
    alone, flagged = probabilities.copy(), np.zeros(probabilities.shape, dtype=bool)
    alone_flagged = flagged.copy()
    chosen = []
    for fold, (test, rows, values) in enumerate(ours.outside):
        own = _whole(rows, values, len(labels))
        theirs = {name: _whole(*one.outside[fold][1:], len(labels)) for name, one in others.items()}
        everywhere = np.isfinite(np.stack([own, *theirs.values()])).all(axis=0)
        best = max(theirs, key=lambda name: roc_auc_score(labels[everywhere], theirs[name][everywhere]))
        both = np.stack([own, theirs[best]], axis=1)
        known = np.isfinite(both).all(axis=1)
        model = LogisticRegression().fit(_log_odds(both[known]), labels[known])
        judged = np.stack(
            [ours.outcome.probabilities[0, test], others[best].outcome.probabilities[0, test]], axis=1
        )
        point = operating_points(labels[known], model.predict_proba(_log_odds(both[known]))[:, 1])
        probabilities[0, test] = model.predict_proba(_log_odds(judged))[:, 1]
        flagged[0, test] = probabilities[0, test] >= point[DEFAULT_POINT].threshold
        alone[0, test] = others[best].outcome.probabilities[0, test]
        alone_flagged[0, test] = others[best].outcome.flagged[0, test]
        chosen.append(best)
    names = tuple(chosen)
    return Stacked(Outcome(probabilities, flagged, names), Outcome(alone, alone_flagged, names))


def _whole(rows: NDArray[np.intp], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    found = np.full(count, np.nan)
    found[rows] = values
    return found


def _log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = logit(np.clip(probabilities, EDGE, 1 - EDGE))
    return found
