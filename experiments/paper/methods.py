"""`Method`: anything that gives each row of a subset a probability under a protocol: a classifier on a
vector, the best of several, or a control.

A table has the best candidate of each classifier, of each vector, and of all of them. The scores of one
candidate, in every fold and inside it, are the same in all these searches: they are computed once
(`fold_scores`). Choosing and calibrating takes little time and comes after (`choose`). The outcome is that of
`cross_validated` on the same candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments.paper.data import (
    DEFAULTS,
    GRID,
    MATRICES,
    VECTOR_WORDS,
    Floats,
    Groups,
    Labels,
    Subset,
    estimator_of,
    lengths_of,
)
from experiments.tokens.controls import CONTROLS, Setting
from lrp4rag.classifiers.calibration import (
    CALIBRATION_FOLDS,
    Candidate,
    Folds,
    Sigmoid,
    fit,
    grouped_folds,
    margin_of,
    worth,
)
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import THRESHOLD, Outcome, cross_validated
from lrp4rag.util.errors import LRP4RAGError

MOST = 24
"""Candidates that a control may have; of more (hidden states of many layers), one penalty is kept."""


@dataclass(frozen=True, slots=True)
class Model:
    """A classifier on a vector of a subset, with any of its lengths and settings.

    `mode` says how the vector is resampled, `variant` names the store of a subset that is not the main one's.
    """

    subset: Subset
    classifier: str
    vector: str
    mode: Mode = "interpolate"
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.classifier} on {VECTOR_WORDS.get(self.vector, self.vector)}"

    @property
    def grid(self) -> list[tuple[int, str]]:
        """The lengths and settings to choose among."""
        lengths = lengths_of(self.classifier, self.vector)
        return [(length, settings) for length in lengths for settings in GRID[self.classifier][1]]

    def candidate(self, length: int, settings: str) -> Candidate:
        inputs = self.subset.inputs(self.vector, length, self.mode)
        name = VECTOR_WORDS.get(self.vector, self.vector)
        if self.vector not in MATRICES:
            name += f" at {length}"
        if self.variant:
            name += f" ({self.variant})"
        return Candidate(name, self.classifier, settings, estimator_of(self.classifier, settings), inputs)


@dataclass(frozen=True, slots=True)
class Fit:
    """A step of a method: `function` is called with `arguments()`. Equal steps are computed once."""

    function: Callable[..., Any]
    subset: Subset
    what: tuple[Any, ...]
    protocol: Protocol

    def arguments(self) -> tuple[Any, ...]:
        if self.function is fold_scores:
            model, length, settings, repeat, inner = self.what
            candidate = model.candidate(length, settings)
            return candidate, *self.subset.truth, self.protocol, repeat, inner
        if isinstance(self.what[0], Model):
            model, length, settings = self.what
            candidates = [model.candidate(length, settings)]
        else:
            (name,) = self.what
            candidates = _control_candidates(self.subset, name, self.protocol)
        return candidates, *self.subset.truth, self.protocol


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A line of a table: `combine` makes the outcome out of the results of its steps."""

    name: str
    subset: Subset
    steps: tuple[Fit, ...]
    combine: Callable[[Sequence[Any]], Outcome]


def nested(
    models: Sequence[Model], protocol: Protocol, name: str = "", *, share_inner: bool = False
) -> Method:
    """The best candidate of these models, chosen inside the folds.

    An LSTM that is alone calibrates itself and needs no inner folds, which take long; `share_inner` computes
    them all the same, where another method chooses among it.
    """
    subset = models[0].subset
    candidates = [(model, *place) for model in models for place in model.grid]
    inner = share_inner or len(candidates) > 1 or models[0].classifier != "lstm"
    # Only what scores depend on, so that protocols share them.
    plain = replace(protocol, name="", lengths=(), scoring="auroc")
    steps = tuple(
        Fit(fold_scores, subset, (*candidate, repeat, inner), plain)
        for repeat in range(protocol.repeats)
        for candidate in candidates
    )

    def combine(scores: Sequence[FoldScores]) -> Outcome:
        count = len(candidates)
        repeats = [scores[k : k + count] for k in range(0, len(scores), count)]
        return choose(repeats, *subset.truth, protocol)

    return Method(name or models[0].name, subset, steps, combine)


def single(model: Model, length: int, protocol: Protocol) -> Method:
    """A model at its default setting and one length, under a protocol that chooses nothing."""
    what = model, length, DEFAULTS[model.classifier]
    return Method(model.name, model.subset, (Fit(judged, model.subset, what, protocol),), _first)


def control(subset: Subset, name: str, protocol: Protocol) -> Method:
    """One of `CONTROLS` beside the SVM on R_response, with as many candidates as that has."""
    return Method(name, subset, (Fit(judged, subset, (name,), protocol),), _first)


def _first(outcomes: Sequence[Outcome]) -> Outcome:
    return outcomes[0]


