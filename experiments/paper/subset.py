"""`Subset`: the rows of one generator, and what of them can be given to a classifier.

`Variant` pairs them with the same responses in another store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.features import VECTORS, Features
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import key_of
from lrp4rag.util.hashes import hash_of

Labels = NDArray[np.bool_]
Array = NDArray[Any]

FEWEST_SOURCES = 10
"""Sources that each class must have: enough for five folds, and five more inside each."""


@dataclass(frozen=True, eq=False)
class Subset:
    """R rows of one generator. `labels` may differ from those of `rows` (see `relabelled`)."""

    generator: str
    rows: Rows
    labels: Labels
    groups: NDArray[np.str_]
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Rows, generator: str) -> Subset:
        rows = rows.select_generators([generator])
        return cls(generator, rows, rows.labels, rows.groups)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def digest(self) -> str:
        """Changes with the rows, their labels, and how their store was made."""

        def hashed() -> str:
            return hash_of(self.rows.digest.encode() + self.labels.tobytes())[:16]

        return str(self._remembered("digest", hashed))

    @property
    def prevalence(self) -> float:
        return float(self.labels.mean())

    @property
    def enough(self) -> bool:
        """Whether there are sources enough to cross-validate within folds of a cross-validation."""
        sides = (self.groups[self.labels], self.groups[~self.labels])
        return all(len(set(side)) >= FEWEST_SOURCES for side in sides)

    def has(self, part: str) -> bool:
        """Whether the store has this part of every row."""
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

    def relabelled(self, labels: Labels) -> Subset:
        return replace(self, labels=labels, _memo={})

    def select(self, indices: NDArray[np.intp]) -> Subset:
        return Subset(self.generator, self.rows.select(indices), self.labels[indices], self.groups[indices])

    def without_memory(self) -> Rows:
        """The rows, to read large arrays from that are used once."""
        return Rows(self.rows.store, self.rows.examples)

    def _remembered(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._memo:
            self._memo[name] = make()
        return self._memo[name]


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """The same responses in another store, made with other rules or another prompt.

    `kind` is what distinguishes the store from the main one, `what` what it is there. `anchor` and `subset`
    are the rows that both stores have, in one order; `anchor` is the main store's.
    """

    name: str
    kind: str
    what: str
    anchor: Subset
    subset: Subset

    @classmethod
    def of(cls, name: str, subset: Subset, rows: Rows) -> Variant | None:
        """None where too few of the subset's rows are among these `rows` of the other store."""
        if subset.generator not in rows.generators:
            return None
        anchor, other = in_common(subset, Subset.of(rows, subset.generator))
        if not len(anchor) or not anchor.enough:
            return None
        return cls(name, *_distinction(subset.rows, rows), anchor, other)


def in_common(first: Subset, second: Subset) -> tuple[Subset, Subset]:
    """The rows that both have (of the same prompt and response), in the order of the first."""
    keys = [key_of(example) for example in first.rows.examples]
    places = {key_of(example): k for k, example in enumerate(second.rows.examples)}
    kept = np.array([k for k, key in enumerate(keys) if key in places], dtype=np.intp)
    others = np.array([places[keys[k]] for k in kept], dtype=np.intp)
    # Where all are in common the subset is the same, and so is what was computed on it.
    return first if len(kept) == len(first) else first.select(kept), second.select(others)


def _distinction(main: Rows, other: Rows) -> tuple[str, str]:
    """The first difference of two stores: its kind, and what the other store has."""
    ours, theirs = main.store.configuration, other.store.configuration
    if ours.composite != theirs.composite:
        return "rules", theirs.composite
    if ours.reader.get("chat_template") != theirs.reader.get("chat_template"):
        return "prompt", "chat template" if theirs.reader.get("chat_template") else "raw"
    if ours.reader.get("digest") != theirs.reader.get("digest"):
        return "reader", str(theirs.reader.get("name", "")).rsplit("/", 1)[-1]
    if ours.target != theirs.target:
        return "target", theirs.target
    return "precision", str(theirs.reader.get("dtype"))


def _vectors(rows: Rows, name: str) -> Sequence[Array]:
    if name in DERIVED:
        return DERIVED[name](rows)
    return [VECTORS[name].of(relevance) for relevance in rows.relevances]


def _mean_over_prompt(rows: Rows, signal: str, segments: slice = slice(None)) -> list[Array]:
    """R_response of what is stored by segment (segments, t): the mean over n prompt tokens."""
    pairs = zip(rows.arrays(signal, SIGNALS), rows.relevances, strict=True)
    return [array[segments].sum(0) / len(relevance.encoded.prompt_ids) for array, relevance in pairs]


DERIVED: dict[str, Callable[[Rows], list[Array]]] = {
    "largest logit": lambda rows: _mean_over_prompt(rows, "largest_by_segment"),
    "mean logit": lambda rows: _mean_over_prompt(rows, "mean_by_segment"),
    # Passages, question and template; the fourth origin is the response itself.
    "cp_lrp": lambda rows: _mean_over_prompt(rows, "cp_by_segment", slice(3)),
}
"""R_response of another target or composite, which a store's signals have beside their own."""
