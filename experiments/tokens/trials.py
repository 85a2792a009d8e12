"""Token models that differ in what they read, or in what they learn from, cross-validated under one protocol.

A trial takes two steps. A block's scores in a fold depend on no other block, so they are computed once for
all trials that read the block; stacking them and deciding is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Cache
from experiments.tokens.blocks import parts_of
from experiments.tokens.extraction import records_for
from experiments.tokens.learners import LEARNERS, NETWORK
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
from lrp4rag.training.tokens import Tokens, key_of_block, tokens_on_disk
from lrp4rag.util.processes import one_thread

T = TypeVar("T")
VERSION = 3
"""Raised whenever the scores of blocks of the same settings, or decisions by them, would come out
differently."""
Key = list[Any]
"""All that a result depends on beside the code, as `cache.described` takes it."""
Place = tuple[str, str, str | None, int | None, int]
"""Of a block's scores: block, learner, judged generator, number of sources, fold."""
ByBlock = Mapping[str, BlockScores]


@dataclass(frozen=True, slots=True)
class Trial:
    """`blocks` are what tokens are scored by, and `learner` is of `LEARNERS`. With `judged`, only that
    generator's responses are judged, by models that learned from the others'; with `sources`, models learn
    from so many. Models that do not `know_generators` shift no log odds by generator."""

    blocks: tuple[str, ...]
    learner: str = NETWORK
    judged: str | None = None
    sources: int | None = None
    know_generators: bool = True

    def place(self, block: str, fold: int) -> Place:
        return block, self.learner, self.judged, self.sources, fold


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """What trials share: rows, their tokens by blocks of features, and the cache of results."""

    rows: Rows
    blocks: Mapping[str, Block]
    tokens: Tokens
    cache: Cache
    protocol: Protocol = ONCE

    @classmethod
    def open(cls, rows: Rows, cache: Cache, blocks: Mapping[str, Block]) -> CrossValidation:
        """Features are read from the store first, and kept beside finished folds.

        Raises `InputError` where the store lacks what the blocks are made of.
        """
        tokens = tokens_on_disk(
            rows, cache.place / "features", blocks, lambda missing: records_for(rows, parts_of(missing))
        )
        return cls(rows, dict(blocks), tokens, cache)

    def run(self, trials: Mapping[str, Trial], label: str) -> dict[str, TokenPredictions]:
        """All folds of all trials."""
        results = self._each_fold(_decided, trials.values(), label)
        return {name: joined(folds, self.tokens) for name, folds in zip(trials, results, strict=True)}

    def run_together(self, trials: Mapping[str, Trial], label: str) -> TokenPredictions:
        """Trials that judge different rows, as one."""
        results = self._each_fold(_decided, trials.values(), label)
        return joined([result for folds in results for result in folds], self.tokens)

    def out_of_fold(self, trial: Trial) -> list[NDArray[np.float64]]:
        """In each fold, the probabilities (train,) of the responses learned from, by base models that had not
        learned from them."""
        return self._each_fold(_out_of_fold, [trial], "probabilities of training rows")[0]

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

    def _each_fold(
        self, step: Callable[[Key, Tokens, Split, ByBlock], T], trials: Iterable[Trial], label: str
    ) -> list[list[T]]:
        """By trial and fold, what a step makes of the scores of the trial's blocks."""
        trials = list(trials)
        places = {
            trial.place(block, k): split
            for trial in trials
            for k, split in enumerate(self.folds(trial))
            for block in trial.blocks
        }
        calls = ((self._key(place), self.tokens.select(place[:1]), split) for place, split in places.items())
        kept = self.cache.map(_block_scores, calls, len(places), label, ignore=("tokens", "split"))
        scores = dict(zip(places, kept, strict=True))

        def decisions() -> Iterator[tuple[Key, Tokens, Split, ByBlock]]:
            for trial in trials:
                tokens = self.tokens.select(())
                if not trial.know_generators:
                    tokens = replace(tokens, generators=np.full(len(tokens.labels), ""))
                for k, split in enumerate(self.folds(trial)):
                    of_blocks = {block: trial.place(block, k) for block in trial.blocks}
                    key = [trial.know_generators, *map(self._key, of_blocks.values())]
                    yield key, tokens, split, {block: scores[place] for block, place in of_blocks.items()}

        counts = [len(self.folds(trial)) for trial in trials]
        ignored = ("tokens", "split", "scores")
        results = iter(self.cache.map(step, decisions(), sum(counts), f"{label}, verdicts", ignore=ignored))
        return [[next(results) for _ in range(count)] for count in counts]

    def _key(self, place: Place) -> Key:
        block = self.blocks[place[0]]
        return [VERSION, key_of_block(self.rows, block), self.protocol.seed, block, *place]


def _block_scores(key: Key, tokens: Tokens, split: Split) -> BlockScores:
    (block,) = tokens.blocks
    _, _, seed, _, _, learner, *_ = key
    with one_thread():
        return block_scores(tokens, block, split, seed, LEARNERS[learner])


def _decided(key: Key, tokens: Tokens, split: Split, scores: ByBlock) -> FoldResult:
    return decide_fold(tokens, split, scores)


def _out_of_fold(key: Key, tokens: Tokens, split: Split, scores: ByBlock) -> NDArray[np.float64]:
    return fit_stacker(tokens, split.train, {name: one.outside for name, one in scores.items()}).probabilities
