"""What a reader of the comparison must know of a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from lrp4rag.util.errors import InputError

Access = Literal["text", "text and samples", "reader's states"]
OURS = "this project"
LABELS, SPANS = "labelled responses", "annotated spans"  # what is learned from


@dataclass(frozen=True, slots=True)
class Facts:
    """What the tables show, and what must be there before it runs.

    * `title` as the literature names it, `paper` where it is described.
    * `access`: what it is given beside prompt and response. `training`: what it learns from.
    * `weights`: what computes. Where these are not the published ones, its row is not the published system's.
    * `modules`: optional packages that it imports. `choices`: the fields of `Choices` that name other
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
    choices: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """A detector of this project, not one of the systems beside it."""
        return self.paper == OURS


def optional(module: str) -> Any:
    """Import a package that only some baselines need; raise `InputError` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this baseline needs {module}: pip install 'lrp4rag[baselines]'") from error
