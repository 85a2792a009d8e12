"""Protocols: who may learn from which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from lrp4rag.classifiers.calibration import Folds, Groups, Labels, Scoring, grouped_folds
from lrp4rag.example import Example
from lrp4rag.lrp.resampling import Mode
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a result is validated.

    * `grouped`: folds never split a source; otherwise they are stratified by label only.
    * `repeats`: cross-validation with this many shuffles, seeded `seed`, `seed` + 1 ...
    * `mode`, `lengths`: how relevance is resampled, and the lengths to choose among.
    * `nested`: the candidate is chosen (by `scoring`) and calibrated on inner folds of the training rows;
      otherwise it is the first one, uncalibrated, with its default decision.
    * `leaks`: test rows whose source is also trained on are `refused`, or `counted` in the outcome.
    """

    name: str
    grouped: bool = True
    repeats: int = 3
    folds: int = 5
    seed: int = 0
    mode: Mode = "interpolate"
    lengths: tuple[int, ...] = (50, 100, 220, 350)
    nested: bool = True
    scoring: Scoring = "auroc"
    leaks: Literal["refused", "counted"] = "refused"

    @property
    def words(self) -> str:
        """What a caption says of it."""
        parts = [
            f"{self.folds}-fold cross-validation stratified by label"
            + (" and grouped by source" if self.grouped else ", sources not held out"),
            f"seed {self.seed}" if self.repeats == 1 else f"{self.repeats} repeats from seed {self.seed}",
        ]
        if not self.nested:
            parts.append("fixed settings, no calibration")
        return ", ".join(parts)


HONEST = Protocol("honest")
ONCE = replace(HONEST, repeats=1)
"""The same with one shuffle: for what is compared on equal folds, or takes long."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows to learn from and rows to judge, in one fold of one repeat."""

    repeat: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def splits(
    protocol: Protocol, labels: Labels, groups: Groups, train: Labels, test: Labels
) -> tuple[list[Split], int]:
    """Return the folds of every repeat, and how many rows are judged by a model that saw their source.

    `train` and `test` (booleans, all rows) say which rows may be learned from and which are judged: the
    same for cross-validation, two generators for transfer. Each row of `test` is judged once in each repeat.
    Raises `InputError` where a source is on both sides and the protocol does not count leaks.
    """
    result, leaking = [], np.zeros(len(labels), dtype=bool)
    judged = np.flatnonzero(test)
    for repeat in range(protocol.repeats):
        for _, fold in _folds(protocol, labels[judged], groups[judged], protocol.seed + repeat):
            learn_from, held_out = train.copy(), judged[fold]
            learn_from[held_out] = False
            if protocol.grouped:
                learn_from &= ~np.isin(groups, groups[held_out])
            split = Split(repeat, np.flatnonzero(learn_from), held_out)
            leaking[held_out] |= np.isin(groups[held_out], groups[split.train])
            result.append(split)
    leaks = int(leaking.sum())
    if leaks and protocol.leaks == "refused":
        source = groups[leaking][0]
        raise InputError(
            f"{leaks} rows would be judged by a model that learned from their source (first: '{source}'); "
            f"protocol '{protocol.name}' does not group by source and does not count leaks"
        )
    return result, leaks


def _folds(protocol: Protocol, labels: Labels, groups: Groups, seed: int) -> Folds:
    if protocol.grouped:
        return grouped_folds(labels, groups, protocol.folds, seed)
    return list(StratifiedKFold(protocol.folds, shuffle=True, random_state=seed).split(labels, labels))


def labels_of(examples: Sequence[Example]) -> Labels:
    return np.array([bool(example.hallucinated) for example in examples])


def groups_of(examples: Sequence[Example]) -> Groups:
    return np.array([example.source for example in examples])
