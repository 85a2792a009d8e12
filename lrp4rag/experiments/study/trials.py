"""Trials: token models that differ in what they read, or in what they learn from, under one protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.token_model import Tokens
from lrp4rag.experiments.protocol import Protocol, Split
from lrp4rag.experiments.reproduce.cache import Cell
from lrp4rag.experiments.search import Outcome
from lrp4rag.experiments.tokens import Located, folds_of, located
from lrp4rag.features.blocks import blocks_named

VERSION = 1
"""Raised whenever a trial of the same settings would come out differently."""


@dataclass(frozen=True, slots=True)
class Trial:
    """`blocks` are what tokens are judged by. With `judged`, only that generator's responses are, by models
    that learned from the others'; with `sources`, models learn from so many."""

    blocks: tuple[str, ...]
    judged: str | None = None
    sources: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FoldResult:
    """What one fold's models made of R test rows and their N tokens (see `Located`)."""

    rows: NDArray[np.intp]
    alone: NDArray[np.float64]
    log_odds: NDArray[np.float64]
    marked: NDArray[np.bool_]
    sentences: NDArray[np.bool_]
    probabilities: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    chosen: str


def cells_of(
    trial: Trial, tokens: Tokens, generators: NDArray[np.str_], protocol: Protocol, digest: str
) -> list[Cell]:
    """A cell for each fold; `digest` changes with the rows."""
    settings = {name: asdict(block) for name, block in blocks_named(trial.blocks).items()}
    key = {
        "study": VERSION,
        "trial": asdict(trial),
        "blocks": settings,
        "rows": digest,
        "seed": protocol.seed,
    }
    own = tokens.select(trial.blocks)
    return [
        Cell({**key, "fold": k}, FoldResult, partial(_task, trial, own, split, protocol))
        for k, split in enumerate(_folds(trial, tokens, generators, protocol))
    ]


def located_of(results: Sequence[FoldResult], tokens: Tokens) -> Located:
    """The folds' results together; what none judged is NaN and unmarked."""
    alone, log_odds = np.full(len(tokens.flags), np.nan), np.full(len(tokens.flags), np.nan)
    marked, sentences = (np.zeros(len(tokens.flags), dtype=bool) for _ in range(2))
    probabilities = np.full((1, len(tokens.labels)), np.nan)
    flagged = np.zeros((1, len(tokens.labels)), dtype=bool)
    for result in results:
        own = tokens.within(result.rows)
        alone[own], log_odds[own] = result.alone, result.log_odds
        marked[own], sentences[own] = result.marked, result.sentences
        probabilities[0, result.rows], flagged[0, result.rows] = result.probabilities, result.flagged
    outcome = Outcome(probabilities, flagged, tuple(result.chosen for result in results))
    return Located(alone, log_odds, marked, sentences, outcome)


def _folds(trial: Trial, tokens: Tokens, generators: NDArray[np.str_], protocol: Protocol) -> list[Split]:
    learn = judged = None
    if trial.judged is not None:
        judged = generators == trial.judged
        learn = ~judged
    folds = folds_of(tokens, protocol, learn, judged)
    if trial.sources is None:
        return folds
    return [replace(split, train=_some(split.train, tokens, trial.sources, protocol.seed)) for split in folds]


def _some(train: NDArray[np.intp], tokens: Tokens, sources: int, seed: int) -> NDArray[np.intp]:
    """The rows of the first sources in an order that is drawn once: smaller numbers have some of the same."""
    order = np.random.default_rng(seed).permutation(np.unique(tokens.groups))
    known = [source for source in order if source in set(tokens.groups[train])]
    return train[np.isin(tokens.groups[train], known[:sources])]


def _task(trial: Trial, tokens: Tokens, split: Split, protocol: Protocol) -> Callable[[], FoldResult]:
    return partial(_run, tokens, split, protocol)


def _run(tokens: Tokens, split: Split, protocol: Protocol) -> FoldResult:
    import torch

    torch.set_num_threads(1)  # the networks are small: processes share the cores better than threads do
    found = located(tokens, protocol, [split])
    own, outcome = tokens.within(split.test), found.outcome
    return FoldResult(
        rows=split.test,
        alone=found.alone[own],
        log_odds=found.log_odds[own],
        marked=found.marked[own],
        sentences=found.sentences[own],
        probabilities=outcome.probabilities[0, split.test],
        flagged=outcome.flagged[0, split.test],
        chosen=outcome.chosen[0],
    )
