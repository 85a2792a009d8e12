"""What a baseline is: a system that people would compare with, behind one small protocol.

`fit` learns from labelled responses and gives a `Scorer`; that gives each response a `Score`. Whatever a
baseline chooses (a layer, a threshold, a sigmoid) it chooses in `fit`, from the rows that it is given: the
comparison calls it once in each fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

Access = Literal["text", "text and samples", "reader's states"]
LABELS, SPANS = "labelled responses", "annotated spans"  # what is learned from


@dataclass(frozen=True, slots=True)
class Facts:
    """What a reader of the table must know.

    * `title` as the literature names it, `paper` where it is described.
    * `access`: what it must be given beside prompt and response. `training`: what it learns from.
    * `weights`: what computes; where these are not the published ones, its row is not the published system's.
    * `modules`: optional packages that it imports. `choices`: the fields of `Choices` that name other
      weights, which stand in their place then.
    * `needs`: parts of a store that it reads. `slow`: too slow for all rows of a large store, so that it is
      judged on a sample of them.
    """

    title: str
    paper: str
    access: Access
    training: str
    weights: str
    needs: tuple[str, ...] = ()
    slow: bool = False
    choices: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspect:
    """Characters `start` to `end` of a response: how suspect they are (higher is more), and whether that is
    enough to be marked."""

    start: int
    end: int
    score: float
    marked: bool


@dataclass(frozen=True, slots=True)
class Score:
    """Of one response: the `probability` of a hallucination, whether that is enough to be `flagged`, and the
    parts that were scored by themselves, tokens or sentences (None where the baseline cannot tell).

    `answered` is False where the baseline had nothing to go by (a judge that gave no usable reply): the
    probability is then how often responses are hallucinated. `asked` counts the questions that were put to a
    model, `unanswered` those to which it gave no usable reply: they are left out of the score. `notes` are
    the model's reasons.
    """

    probability: float
    flagged: bool
    suspects: tuple[Suspect, ...] | None = None
    answered: bool = True
    asked: int = 0
    unanswered: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """Probabilities of some of the rows that were learned from, by models that did not learn from them:
    `rows` (M,) are their numbers among those, `probabilities` (M,)."""

    rows: NDArray[np.intp]
    probabilities: NDArray[np.float64]


class Scorer(Protocol):
    """Fitted. `chosen` says in words what was chosen, `outside` is what a combination can learn from."""

    @property
    def chosen(self) -> str: ...

    @property
    def outside(self) -> Outside: ...

    def score(self, rows: Rows, kit: Kit) -> list[Score]:
        """One for each row, in their order; labels are not looked at."""


class Baseline(Protocol):
    """A new one is a file with an object of this kind, and a line in the registry."""

    @property
    def facts(self) -> Facts: ...

    def fit(self, rows: Rows, kit: Kit) -> Scorer:
        """Learn from labelled rows. Raises `InputError` where there are too few sources."""
