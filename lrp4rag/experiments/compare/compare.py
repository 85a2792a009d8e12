"""The comparison: every baseline and our detectors under one protocol, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.baselines.baseline import Baseline
from lrp4rag.experiments.baselines.kit import Kit
from lrp4rag.experiments.compare.folds import FoldScores, Judged, gathered, run_fold
from lrp4rag.experiments.protocol import ONCE, Protocol, Split
from lrp4rag.experiments.reproduce.cache import Cache, Cell, Task
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.tokens import folds_of, tokens_of

VERSION = 1
"""Raised whenever a fold of the same settings would come out differently."""


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Rows, their folds, and where finished folds are kept. `sample` (K,) are the rows of slow baselines."""

    rows: Rows
    sample: NDArray[np.intp]
    kit: Kit
    cache: Cache
    protocol: Protocol = ONCE

    def judged(self, baselines: Mapping[str, Baseline]) -> dict[str, Judged]:
        """Each on all rows, or on the sample where it is slow; what was run before is read."""
        tokens = tokens_of(self.rows, {})
        folds = folds_of(tokens, self.protocol)
        made = {}
        for name, baseline in baselines.items():
            cells = [self._cell(name, baseline, k, split) for k, split in enumerate(folds)]
            made[name] = gathered(self.cache.all(cells, name), tokens)
        return made

    def _cell(self, name: str, baseline: Baseline, fold: int, split: Split) -> Cell:
        if baseline.facts.slow:
            kept = (part[np.isin(part, self.sample)] for part in (split.train, split.test))
            split = Split(split.repeat, *kept)
        key = {
            "compare": VERSION,
            "baseline": name,
            "kit": self.kit.settings,
            "rows": self.rows.digest,
            "learned from": len(split.train),
            "judged": len(split.test),
            "seed": self.protocol.seed,
            "fold": fold,
        }
        return Cell(key, FoldScores, partial(_task, baseline, self.rows, split, self.kit))


def _task(baseline: Baseline, rows: Rows, split: Split, kit: Kit) -> Task:
    return partial(run_fold, baseline, rows, split, kit)
