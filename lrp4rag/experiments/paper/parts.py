"""`Part`: the rows of one generator, and what of them can be given to a classifier."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.features import VECTORS, Features
from lrp4rag.lrp.resample import Mode
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import key_of

Labels = NDArray[np.bool_]
Array = NDArray[Any]

FEWEST_SOURCES = 10
"""Sources that each class must have: enough for five folds, and five more inside each."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is left out, and what would add it."""

    what: str
    remedy: str


@dataclass(frozen=True, eq=False)
class Part:
    """R rows of one generator. `labels` may differ from the rows' own (see `relabelled`)."""

    generator: str
    rows: Rows
    labels: Labels
    groups: NDArray[np.str_]
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Rows, generator: str) -> Part:
        rows = rows.select_generator(generator)
        return cls(generator, rows, rows.labels, rows.groups)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def digest(self) -> str:
        """Changes with the rows, their labels, and how their store was made."""
        found: str = self._remembered(
            "digest",
            lambda: hashlib.sha256(self.rows.digest.encode() + self.labels.tobytes()).hexdigest()[:16],
        )
        return found

    @property
    def prevalence(self) -> float:
        return float(self.labels.mean())

    @property
    def enough(self) -> bool:
        """Whether there are sources enough to cross-validate within folds of a cross-validation."""
        sides = (self.groups[self.labels], self.groups[~self.labels])
        return all(len(set(side)) >= FEWEST_SOURCES for side in sides)

    def has(self, part: str) -> bool:
        return bool(self._remembered(f"has {part}", lambda: self.rows.has(part)))

    def admits(self, vector: str) -> bool:
        """Whether all rows have what the vector is made of."""
        needs = VECTORS[vector].needs if vector in VECTORS else ("signals",)
        return all(self.has(need) for need in needs)

    def vectors(self, name: str) -> list[Array]:
        """One of `VECTORS` or of `DERIVED`, of every row; of any length."""
        found: list[Array] = self._remembered(f"vector {name}", lambda: _vectors(self.rows, name))
        return found

    def inputs(self, vector: str, length: int, mode: Mode = "interpolate") -> NDArray[np.float64]:
        """(R, length), or (R, length, features)."""
        return Features(length=length, mode=mode).resampled(self.vectors(vector))

    def relabelled(self, labels: Labels) -> Part:
        return replace(self, labels=labels, _memo={})

    def select(self, indices: NDArray[np.intp]) -> Part:
        return Part(self.generator, self.rows.select(indices), self.labels[indices], self.groups[indices])

    def without_memory(self) -> Rows:
        """The rows, to read large arrays from that nobody needs afterwards."""
        return Rows(self.rows.store, self.rows.examples)

    def _remembered(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._memo:
            self._memo[name] = make()
        return self._memo[name]


def in_common(first: Part, second: Part) -> tuple[Part, Part]:
    """The rows that both have (of the same prompt and response), in the order of the first."""
    keys = [key_of(example) for example in first.rows.examples]
    places = {key_of(example): k for k, example in enumerate(second.rows.examples)}
    kept = np.array([k for k, key in enumerate(keys) if key in places], dtype=np.intp)
    others = np.array([places[keys[k]] for k in kept], dtype=np.intp)
    # Where all are in common the part is the same, and so is what was computed on it.
    return first if len(kept) == len(first) else first.select(kept), second.select(others)


def _vectors(rows: Rows, name: str) -> Sequence[Array]:
    if name in DERIVED:
        return DERIVED[name](rows)
    return [VECTORS[name](relevance) for relevance in rows.relevances]


def _mean_over_prompt(rows: Rows, signal: str, segments: slice = slice(None)) -> list[Array]:
    """R_response of what is stored by segment (segments, t): the mean over n prompt tokens."""
    pairs = zip(rows.signal(signal), rows.relevances, strict=True)
    return [array[segments].sum(0) / len(relevance.encoded.prompt_ids) for array, relevance in pairs]


DERIVED: dict[str, Callable[[Rows], list[Array]]] = {
    "largest logit": lambda rows: _mean_over_prompt(rows, "largest_by_segment"),
    "mean logit": lambda rows: _mean_over_prompt(rows, "mean_by_segment"),
    # Passages, question and template; the fourth origin is the response itself.
    "cp_lrp": lambda rows: _mean_over_prompt(rows, "cp_by_segment", slice(3)),
}
"""R_response of another target or composite, which a store's signals have beside their own."""
