"""Choose among candidates on inner folds, fit the best, and calibrate its scores to probabilities.

The vector, the length it is resampled to, the classifier and its hyper-parameters are all chosen in the
same way: whatever differs between two ways to decide makes them two candidates. No source is split.

Detectors that judge read what was fitted here: scikit-learn is imported where something is fitted, since it
takes about a fifth of the time in which everything else is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.util.errors import InputError

CALIBRATION_FOLDS = 5
MOST_STEPS = 1000
"""Iterations of a logistic regression, which takes some hundred for nearly collinear columns."""

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]
Groups = NDArray[np.str_]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
Scoring = Literal["auroc", "accuracy"]


def grouped_folds(labels: Labels, groups: Groups, folds: int, seed: int) -> Folds:
    """Return the train and test rows of each fold: stratified by label, no group on both sides.

    Raises `InputError` where either class has fewer groups than folds.
    """
    for label, name in ((True, "hallucinated"), (False, "faithful")):
        count = len(set(groups[labels == label]))
        if count < folds:
            raise InputError(
                f"{folds} folds need at least {folds} sources with {name} responses, and there are {count}"
            )
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels, groups))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to decide: an unfitted scikit-learn estimator, and its inputs (rows, ...).

    `name` says what the inputs are; `settings` are the classifier's hyper-parameters. An estimator with
    `gives_probabilities = True` is not calibrated; one whose `fit` takes `groups` is given them.
    """

    name: str
    classifier: str
    settings: str
    estimator: Any
    inputs: NDArray[np.floating]

    @property
    def label(self) -> str:
        return ", ".join(part for part in (self.name, self.classifier, self.settings) if part)

    @property
    def gives_probabilities(self) -> bool:
        """Whether it needs no calibration."""
        return bool(getattr(self.estimator, "gives_probabilities", False))


def candidates_on(classifier: str, inputs: NDArray[np.floating], name: str = "") -> tuple[Candidate, ...]:
    """Return every candidate of a classifier on these inputs; raises `InputError` for an unknown
    classifier."""
    from lrp4rag.classifiers.registry import candidates_of

    candidates = candidates_of(classifier).items()
    return tuple(Candidate(name, classifier, settings, model, inputs) for settings, model in candidates)


def balanced_weights(labels: Labels, sets: Groups) -> Scores:
    """Return how much each row counts, (rows,): in each of its `sets`, both classes count as many as half of
    its rows, so that where a row is from does not tell its class. Those of one class count as they are."""
    weights = np.ones(len(labels))
    for name in set(sets):
        for label in (True, False):
            rows, opposite = (sets == name) & (labels == label), (sets == name) & (labels != label)
            if rows.any() and opposite.any():
                weights[rows] = (1 + opposite.sum() / rows.sum()) / 2
    return weights


def logistic_weights(
    columns: Scores,
    labels: Labels,
    penalty: float,
    counts: Scores | None = None,
    scale: Scores | None = None,
) -> tuple[Scores, float]:
    """Fit weights of columns (R, k), and a bias, by logistic regression on columns that are divided by their
    `scale` (k,; default: their deviations): `penalty` is scikit-learn's C there, the weights are those of the
    columns as they are. `counts` (R,) say how much each row counts."""
    from sklearn.linear_model import LogisticRegression

    if scale is None:
        scale = deviations(columns)
    model = LogisticRegression(C=penalty, max_iter=MOST_STEPS)
    fitted = model.fit(columns / scale, labels, sample_weight=counts)
    weights: Scores = fitted.coef_[0] / scale
    return weights, float(fitted.intercept_[0])


def deviations(columns: Scores) -> Scores:
    """Return the standard deviations of columns (R, k), 1 where a column is constant."""
    deviation: Scores = columns.std(0)
    return np.where(deviation > 0, deviation, 1.0)


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """Platt's sigmoid: the probability at a score is expit(slope * score + offset)."""

    slope: float
    offset: float

    @classmethod
    def fit(cls, scores: Scores, labels: Labels) -> Sigmoid:
        """Fit it on scores of rows that the classifier did not learn from (Platt 1999, smoothed targets)."""
        from scipy.optimize import minimize  # half a second that judging does not need

        scale = max(1.0, float(np.abs(scores).max()))
        positive, negative = int(labels.sum()), int((~labels).sum())
        targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))

        def loss(parameters: Scores) -> tuple[float, Scores]:
            log_odds = parameters[0] * scores / scale + parameters[1]
            error = expit(log_odds) - targets
            value = (np.logaddexp(0, log_odds) - targets * log_odds).sum()
            return float(value), np.array([error @ scores / scale, error.sum()])

        start = np.array([0.0, np.log((positive + 1) / (negative + 1))])
        options = {"gtol": 1e-6, "ftol": 64 * np.finfo(float).eps}
        slope, offset = minimize(loss, start, method="L-BFGS-B", jac=True, options=options).x
        return cls(float(slope) / scale, float(offset))

    def log_odds(self, scores: Scores) -> Scores:
        return self.slope * scores + self.offset

    def predict(self, scores: Scores) -> Scores:
        """Return the probabilities at scores."""
        probabilities: Scores = expit(self.log_odds(scores))
        return probabilities


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A fitted classifier whose scores are made probabilities by a sigmoid."""

    model: Any
    sigmoid: Sigmoid
    classes_: ClassVar = (False, True)

    def predict_proba(self, inputs: NDArray[np.floating]) -> Scores:
        """Return the probabilities of both labels, (rows, 2), as scikit-learn's classifiers do."""
        positive = self.sigmoid.predict(margin_of(self.model, inputs)[0])
        return np.stack([1 - positive, positive], axis=1)


