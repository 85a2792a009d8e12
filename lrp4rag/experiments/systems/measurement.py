"""`Measured`: a baseline that measures each response by itself, and learns only how to read the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.systems.baseline import Facts
from lrp4rag.experiments.systems.contest import Champion, Contest, Replies
from lrp4rag.experiments.systems.suspicion import NO_PARTS, Suspicion
from lrp4rag.training.tabular import Contenders, logistic

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Of one response: `numbers` (K,), NaN for no answer; `suspicion` of its parts, if they were scored;
    `asked` counts the questions put to a model, `unanswered` those without a usable reply after all tries,
    `notes` are reasons that it gave."""

    numbers: NDArray[np.float64]
    suspicion: Suspicion | None = None
    asked: int = 0
    unanswered: int = 0
    notes: tuple[str, ...] = ()


Measure = Callable[["Rows", "Kit"], list[Measurement]]


@dataclass(frozen=True, slots=True)
class Measured:
    """`measure` looks at no label; logistic regression reads the numbers. `names` (K,) are the numbers'. With
    `alternatives` they contend one by one, else they are read together. With `marks` parts are scored, as
    for `Contest`, and marked from `mark_from` on."""

    facts: Facts
    measure: Measure
    names: Sequence[str]
    alternatives: bool = False
    marks: bool = False
    mark_from: float | None = None

    def fit(self, rows: Rows, kit: Kit) -> Champion:
        suspicions = self._suspicions if self.marks else None
        contest = Contest(self.facts, self._contenders, suspicions, self.mark_from, self._replies)
        return contest.fit(rows, kit)

    def _contenders(self, rows: Rows, kit: Kit) -> Contenders:
        numbers = np.array([one.numbers for one in self.measure(rows, kit)])
        if not self.alternatives:
            return logistic(numbers, " and ".join(self.names))
        return sum((logistic(numbers[:, [k]], name) for k, name in enumerate(self.names)), ())

    def _replies(self, rows: Rows, kit: Kit) -> list[Replies]:
        return [Replies(one.asked, one.unanswered, one.notes) for one in self.measure(rows, kit)]

    def _suspicions(self, rows: Rows, kit: Kit) -> list[Suspicion]:
        found = [one.suspicion for one in self.measure(rows, kit)]
        return [NO_PARTS if one is None else one for one in found]
