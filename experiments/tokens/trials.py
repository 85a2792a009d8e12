"""Token models that differ in what they read, or in what they learn from, cross-validated under one protocol.

A trial takes two steps. A block's scores in a fold depend on no other block, so they are computed once for
all trials that read the block; stacking them and deciding is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.cache import Cache, Cell, Task
from experiments.tokens.blocks import parts_of
from experiments.tokens.extraction import records_for
from experiments.tokens.learners import LEARNERS, NETWORK
from lrp4rag.classifiers.operating import DEFAULT_POINT, RULES
from lrp4rag.features.blocks import Block
from lrp4rag.training.folds import ONCE, Protocol, Split
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import (
    BlockScores,
    FoldResult,
    TokenPredictions,
    block_scores,
    decide_fold,
    fit_stacker,
    folds_of,
    joined,
)
from lrp4rag.training.tokens import Tokens, tokens_on_disk

VERSION = 3
"""Raised whenever the scores of blocks of the same settings would come out differently."""
DECISIONS = 2
"""The same of what is made of these scores."""

ByBlock = Mapping[str, BlockScores]
Compute = Callable[[Tokens, Split, ByBlock], Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """`blocks` are what tokens are scored by, and `learner` is of `LEARNERS`. With `judged`, only that
    generator's responses are judged, by models that learned from the others'; with `sources`, models learn
    from so many. Models that do not `know_generators` shift no log odds by generator. Responses are flagged
    at an operating `point` of the
    rows learned from."""

    blocks: tuple[str, ...]
    learner: str = NETWORK
    judged: str | None = None
    sources: int | None = None
    know_generators: bool = True
    point: str = DEFAULT_POINT


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """What trials share: rows, their tokens by blocks of features, and the cache of results."""

    rows: Rows
    blocks: Mapping[str, Block]
    tokens: Tokens
    cache: Cache
    protocol: Protocol = ONCE

    @classmethod
    def open(cls, rows: Rows, folder: Path, blocks: Mapping[str, Block], jobs: int) -> CrossValidation:
        """Features are read from the store first, and cached in `folder`, as are finished folds.

        Raises `InputError` where the store lacks what the blocks are made of.
        """
        read = lambda missing: records_for(rows, parts_of(missing))  # noqa: E731
        tokens = tokens_on_disk(rows, folder / "features", blocks, read)
        return cls(rows, dict(blocks), tokens, Cache.open(folder / "trials", jobs))

    def run(self, trials: Mapping[str, Trial], label: str) -> dict[str, TokenPredictions]:
        """All folds of all trials; what was run before is read."""
        return {name: joined(results, self.tokens) for name, results in self._run(trials, label).items()}

    def run_together(self, trials: Mapping[str, Trial], label: str) -> TokenPredictions:
        """Trials that judge different rows, as one."""
        found = self._run(trials, label)
        return joined([result for results in found.values() for result in results], self.tokens)

    def out_of_fold(self, trial: Trial) -> list[NDArray[np.float64]]:
        """In each fold, the probabilities (train,) of the responses learned from, by base models that had not
        learned from them."""
        cells = self._cells(trial, "outside", NDArray[np.float64], _out_of_fold)
        self._compute_scores([trial], [cells], "scores of blocks")
        return self.cache.all(cells, "probabilities of training rows")

    def seconds(self, trials: Iterable[Trial]) -> float:
        """How long all folds of trials that were run took, each on one core, whenever that was."""
        cells = []
        for trial in trials:
            cells += self.result_cells(trial)
            cells += [cell for each in self.score_cells(trial).values() for cell in each]
        return self.cache.seconds(cells)

    def folds(self, trial: Trial) -> list[Split]:
        learn = judged = None
        if trial.judged is not None:
            judged = self.rows.generators == trial.judged
            learn = ~judged
        folds = folds_of(self.tokens, self.protocol, learn, judged)
        if trial.sources is None:
            return folds
        # The first sources in an order that is drawn once: fewer are some of more.
        order = np.random.default_rng(self.protocol.seed).permutation(np.unique(self.tokens.groups))
        smaller = []
        for split in folds:
            groups = self.tokens.groups[split.train]
            first = order[np.isin(order, groups)][: trial.sources]
            smaller.append(replace(split, train=split.train[np.isin(groups, first)]))
        return smaller

    def score_cells(self, trial: Trial) -> dict[str, list[Cell]]:
        """By block, a cell for each fold with its `BlockScores`."""
        folds = self.folds(trial)
        return {
            name: [
                Cell(
                    self._key(trial, "votes", k) | {"block": asdict(self.blocks[name])},
                    BlockScores,
                    partial(self._score_task, name, split, trial.learner),
                )
                for k, split in enumerate(folds)
            ]
            for name in trial.blocks
        }

    def result_cells(self, trial: Trial) -> list[Cell]:
        """A cell for each fold with its `FoldResult`, which is made of those of `score_cells`."""
        return self._cells(trial, "reading", FoldResult, partial(decide_fold, point=trial.point))

    def _cells(self, trial: Trial, step: str, kind: Any, compute: Compute) -> list[Cell]:
        scores = self.score_cells(trial)
        return [
            Cell(
                self.decision_key(trial, step, k),
                kind,
                partial(self._task, compute, trial, split, {name: each[k] for name, each in scores.items()}),
            )
            for k, split in enumerate(self.folds(trial))
        ]

    def _run(self, trials: Mapping[str, Trial], label: str) -> dict[str, list[FoldResult]]:
        cells = {name: self.result_cells(trial) for name, trial in trials.items()}
        self._compute_scores(trials.values(), cells.values(), label)
        self.cache.all([cell for each in cells.values() for cell in each], f"{label}, verdicts")
        return {name: [self.cache.read(cell) for cell in each] for name, each in cells.items()}

    def _compute_scores(self, trials: Iterable[Trial], results: Iterable[Sequence[Cell]], label: str) -> None:
        """Of the trials whose results are not all cached."""
        needed = [
            cell
            for trial, found in zip(trials, results, strict=True)
            if not all(map(self.cache.holds, found))
            for cells in self.score_cells(trial).values()
            for cell in cells
        ]
        self.cache.all(needed, label)

    def _score_task(self, name: str, split: Split, learner: str) -> Task:
        return partial(_block_scores, self.tokens.select((name,)), name, split, self.protocol.seed, learner)

    def _task(self, compute: Compute, trial: Trial, split: Split, scores: Mapping[str, Cell]) -> Task:
        """Without features, and without generators unless the models know them."""
        tokens = self.tokens.select(())
        if not trial.know_generators:
            tokens = replace(tokens, generators=np.full(len(tokens.labels), ""))
        return partial(compute, tokens, split, {name: self.cache.read(cell) for name, cell in scores.items()})

    def decision_key(self, trial: Trial, step: str, fold: int) -> dict[str, Any]:
        """What a step that decides by the scores of blocks depends on, in a fold."""
        return self._key(trial, step, fold) | self._settings(trial)

    def _settings(self, trial: Trial) -> dict[str, Any]:
        """What decisions depend on beside the scores."""
        found: dict[str, Any] = {
            "decisions": DECISIONS,
            "blocks": {name: asdict(self.blocks[name]) for name in trial.blocks},
            "point": RULES[trial.point].words,
        } | ({} if trial.know_generators else {"told": False})
        return found

    def _key(self, trial: Trial, step: str, fold: int) -> dict[str, Any]:
        # These names are those of the cells on disk.
        return {
            "study": VERSION,
            "step": step,
            "judged": trial.judged,
            "sources": trial.sources,
            "learner": trial.learner,
            "rows": self.rows.digest,
            "seed": self.protocol.seed,
            "fold": fold,
        }


def _out_of_fold(tokens: Tokens, split: Split, scores: ByBlock) -> NDArray[np.float64]:
    return fit_stacker(tokens, split.train, {name: one.outside for name, one in scores.items()}).probabilities


def _block_scores(tokens: Tokens, name: str, split: Split, seed: int, learner: str) -> BlockScores:
    with one_thread():
        return block_scores(tokens, name, split, seed, LEARNERS[learner])


@contextmanager
def one_thread() -> Iterator[None]:
    """For fitting networks: they are small, and processes share the cores better than threads do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