def fit_best(
    candidates: Sequence[Candidate],
    labels: Labels,
    groups: Groups,
    rows: NDArray[np.intp] | None = None,
    *,
    seed: int = 0,
    scoring: Scoring = "auroc",
) -> tuple[Candidate, Any]:
    """Choose on inner folds of `rows` (default: all), fit the best on all of them, and calibrate it.

    The sigmoid is fitted on the out-of-fold scores that the choice was made by; of equals, the first is
    chosen. `labels` and `groups` are of all rows.
    """
    rows = np.arange(len(labels)) if rows is None else rows
    labels, groups = labels[rows], groups[rows]
    best, scores = chosen(candidates, labels, groups, rows, seed, scoring)
    model = fit(best.estimator, best.inputs[rows], labels, groups)
    return best, model if scores is None else Calibrated(model, Sigmoid.fit(scores, labels))


def fit(estimator: Any, inputs: NDArray[np.floating], labels: Labels, groups: Groups) -> Any:
    """Return a fitted copy of the estimator."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    extra = {"groups": groups} if has_fit_parameter(estimator, "groups") else {}
    return clone(estimator).fit(inputs, labels, **extra)


def margin_of(model: Any, inputs: NDArray[np.floating]) -> tuple[Scores, float]:
    """Return scores that rise with the evidence, (rows,), and the one from which the model itself flags."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(inputs), dtype=np.float64), 0.0
    return probability_of(model, inputs), 0.5


def probability_of(model: Any, inputs: NDArray[np.floating]) -> Scores:
    """Return a model's own probability of the label True, (rows,)."""
    column = list(model.classes_).index(True)
    return np.asarray(model.predict_proba(inputs), dtype=np.float64)[:, column]


def chosen(
    candidates: Sequence[Candidate],
    labels: Labels,
    groups: Groups,
    rows: NDArray[np.intp],
    seed: int = 0,
    scoring: Scoring = "auroc",
) -> tuple[Candidate, Scores | None]:
    """Return the best candidate over inner folds of `rows`, whose `labels` and `groups` are given, and its
    out-of-fold scores: None where it needs no calibration."""
    if len(candidates) == 1 and candidates[0].gives_probabilities:
        return candidates[0], None
    folds = grouped_folds(labels, groups, CALIBRATION_FOLDS, seed)
    best, best_scores, best_value = candidates[0], np.zeros(0), -np.inf
    for candidate in candidates:
        inputs = candidate.inputs[rows]
        scores, cut = np.full(len(rows), np.nan), 0.0
        for train, test in folds:
            model = fit(candidate.estimator, inputs[train], labels[train], groups[train])
            scores[test], cut = margin_of(model, inputs[test])
        value = worth(scoring, labels, scores, cut, calibrated=not candidate.gives_probabilities)
        if value > best_value:
            best, best_scores, best_value = candidate, scores, value
    return best, None if best.gives_probabilities else best_scores


def worth(scoring: Scoring, labels: Labels, scores: Scores, cut: float, *, calibrated: bool) -> float:
    """Measure what the choice maximises: out-of-fold scores over all inner folds against the labels.

    Accuracy is that of the decisions which will be made: at probability 1/2 where scores are `calibrated`
    on these very folds, and else where the model itself flags, above `cut`.
    """
    from sklearn.metrics import accuracy_score, roc_auc_score

    if scoring == "auroc":
        return float(roc_auc_score(labels, scores))
    if calibrated:
        return float(accuracy_score(labels, Sigmoid.fit(scores, labels).predict(scores) >= 0.5))
    return float(accuracy_score(labels, scores > cut))
