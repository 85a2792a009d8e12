"""What every section is given, and what it gives back to be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from experiments.cache import Cache
from experiments.metrics import compare
from experiments.numbers import verdict
from experiments.paper.data import FEWEST_SOURCES, Settings, Subset, Variant
from experiments.paper.methods import Fit, Method
from experiments.systems.resources import ModelChoice, Resources
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.features.parts import MATRIX, PROMPT
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError

T = TypeVar("T")
_MISSING = "this store has none"
REMEDIES = {
    "rows": ("too few are extracted yet", "lrp4rag extract DATA --store STORE"),
    SIGNALS: (_MISSING, "python -m experiments extract DATA --store STORE --parts relevance,signals"),
    PROMPT: (_MISSING, "python -m experiments extract DATA --store STORE --parts relevance,signals,prompt"),
    MATRIX: (
        "not every row of this store has it, for it takes a backward pass for each of 64 parts of a response",
        "lrp4rag extract DATA --store STORE --parts relevance --matrix 64x16",
    ),
}
"""Why a store lacks a part, and what adds it."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is left out, why, and what would add it."""

    what: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The subsets by generator; by variant (another store of the same responses) its rows, and by generator
    the rows in common; baselines of the comparison to run on the same rows, and the sources that each has if
    it is slow."""

    subsets: dict[str, Subset]
    stores: dict[str, Rows]
    variants: dict[str, dict[str, Variant | None]]
    settings: Settings
    cache: Cache
    notes: tuple[Note, ...]
    baselines: Mapping[str, int]
    resources: Resources | None
    _results: dict[Fit, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        store: Path,
        *,
        variants: Mapping[str, Path],
        generators: Sequence[str],
        cache: Cache,
        settings: Settings,
        baselines: Mapping[str, int],
        reader: str | None = None,
    ) -> Context:
        """Raises `InputError` where a folder is no store, or no generator has enough responses."""
        rows = Rows.open(store)
        names = generators or dict.fromkeys(map(str, rows.generators))
        every = {name: Subset.of(rows, name) for name in names}
        subsets = {name: subset for name, subset in every.items() if subset.enough}
        if not subsets:
            why = f"no generator has hallucinated and faithful responses to {FEWEST_SOURCES} sources each"
            raise InputError(why, path=store)
        few = [name for name in every if name not in subsets]
        stores = {name: Rows.open(folder) for name, folder in variants.items()}
        return cls(
            subsets,
            stores,
            {
                name: {of: Variant.of(name, subset, other) for of, subset in subsets.items()}
                for name, other in stores.items()
            },
            settings,
            cache,
            (Note(f"responses of {', '.join(few)}", *REMEDIES["rows"]),) if few else (),
            baselines,
            Resources(cache, ModelChoice.beside(rows.store, reader)) if baselines else None,
        )

    @property
    def rows(self) -> Rows:
        """Of the main store, of one generator."""
        return next(iter(self.subsets.values())).rows

    @staticmethod
    def extras(subset: Subset) -> list[str]:
        """Which of the parts that not every store has are there for all rows."""
        return [name for name in (SIGNALS, PROMPT, MATRIX) if subset.has(name)]

    def lacking(self, need: str, what: str) -> tuple[Note, ...]:
        """A note that names the generators whose rows lack a part, if there are any."""
        names = [name for name, subset in self.subsets.items() if not subset.has(need)]
        return (Note(f"{what} of {', '.join(names)}", *REMEDIES[need]),) if names else ()

    def variants_of(self, subset: Subset) -> list[Variant]:
        """Those that have enough rows in common with the subset."""
        variants = (by_generator[subset.generator] for by_generator in self.variants.values())
        return [variant for variant in variants if variant is not None]

    def map(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]], label: str) -> list[T]:
        """The results of calls, each kept by its arguments; `calls` may gather arguments as they are
        needed."""
        calls = list(calls)
        return self.cache.map(function, calls, len(calls), label)

    def outcomes(self, methods: Sequence[Method], label: str) -> list[Outcome]:
        """Compute the methods' steps, on as many cores as there are workers."""
        steps = dict.fromkeys(
            step for method in methods for step in method.steps if step not in self._results
        )
        for function in dict.fromkeys(step.function for step in steps):
            own = [step for step in steps if step.function is function]
            results = self.cache.map(function, (step.arguments() for step in own), len(own), label)
            self._results.update(zip(own, results, strict=True))
        return [
            _canonical(method.combine([self._results[step] for step in method.steps])) for method in methods
        ]

    def metrics(self, methods: Sequence[Method], label: str) -> list[Metrics]:
        """With bootstrap intervals over sources."""
        pairs = zip(self.outcomes(methods, label), methods, strict=True)
        calls = [(outcome, *method.subset.truth, self.settings.resamples) for outcome, method in pairs]
        return self.map(metrics_of, calls, f"{label}: intervals")

    def differences(self, pairs: Sequence[tuple[Method, Method]], label: str) -> list[Metrics]:
        """The first less the second of each pair, of the same rows, on the same draws."""
        outcomes = self.outcomes([method for pair in pairs for method in pair], label)
        subsets = [first.subset for first, _ in pairs]
        calls = [
            (*both, *subset.truth, self.settings.resamples)
            for *both, subset in zip(outcomes[::2], outcomes[1::2], subsets, strict=True)
        ]
        return self.map(difference_of, calls, f"{label}: intervals")


def _canonical(outcome: Outcome) -> Outcome:
    """With arrays of usual strides: results are kept by the hash of an outcome, which strides are part of."""
    return replace(
        outcome, probabilities=outcome.probabilities.copy(order="C"), flagged=outcome.flagged.copy(order="C")
    )


def metrics_of(outcome: Outcome, labels: Any, groups: Any, resamples: int) -> Metrics:
    return outcome_metrics(outcome, labels, groups, resamples=resamples)


def difference_of(first: Outcome, second: Outcome, labels: Any, groups: Any, resamples: int) -> Metrics:
    return compare(first, second, labels, groups, resamples=resamples)


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """What a result is shown as, by file name: figures, tables of numbers (CSV) and tables of words
    (Markdown), which the page repeats."""

    figures: dict[str, Figure] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    shown: dict[str, pd.DataFrame] = field(default_factory=dict)


def metric_rows(metrics: Metrics, **names: object) -> list[dict[str, object]]:
    """A row a metric for a table of numbers: the names, then the metric, its value and its bounds."""
    return [
        {**names, "metric": metric, "value": one.value, "low": one.low, "high": one.high}
        for metric, one in metrics.items()
    ]


def worded(interval: Interval, null: float) -> str:
    """The verdict on a claim in words: holds, fails, or cannot be told."""
    words = verdict(interval, null)
    return "fails" if words == "does not hold" else words