def _control_candidates(subset: Subset, name: str, protocol: Protocol) -> list[Candidate]:
    """The settings that the classifiers on relevance have, and no more."""
    entry, rows = CONTROLS[name], subset.rows
    # Attention and hidden states of all rows are too large to stay in memory.
    rows = Rows(rows.store, rows.examples) if entry.needs else rows
    candidates = entry.make(rows, Setting.of(protocol, "svm", "response"))
    if not protocol.nested:
        usual = [each for each in candidates if DEFAULTS.get(each.classifier) == each.settings]
        # Of hidden states, the mean after the last layer.
        middle = _with_middle_settings(candidates)
        return [usual[0] if usual else middle[(len(middle) - 1) // 2]]
    few = [each for each in candidates if each.classifier != "svm" or each.settings in GRID["svm"][1]]
    return few if len(few) <= MOST else _with_middle_settings(few)


def _with_middle_settings(candidates: Sequence[Candidate]) -> list[Candidate]:
    settings = list(dict.fromkeys(each.settings for each in candidates))
    return [each for each in candidates if each.settings == settings[len(settings) // 2]]


# The nested search, cut into steps.


@dataclass(frozen=True, slots=True, eq=False)
class FoldScores:
    """The scores of one candidate on R rows in one repeat of F folds.

    * `scores` (R,): of each row, by the model fitted without its fold. They rise with the evidence.
    * `inner` (F, R): scores of a fold's training rows from its inner folds, NaN for its other rows; (0, R)
      where the candidate need be neither chosen nor calibrated.
    * `cut`: the score from which the model itself flags.
    * `probable`: whether a score is a log odds that needs no calibration.
    """

    label: str
    scores: Floats
    inner: Floats
    cut: float
    probable: bool


def fold_scores(
    candidate: Candidate,
    labels: Labels,
    groups: Groups,
    protocol: Protocol,
    repeat: int = 0,
    inner: bool = True,
) -> FoldScores:
    """Fit a candidate on the training rows of each fold, and on those of its inner folds."""
    folds = _folds(protocol, labels, groups, repeat)
    scores, cut = np.full(len(labels), np.nan), 0.0
    within = np.full((len(folds) if inner else 0, len(labels)), np.nan)
    scored = partial(_scored, candidate, labels, groups)
    for k, split in enumerate(folds):
        scores[split.test], cut = scored(split.train, split.test)
        rows = split.train
        for train, test in (
            _inner_folds(labels[rows].tobytes(), tuple(groups[rows]), protocol.seed) if inner else ()
        ):
            within[k, rows[test]], _ = scored(rows[train], rows[test])
    probable = bool(getattr(candidate.estimator, "gives_probabilities", False))
    return FoldScores(candidate.label, _without_noise(scores), _without_noise(within), cut, probable)


def judged(candidates: Sequence[Candidate], labels: Labels, groups: Groups, protocol: Protocol) -> Outcome:
    """The outcome of `cross_validated`."""
    outcome = cross_validated(candidates, labels, groups, protocol)
    return replace(outcome, probabilities=_without_noise(outcome.probabilities))


def _without_noise(values: Floats) -> Floats:
    """To seven digits: what differs by less, as scores of equal inputs may in different folds, is equal."""
    return values.astype(np.float32).astype(np.float64)


def choose(
    scored: Sequence[Sequence[FoldScores]], labels: Labels, groups: Groups, protocol: Protocol
) -> Outcome:
    """The outcome of choosing among candidates inside each fold; `scored` has the candidates of each repeat.

    Raises `LRP4RAGError` where there are several candidates and one has no inner scores.
    """
    probabilities = np.full((protocol.repeats, len(labels)), np.nan)
    chosen = []
    for repeat, candidates in enumerate(scored):
        if len(candidates) > 1 and not all(len(each.inner) for each in candidates):
            raise LRP4RAGError("candidates that are chosen among need scores inside the folds")
        for k, split in enumerate(_folds(protocol, labels, groups, repeat)):
            best = max(candidates, key=lambda each: _worth(each, k, split, labels, protocol))
            chosen.append(best.label)
            scores = best.scores[split.test]
            if best.probable:
                probabilities[repeat, split.test] = expit(scores)
            else:
                sigmoid = Sigmoid.fit(best.inner[k, split.train], labels[split.train])
                probabilities[repeat, split.test] = sigmoid.predict(scores)
    return Outcome(probabilities, probabilities >= THRESHOLD, tuple(chosen))


def uncalibrated(scores: FoldScores) -> Outcome:
    """The outcome of one candidate in one repeat that decides as it does by itself."""
    probabilities = scores.scores if scores.cut else expit(scores.scores)
    return Outcome(np.asarray(probabilities)[None], (scores.scores > scores.cut)[None], (scores.label,))


def _folds(protocol: Protocol, labels: Labels, groups: Groups, repeat: int) -> list[Split]:
    return [split for split in _splits(protocol, labels.tobytes(), tuple(groups)) if split.repeat == repeat]


@lru_cache(maxsize=16)
def _splits(protocol: Protocol, labels: bytes, groups: tuple[str, ...]) -> list[Split]:
    """Kept, since stratifying hundreds of groups takes as long as a fit, and candidates share their folds."""
    everything = np.ones(len(groups), dtype=bool)
    return splits(protocol, np.frombuffer(labels, dtype=bool), np.array(groups), everything, everything)[0]


@lru_cache(maxsize=64)
def _inner_folds(labels: bytes, groups: tuple[str, ...], seed: int) -> Folds:
    return grouped_folds(np.frombuffer(labels, dtype=bool), np.array(groups), CALIBRATION_FOLDS, seed)


def _scored(
    candidate: Candidate, labels: Labels, groups: Groups, train: NDArray[np.intp], test: NDArray[np.intp]
) -> tuple[Any, float]:
    model = fit(candidate.estimator, candidate.inputs[train], labels[train], groups[train])
    return margin_of(model, candidate.inputs[test])


def _worth(scored: FoldScores, fold: int, split: Split, labels: Labels, protocol: Protocol) -> float:
    if not len(scored.inner):
        return 0.0
    inner = scored.inner[fold, split.train]
    return worth(protocol.scoring, labels[split.train], inner, scored.cut, calibrated=not scored.probable)
