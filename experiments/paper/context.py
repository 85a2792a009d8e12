"""What every section is given, and what it gives back to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.cache import Cache, Cell, Task
from experiments.metrics import compare
from experiments.paper.methods import Method
from experiments.paper.settings import Settings
from experiments.paper.subset import FEWEST_SOURCES, Subset, Variant
from experiments.systems.resources import Choices, Resources
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.card import Metrics
from lrp4rag.features.parts import MATRIX, PROMPT
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError

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
class BaselineRun:
    """Baselines of the comparison to run on the same rows: by name, the sources whose responses each has if
    it is slow; and where finished folds are kept."""

    sources: Mapping[str, int]
    resources: Resources
    folds: Cache


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The subsets by generator, other stores of the same responses by name, where results are cached, and
    which baselines are run."""

    subsets: dict[str, Subset]
    variants: dict[str, Rows]
    settings: Settings
    cache: Cache
    notes: tuple[Note, ...] = ()
    baselines: BaselineRun | None = None

    @classmethod
    def open(
        cls,
        store: Path,
        *,
        variants: Mapping[str, Path],
        generators: Sequence[str],
        cache: Path,
        settings: Settings,
        jobs: int,
        baselines: Mapping[str, int] | None = None,
        reader: str | None = None,
    ) -> Context:
        """Raises `InputError` where a folder is no store, or no generator has enough responses."""
        rows = Rows.open(store)
        names = generators or dict.fromkeys(map(str, rows.generators))
        subsets = {name: Subset.of(rows, name) for name in names}
        kept = {name: subset for name, subset in subsets.items() if subset.enough}
        if not kept:
            raise InputError(
                f"no generator has hallucinated and faithful responses to {FEWEST_SOURCES} sources each",
                path=store,
            )
        few = [name for name in subsets if name not in kept]
        notes = (Note(f"responses of {', '.join(few)}", *REMEDIES["rows"]),)
        others = {name: Rows.open(folder) for name, folder in variants.items()}
        run = None
        if baselines:
            folder = cache / "baselines"
            resources = Resources(folder, Choices.beside(rows.store, reader))
            run = BaselineRun(baselines, resources, Cache.open(folder / "folds"))
        return cls(kept, others, settings, Cache.open(cache, jobs), notes if few else (), run)

    @property
    def key(self) -> dict[str, Any]:
        """Everything that a section's result depends on."""
        return {
            "settings": asdict(self.settings),
            "rows": {name: [subset.digest, self.extras(subset)] for name, subset in self.subsets.items()},
            "variants": {name: rows.digest for name, rows in self.variants.items()},
        }

    @staticmethod
    def extras(subset: Subset) -> list[str]:
        """Which of the parts that not every store has are there for all rows."""
        return [name for name in (SIGNALS, PROMPT, MATRIX) if subset.has(name)]

    def lacking(self, need: str, what: str) -> tuple[Note, ...]:
        """A note that names the generators whose rows lack a part, if there are any."""
        names = [name for name, subset in self.subsets.items() if not subset.has(need)]
        return (Note(f"{what} of {', '.join(names)}", *REMEDIES[need]),) if names else ()

    def variants_of(self, subset: Subset) -> dict[str, Variant | None]:
        """By name; None where a variant has too few rows in common with the subset."""
        return {name: Variant.of(name, subset, rows) for name, rows in self.variants.items()}

    def outcomes(self, methods: Sequence[Method], label: str) -> list[Outcome]:
        """Compute what the methods are made of, on as many rows at once as there are workers."""
        self.cache.all([cell for method in methods for cell in method.cells], label)
        return [self._outcome(method) for method in methods]

    def metrics(self, methods: Sequence[Method], label: str) -> list[Metrics]:
        """With bootstrap intervals over sources."""
        return self._derived("metrics", [(method,) for method in methods], outcome_metrics, label)

    def differences(self, pairs: Sequence[tuple[Method, Method]], label: str) -> list[Metrics]:
        """The first less the second of each pair, of the same rows, on the same draws."""
        return self._derived("difference", pairs, compare, label)

    def metrics_of(self, subset: Subset, outcome: Outcome) -> Metrics:
        """Of an outcome that needed no fitting."""
        return outcome_metrics(outcome, subset.labels, subset.groups, **self._bootstrap)

    def _derived(
        self,
        what: str,
        groups: Sequence[tuple[Method, ...]],
        measure: Callable[..., Metrics],
        label: str,
    ) -> list[Metrics]:
        """`measure` of the outcomes of each group of methods, which have the same rows."""
        cells = [self._derived_cell(what, group, measure) for group in groups]
        if not all(self.cache.holds(cell) for cell in cells):
            self.cache.all([cell for group in groups for method in group for cell in method.cells], label)
        return self.cache.all(cells, f"{label}: intervals")

    def _derived_cell(self, what: str, group: tuple[Method, ...], measure: Callable[..., Metrics]) -> Cell:
        keys = [method.key for method in group]
        key = {
            "what": what,
            "of": keys if len(keys) > 1 else keys[0],
            "rows": group[0].subset.digest,
            "resamples": self.settings.resamples,
            "bootstrap seed": self.settings.seed,
        }
        return Cell(key, Metrics, partial(self._prepare, group, measure))

    def _prepare(self, group: tuple[Method, ...], measure: Callable[..., Metrics]) -> Task:
        subset, outcomes = group[0].subset, [self._outcome(method) for method in group]
        return partial(measure, *outcomes, subset.labels, subset.groups, **self._bootstrap)

    def _outcome(self, method: Method) -> Outcome:
        return method.combine([self.cache.read(cell) for cell in method.cells])

    @property
    def _bootstrap(self) -> dict[str, int]:
        return {"resamples": self.settings.resamples, "seed": self.settings.seed}


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
