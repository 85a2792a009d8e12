"""Choose among contenders on inner folds, fit the best, and turn its scores into probabilities.

The vector, the length it is resampled to, the classifier and its hyper-parameters are all chosen in the
same way: whatever differs between two ways to decide makes them two contenders. No source is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier, _SigmoidCalibration
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils.validation import has_fit_parameter

from lrp4rag.classifiers.registry import candidates_of
from lrp4rag.errors import InputError

CALIBRATION_FOLDS = 5

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]
Groups = NDArray[np.str_]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
Scoring = Literal["auroc", "accuracy"]


def grouped_folds(labels: Labels, groups: Groups, folds: int, seed: int) -> Folds:
    """Train and test rows of each fold: stratified by label, no group on both sides.

    Raises `InputError` where either class has fewer groups than folds.
    """
    for label, name in ((True, "hallucinated"), (False, "faithful")):
        count = len(set(groups[labels == label]))
        if count < folds:
            raise InputError(
                f"{folds} folds need at least {folds} sources with {name} responses, and there are {count}"
            )
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels, groups))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to decide: an unfitted scikit-learn estimator, and its inputs (rows, ...).

    `name` says what the inputs are; `settings` are the classifier's hyper-parameters. An estimator with
    `gives_probabilities = True` calibrates itself; one whose `fit` takes `groups` is given them.
    """

    name: str
    classifier: str
    settings: str
    estimator: Any
    inputs: NDArray[np.floating]

    @property
    def label(self) -> str:
        return ", ".join(part for part in (self.name, self.classifier, self.settings) if part)


def candidates_on(classifier: str, inputs: NDArray[np.floating], name: str = "") -> tuple[Candidate, ...]:
    """Every candidate of a classifier on these inputs; raises `InputError` for an unknown classifier."""
    candidates = candidates_of(classifier).items()
    return tuple(Candidate(name, classifier, settings, model, inputs) for settings, model in candidates)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted classifier that gives probabilities, and which of the candidates it is."""

    model: Any
    settings: str

    def predict(self, vectors: NDArray[np.floating]) -> Scores:
        """The probability of a hallucination, (rows,)."""
        return probability_of(self.model, vectors)


def fit_calibrated(classifier: str, vectors: NDArray[np.floating], labels: Labels, groups: Groups) -> Fitted:
    """Choose the candidate with the best AUROC over inner folds, fit it on all rows, and calibrate it."""
    contender, model = fit_best(candidates_on(classifier, vectors), labels, groups)
    return Fitted(model, contender.settings)


def fit_best(
    contenders: Sequence[Candidate],
    labels: Labels,
    groups: Groups,
    rows: NDArray[np.intp] | None = None,
    *,
    seed: int = 0,
    scoring: Scoring = "auroc",
) -> tuple[Candidate, Any]:
    """Choose on inner folds of `rows` (default: all), fit the best on all of them, and calibrate it.

    The sigmoid is fitted on scores from folds that the classifier was not fitted on: the scores that
    the choice was made by. The first of equals is chosen. `labels` and `groups` are of all rows.
    """
    rows = np.arange(len(labels)) if rows is None else rows
    labels, groups = labels[rows], groups[rows]
    best, scores = chosen(contenders, labels, groups, rows, seed, scoring)
    model = fit(best.estimator, best.inputs[rows], labels, groups)
    return best, model if scores is None else _calibrated(best.estimator, model, scores, labels)


def fit(estimator: Any, inputs: NDArray[np.floating], labels: Labels, groups: Groups) -> Any:
    """A fitted copy of the estimator."""
    extra = {"groups": groups} if has_fit_parameter(estimator, "groups") else {}
    return clone(estimator).fit(inputs, labels, **extra)


def margin_of(model: Any, inputs: NDArray[np.floating]) -> tuple[Scores, float]:
    """Scores that rise with the evidence, (rows,), and the score from which the model itself flags."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(inputs), dtype=np.float64), 0.0
    return probability_of(model, inputs), 0.5


def probability_of(model: Any, inputs: NDArray[np.floating]) -> Scores:
    """A model's own probability of the label True, (rows,)."""
    column = list(model.classes_).index(True)
    return np.asarray(model.predict_proba(inputs), dtype=np.float64)[:, column]


def chosen(
    contenders: Sequence[Candidate],
    labels: Labels,
    groups: Groups,
    rows: NDArray[np.intp],
    seed: int = 0,
    scoring: Scoring = "auroc",
) -> tuple[Candidate, Scores | None]:
    """The best contender over inner folds of `rows`, whose `labels` and `groups` are given, and its
    out-of-fold scores: None where it needs no calibration."""
    if len(contenders) == 1 and _gives_probabilities(contenders[0]):
        return contenders[0], None
    folds = grouped_folds(labels, groups, CALIBRATION_FOLDS, seed)
    best, best_scores, best_value = contenders[0], np.zeros(0), -np.inf
    for contender in contenders:
        scores, cut = _out_of_fold(contender, rows, labels, groups, folds)
        value = worth(scoring, labels, scores, cut, calibrated=not _gives_probabilities(contender))
        if value > best_value:
            best, best_scores, best_value = contender, scores, value
    return best, None if _gives_probabilities(best) else best_scores


def _out_of_fold(
    contender: Candidate, rows: NDArray[np.intp], labels: Labels, groups: Groups, folds: Folds
) -> tuple[Scores, float]:
    inputs = contender.inputs[rows]
    scores, cut = np.full(len(rows), np.nan), 0.0
    for train, test in folds:
        model = fit(contender.estimator, inputs[train], labels[train], groups[train])
        scores[test], cut = margin_of(model, inputs[test])
    return scores, cut


def _gives_probabilities(contender: Candidate) -> bool:
    return bool(getattr(contender.estimator, "gives_probabilities", False))


def _calibrated(estimator: Any, model: Any, scores: Scores, labels: Labels) -> CalibratedClassifierCV:
    """What `CalibratedClassifierCV(estimator, ensemble=False, cv=folds).fit` makes.

    It would fit the estimator in every inner fold once more; the scores that it would get are here.
    """
    calibrated = CalibratedClassifierCV(estimator, ensemble=False)
    calibrated.classes_ = model.classes_
    calibrated.calibrated_classifiers_ = [
        _CalibratedClassifier(model, [sigmoid_of(scores, labels)], classes=model.classes_)
    ]
    return calibrated


def sigmoid_of(scores: Scores, labels: Labels) -> _SigmoidCalibration:
    """Platt's sigmoid, from scores of rows that the classifier was not fitted on."""
    return _SigmoidCalibration().fit(scores, labels.astype(int))


def worth(scoring: Scoring, labels: Labels, scores: Scores, cut: float, *, calibrated: bool) -> float:
    """What the choice maximises: out-of-fold scores over all inner folds against the labels.

    Accuracy is that of the decisions which will be made: at probability 1/2 where scores are `calibrated`
    on these very folds, and else where the model itself flags, above `cut`.
    """
    if scoring == "auroc":
        return float(roc_auc_score(labels, scores))
    if calibrated:
        return float(accuracy_score(labels, sigmoid_of(scores, labels).predict(scores) >= 0.5))
    return float(accuracy_score(labels, scores > cut))
