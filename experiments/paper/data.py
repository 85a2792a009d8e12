"""What a reproduction computes: rows of one generator, their vectors, and the candidates of classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.registry import candidates_of
from lrp4rag.classifiers.vectors import VECTORS, Features
from lrp4rag.features.parts import SEGMENTS
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training.folds import HONEST, Protocol
from lrp4rag.training.metrics import RESAMPLES
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import key_of
from lrp4rag.util.errors import LRP4RAGError

PAPER = Protocol(
    "paper",
    grouped=False,
    repeats=1,
    mode="zeros",
    lengths=(220,),
    nested=False,
    leaks="counted",
)
"""Section 5 of the paper and its code: plain 5-fold cross-validation over all rows, zeros in empty bins."""

Labels = NDArray[np.bool_]
Groups = NDArray[np.str_]
Array = NDArray[Any]
Floats = NDArray[np.float64]

LONGEST = 500
SHOWN_LENGTHS = (10, 20, 30, 50, 100, 150, 200, 220, 250, 300, 350, 400, 450, 500)
"""Of the sweep, what the page's table has, and where the constant control is computed."""
FEWEST_SOURCES = 10
"""Sources that each class must have: enough for five folds, and five more inside each."""

ONE_VECTOR, TWO_VECTORS, MATRICES = ("prompt", "response"), ("total", "segments"), ("matrix", "matrix_t")
"""R_prompt and R_response are the paper's vectors, as R* is; those in the middle are ours."""
VECTOR_WORDS = {
    "prompt": "R_prompt",
    "response": "R_response",
    "total": "n R_response",
    "segments": "R_response by segment",
    "matrix": "R* along the response",
    "matrix_t": "R* along the prompt",
}

# Fewer than `train` tries: a network or a forest takes several times as long as an SVM. The mean of a
# resampled row hardly depends on the length, so the threshold has one. R* has its stored length.
GRID: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "threshold": ((220,), ("trim=0.01",)),
    "svm": ((20, 60, 220), ("C=0.3", "C=1", "C=3")),
    "mlp": ((60,), ("hidden=64, alpha=1",)),
    "forest": ((60,), ("leaf=5",)),
    "lstm": ((), ("2 x 256",)),
}
"""Lengths and settings of the candidates of each classifier."""
DEFAULTS = {
    "threshold": "trim=0.01",
    "svm": "C=1",
    "mlp": "hidden=64, alpha=0.1",
    "forest": "leaf=5",
    "lstm": "2 x 256",
    "logistic": "C=1",
}
"""Settings under the paper's protocol, which chooses nothing: scikit-learn's defaults, or what is nearest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Bootstrap resamples, and the lengths of Tables 3 and 4."""

    resamples: int = RESAMPLES
    sweep: tuple[int, ...] = tuple(range(10, LONGEST + 1, 10))

    @property
    def band_resamples(self) -> int:
        """Of the curves over lengths: there are hundreds of points, and none of them decides anything."""
        return max(self.resamples // 5, 20)

    @property
    def honest(self) -> Protocol:
        return replace(HONEST, repeats=1, lengths=GRID["svm"][0])

    @property
    def by_accuracy(self) -> Protocol:
        """The same, but candidates are chosen by accuracy."""
        return replace(self.honest, scoring="accuracy")

    @property
    def plain(self) -> Protocol:
        """The honest folds for one candidate at its default setting: nothing is chosen or calibrated."""
        return replace(self.honest, nested=False)

    @property
    def paper(self) -> Protocol:
        return replace(PAPER)

    @property
    def protocols(self) -> tuple[Protocol, Protocol]:
        return self.honest, self.paper


def lengths_of(classifier: str, vector: str) -> tuple[int, ...]:
    return (VECTORS[vector].length,) if vector in MATRICES else GRID[classifier][0]


def estimator_of(classifier: str, settings: str) -> Any:
    """An unfitted estimator; raises `LRP4RAGError` where the classifier has no such candidate."""
    candidates = candidates_of(classifier)
    if settings not in candidates:
        raise LRP4RAGError(f"{classifier} has no '{settings}' but {', '.join(candidates)}")
    return candidates[settings]


@dataclass(frozen=True, eq=False)
class Subset:
    """R rows of one generator. `labels` may differ from those of `rows`."""

    generator: str
    rows: Rows
    labels: Labels
    groups: Groups
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Rows, generator: str) -> Subset:
        rows = rows.select_generators([generator])
        return cls(generator, rows, rows.labels, rows.groups)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def truth(self) -> tuple[Labels, Groups]:
        return self.labels, self.groups

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
        needs = VECTORS[vector].needs if vector in VECTORS else (SIGNALS,)
        # Signals have relevance by segment too.
        return all(self.has(need) or (need == SEGMENTS and self.has(SIGNALS)) for need in needs)

    def vectors(self, name: str) -> list[Array]:
        """One of `VECTORS` or of `DERIVED`, of every row; of any length."""

        def read() -> Sequence[Array]:
            if name in DERIVED:
                return DERIVED[name](self.rows)
            return [VECTORS[name].of(relevance) for relevance in self.rows.relevances]

        vectors: list[Array] = self._remembered(f"vector {name}", read)
        return vectors

    def inputs(self, vector: str, length: int, mode: Mode = "interpolate") -> Floats:
        """(R, length), or (R, length, features)."""
        return Features(length=length, mode=mode).resampled(self.vectors(vector))

    def relabelled(self, labels: Labels) -> Subset:
        return replace(self, labels=labels, _memo={})

    def select(self, indices: NDArray[np.intp]) -> Subset:
        return Subset(self.generator, self.rows.select(indices), self.labels[indices], self.groups[indices])

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
    common = np.array([k for k, key in enumerate(keys) if key in places], dtype=np.intp)
    others = np.array([places[keys[k]] for k in common], dtype=np.intp)
    # Where all are in common the subset is the same, and so is what was computed on it.
    return first if len(common) == len(first) else first.select(common), second.select(others)


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
