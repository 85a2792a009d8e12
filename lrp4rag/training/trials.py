"""Trials: token models that differ in what they read, or in what they learn from, under one protocol.

A trial takes two steps. A block's votes in a fold depend on no other block, so they are computed once for all
trials that read the block; counting and reading them is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.operating import DEFAULT_POINT, RULES
from lrp4rag.classifiers.token_model import Tokens, count_votes
from lrp4rag.features.blocks import Block
from lrp4rag.training.cache import Cache, Cell, Task
from lrp4rag.training.folds import ONCE, Protocol, Split
from lrp4rag.training.learners import LEARNERS, NETWORK
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import FoldResult, Located, Votes, folds_of, located_of, read_fold, votes_of
from lrp4rag.training.tokens_on_disk import tokens_on_disk

VERSION = 2
"""Raised whenever a trial of the same settings would come out differently."""


@dataclass(frozen=True, slots=True)
class Trial:
    """`blocks` are what tokens are judged by. With `judged`, only that generator's responses are, by models
    that learned from the others'; with `sources`, models learn from so many. `learner` is of `LEARNERS`.
    Models that are not `told` know nothing of generators."""

    blocks: tuple[str, ...]
    learner: str = NETWORK
    judged: str | None = None
    sources: int | None = None
    told: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Workshop:
    """What trials share: rows, their tokens by blocks of features, and where results are kept."""

    rows: Rows
    blocks: Mapping[str, Block]
    tokens: Tokens
    cache: Cache
    protocol: Protocol = ONCE

    @classmethod
    def open(cls, rows: Rows, folder: Path, blocks: Mapping[str, Block], jobs: int) -> Workshop:
        """Features are read from the store first, and kept in `folder`, as are finished folds.

        Raises `InputError` where the store lacks what the blocks are made of.
        """
        tokens = tokens_on_disk(rows, folder / "features", blocks)
        return cls(rows, dict(blocks), tokens, Cache.open(folder / "trials", jobs))

    def run(self, trials: Mapping[str, Trial], label: str) -> dict[str, Located]:
        """All folds of all trials; what was run before is read."""
        return {name: located_of(results, self.tokens) for name, results in self._run(trials, label).items()}

    def run_together(self, trials: Mapping[str, Trial], label: str) -> Located:
        """Trials that judge different rows, as one."""
        found = self._run(trials, label)
        return located_of([result for results in found.values() for result in results], self.tokens)

    def outside(self, trial: Trial) -> list[NDArray[np.float64]]:
        """In each fold, the probabilities (train,) of the responses learned from, by members that had not
        learned from them."""
        votes = self.votes_cells(trial)
        cells = [
            Cell(
                self._key(trial, "outside", k) | self._settings(trial),
                NDArray[np.float64],
                partial(
                    self._outside_task, split, {name: cells[k] for name, cells in votes.items()}, trial.told
                ),
            )
            for k, split in enumerate(self.folds(trial))
        ]
        if not all(map(self.cache.holds, cells)):
            self.cache.all([cell for own in votes.values() for cell in own], "votes")
        return self.cache.all(cells, "probabilities of training rows")

    def folds(self, trial: Trial) -> list[Split]:
        learn = judged = None
        if trial.judged is not None:
            judged = self.rows.generators == trial.judged
            learn = ~judged
        folds = folds_of(self.tokens, self.protocol, learn, judged)
        if trial.sources is None:
            return folds
        return [replace(split, train=self._some(split.train, trial.sources)) for split in folds]

    def votes_cells(self, trial: Trial) -> dict[str, list[Cell]]:
        """By block, a cell for each fold."""
        folds = self.folds(trial)
        return {
            name: [
                Cell(
                    self._key(trial, "votes", k) | {"block": asdict(self.blocks[name])},
                    Votes,
                    partial(self._votes_task, name, split, trial.learner),
                )
                for k, split in enumerate(folds)
            ]
            for name in trial.blocks
        }

    def reading_cells(self, trial: Trial) -> list[Cell]:
        """A cell for each fold, which reads those of the votes."""
        votes = self.votes_cells(trial)
        return [
            Cell(
                self._key(trial, "reading", k) | self._settings(trial),
                FoldResult,
                partial(
                    self._reading_task,
                    split,
                    {name: cells[k] for name, cells in votes.items()},
                    trial.told,
                ),
            )
            for k, split in enumerate(self.folds(trial))
        ]

    def _run(self, trials: Mapping[str, Trial], label: str) -> dict[str, list[FoldResult]]:
        cells = {name: self.reading_cells(trial) for name, trial in trials.items()}
        votes = [
            cell
            for name, trial in trials.items()
            if not all(map(self.cache.holds, cells[name]))
            for own in self.votes_cells(trial).values()
            for cell in own
        ]
        self.cache.all(votes, label)
        self.cache.all([cell for own in cells.values() for cell in own], f"{label}, verdicts")
        return {name: [self.cache.read(cell) for cell in own] for name, own in cells.items()}

    def _votes_task(self, name: str, split: Split, learner: str) -> Task:
        return partial(_votes, self.tokens.select((name,)), name, split, self.protocol.seed, learner)

    def _reading_task(self, split: Split, votes: Mapping[str, Cell], told: bool) -> Task:
        return partial(read_fold, self._bare(told), split, self._held(votes))

    def _outside_task(self, split: Split, votes: Mapping[str, Cell], told: bool) -> Task:
        outside = {name: one.outside for name, one in self._held(votes).items()}
        return partial(_outside, self._bare(told), split.train, outside)

    def _held(self, votes: Mapping[str, Cell]) -> dict[str, Votes]:
        return {name: self.cache.read(cell) for name, cell in votes.items()}

    def _bare(self, told: bool) -> Tokens:
        """The tokens without features, and without generators unless models are told."""
        bare = self.tokens.select(())
        return bare if told else replace(bare, generators=np.full(len(bare.labels), ""))

    def _settings(self, trial: Trial) -> dict[str, Any]:
        """What a reading of votes depends on."""
        settings: dict[str, Any] = {
            "blocks": {name: asdict(self.blocks[name]) for name in trial.blocks},
            "point": RULES[DEFAULT_POINT].words,
        }
        return settings if trial.told else settings | {"told": False}

    def _key(self, trial: Trial, step: str, fold: int) -> dict[str, Any]:
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

    def _some(self, train: NDArray[np.intp], sources: int) -> NDArray[np.intp]:
        """The rows of the first sources in an order that is drawn once: fewer are some of more."""
        groups = self.tokens.groups
        order = np.random.default_rng(self.protocol.seed).permutation(np.unique(groups))
        inside = set(groups[train])
        known = [source for source in order if source in inside]
        return train[np.isin(groups[train], known[:sources])]


def _outside(
    tokens: Tokens, rows: NDArray[np.intp], votes: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.float64]:
    return count_votes(tokens, rows, votes).probabilities


def _votes(tokens: Tokens, name: str, split: Split, seed: int, learner: str) -> Votes:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the networks are small: processes share the cores better than threads do
    try:
        return votes_of(tokens, name, split, seed, LEARNERS[learner])
    finally:
        torch.set_num_threads(threads)
