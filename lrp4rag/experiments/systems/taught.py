"""`Taught`: a baseline on a model that was trained in the fold, on some of the rows of that fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from lrp4rag.experiments.systems.baseline import Facts, Outside
from lrp4rag.experiments.systems.contest import Champion, Contest
from lrp4rag.experiments.systems.measurement import Measured
from lrp4rag.experiments.systems.trained import check_fresh

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.entailment import Entailment
    from lrp4rag.experiments.systems.kit import Kit, Trained
    from lrp4rag.training.rows import Rows

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Taught(Generic[M]):
    """`train` gives the model, `using` the baseline that works with it. That learns only from rows that are
    fresh to the model, so that choice, calibration and threshold come from what the model has not seen; what
    is kept of its measurements must be kept under the model's name."""

    facts: Facts
    train: Callable[[Rows, Kit], Trained[M]]
    using: Callable[[M], Measured | Contest]

    def fit(self, rows: Rows, kit: Kit) -> Champion:
        trained = self.train(rows, kit)
        if not trained.fresh.all():  # of a published model they are, and the contest tells if they are few
            check_fresh(rows, trained.fresh, kit.seed)
        fresh = np.flatnonzero(trained.fresh)
        champion = self.using(trained.model).fit(rows.select(fresh), kit)
        outside = Outside(fresh[champion.outside.rows], champion.outside.probabilities)
        return replace(champion, calibration=replace(champion.calibration, outside=outside))


def entailed(facts: Facts, using: Callable[[Entailment], Measured | Contest]) -> Taught[Entailment]:
    """On the model of entailment."""
    return Taught(facts, lambda rows, kit: kit.entailment(rows), using)
