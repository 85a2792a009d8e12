"""`Method`: anything that gives each row of a subset a probability under a protocol.

It is a classifier on a vector, the best of several, or a control. What it is made of is cut into cells, so
that methods share them and a killed run resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from experiments.cache import Cell, Task
from experiments.paper.nested import FoldScores, choose, fold_scores
from experiments.paper.settings import (
    DEFAULTS,
    GRID,
    MATRICES,
    VECTOR_WORDS,
    estimator_of,
    lengths_of,
)
from experiments.paper.subset import Subset
from experiments.tokens.controls import CONTROLS, Setting
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training.folds import Protocol
from lrp4rag.training.validation import Outcome, cross_validated

MOST = 24
"""Candidates that a control may have; of more (hidden states of many layers), one penalty is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A line of a table: `combine` makes the outcome out of what the cells hold."""

    name: str
    subset: Subset
    cells: tuple[Cell, ...]
    combine: Callable[[Sequence[Any]], Outcome]
    how: str = ""

    @property
    def key(self) -> dict[str, Any]:
        return {"cells": [cell.name for cell in self.cells], "how": self.how}


@dataclass(frozen=True, slots=True, eq=False)
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
        return [(length, settings) for length in lengths for settings in GRID[self.classifier].settings]

    def key(self, length: int, settings: str, protocol: Protocol) -> dict[str, Any]:
        # Only what this candidate depends on, whatever else the protocol admits.
        one = asdict(replace(protocol, name="", lengths=(length,), repeats=1, mode=self.mode))
        one.pop("scoring")
        names = {"classifier": self.classifier, "settings": settings, "vector": self.vector}
        if self.variant:
            names["variant"] = self.variant
        return {**names, "rows": self.subset.digest, "protocol": one}

    def candidate(self, length: int, settings: str) -> Candidate:
        inputs = self.subset.inputs(self.vector, length, self.mode)
        name = VECTOR_WORDS.get(self.vector, self.vector)
        if self.vector not in MATRICES:
            name += f" at {length}"
        if self.variant:
            name += f" ({self.variant})"
        return Candidate(name, self.classifier, settings, estimator_of(self.classifier, settings), inputs)


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
    cells = tuple(
        Cell(
            {"what": "judged", "repeat": repeat, "inner": inner, **model.key(length, settings, protocol)},
            FoldScores,
            partial(_prepare_scores, model, length, settings, protocol, repeat, inner),
        )
        for repeat in range(protocol.repeats)
        for model, length, settings in candidates
    )
    combine = partial(_best, subset, protocol, len(candidates))
    return Method(name or models[0].name, subset, cells, combine, how=protocol.scoring)


def single(model: Model, length: int, protocol: Protocol) -> Method:
    """A model at its default setting and one length, under a protocol that chooses nothing."""
    settings = DEFAULTS[model.classifier]
    cell = Cell(
        {"what": "single", "repeats": protocol.repeats, **model.key(length, settings, protocol)},
        Outcome,
        partial(_prepare_single, model, length, settings, protocol),
    )
    return Method(model.name, model.subset, (cell,), _first)


def control(subset: Subset, name: str, protocol: Protocol) -> Method:
    """One of `CONTROLS` beside the SVM on R_response, with as many candidates as that has."""
    setting = Setting.of(protocol, "svm", "response")
    key: dict[str, Any] = {"what": "control", "name": name, "rows": subset.digest}
    key |= {"setting": asdict(setting), "protocol": asdict(protocol)}
    cell = Cell(key, Outcome, partial(_prepare_control, subset, name, setting, protocol))
    return Method(name, subset, (cell,), _first)


def _prepare_scores(
    model: Model, length: int, settings: str, protocol: Protocol, repeat: int, inner: bool
) -> Task:
    subset, candidate = model.subset, model.candidate(length, settings)
    return partial(fold_scores, candidate, subset.labels, subset.groups, protocol, repeat, inner=inner)


def _prepare_single(model: Model, length: int, settings: str, protocol: Protocol) -> Task:
    subset, candidate = model.subset, model.candidate(length, settings)
    return partial(cross_validated, [candidate], subset.labels, subset.groups, protocol)


def _prepare_control(subset: Subset, name: str, setting: Setting, protocol: Protocol) -> Task:
    entry = CONTROLS[name]
    # Attention and hidden states of all rows are too large to stay in memory.
    rows = subset.without_memory() if entry.needs else subset.rows
    candidates = _thinned(entry.make(rows, setting), protocol)
    return partial(cross_validated, candidates, subset.labels, subset.groups, protocol)


def _thinned(candidates: Sequence[Candidate], protocol: Protocol) -> list[Candidate]:
    """The settings that the classifiers on relevance have, and no more."""
    if not protocol.nested:
        usual = [each for each in candidates if DEFAULTS.get(each.classifier) == each.settings]
        # Of hidden states, the mean after the last layer.
        middle = _with_middle_settings(candidates)
        return [usual[0] if usual else middle[(len(middle) - 1) // 2]]
    kept = [each for each in candidates if each.classifier != "svm" or each.settings in GRID["svm"].settings]
    return kept if len(kept) <= MOST else _with_middle_settings(kept)


def _with_middle_settings(candidates: Sequence[Candidate]) -> list[Candidate]:
    settings = list(dict.fromkeys(each.settings for each in candidates))
    return [each for each in candidates if each.settings == settings[len(settings) // 2]]


def _best(subset: Subset, protocol: Protocol, count: int, scores: Sequence[FoldScores]) -> Outcome:
    repeats = [scores[k : k + count] for k in range(0, len(scores), count)]
    return choose(repeats, subset.labels, subset.groups, protocol)


def _first(outcomes: Sequence[Outcome]) -> Outcome:
    return outcomes[0]
