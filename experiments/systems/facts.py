"""`Facts`: what tables show of a system, and what must be there before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Access = Literal["text", "text and samples", "reader's states"]
OURS = "this project"
LABELS, SPANS = "labelled responses", "annotated spans"  # what is learned from


@dataclass(frozen=True, slots=True)
class Facts:
    """What tables show of a system, and what must be there before it runs.

    * `title` as the literature names it, `paper` where it is described.
    * `access`: what it is given beside prompt and response. `training`: what it learns from.
    * `weights`: what computes. Where these are not the published ones, its row is not the published system's.
    * `modules`: optional packages that it imports. `choices`: the fields of `ModelChoice` that name other
      weights, which then replace these.
    * `needs`: parts of a store that it reads. `slow`: too slow for all rows of a large store, so it is
      evaluated on a sample of them.
    """

    title: str
    paper: str
    access: Access
    training: str
    weights: str
    needs: tuple[str, ...] = ()
    slow: bool = False
    modules: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """A detector of this project, not one of the systems beside it."""
        return self.paper == OURS
