"""Token models under a protocol: each token is scored by an ensemble that did not see its source.

How a response's score is made of its tokens', the sigmoid that makes it a probability, and all thresholds
are chosen on inner folds of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lrp4rag.classifiers.alarms import EVERY_FAULT, Alarm
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.decision import (
    Claimed,
    DecisionRule,
    Names,
    best_threshold,
    choose_rule,
    claim_weights,
)
from lrp4rag.classifiers.ensemble import (
    Ensemble,
    Fit,
    Flags,
    M,
    Network,
    Numbers,
    Scores,
    Stacker,
    TokenScores,
    fit_folds,
    mean_log_odds,
    token_weights,
)
from lrp4rag.classifiers.operating import DEFAULT_POINT, by_set, operating_points
from lrp4rag.classifiers.trees import Trees, with_trees
from lrp4rag.training.alarms import fit_alarm
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.training.store import discard
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.processes import one_thread
from lrp4rag.util.progress import track
from lrp4rag.util.tensors import read_tensors, write_tensors

FOLDS = 5
TINY = 1e-9
"""Probabilities are cut this close to 0 and 1 before their log odds are taken."""
VERSION, ALARM_VERSION = 2, 3
"""Raised whenever the scores of the same key would come out differently: of blocks, and of alarms."""
KIND = "scores"
"""The kind of file that keeps them."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedStacker:
    """What is learned from out-of-fold scores of base models: the stacker (of blocks, if there are any), the
    trees that score claims, where they tell more than the rule's weights, and the decision rule.

    With what they make of these: `scores` of the rows' tokens, and `probabilities` (rows,) of responses.
    """

    stacker: Stacker | None
    trees: tuple[Trees, ...]
    rule: DecisionRule
    scores: TokenScores
    probabilities: Scores


def fit_ensemble(
    tokens: Tokens, rows: Numbers, seed: int = 0
) -> tuple[Ensemble | None, dict[str, Alarm], FittedStacker]:
    """Learn from the tokens, values and sentences of some responses; folds are of sources, and every choice
    is made on them. Return the ensemble (of blocks, if there are any), the alarms, and what was learned of
    their scores."""
    networks, out_of_fold = {}, {}
    for name in track(tokens.blocks, len(tokens.blocks), "training token classifiers"):
        networks[name], out_of_fold[name] = fit_block(Network.fit, tokens, name, rows, seed)
    alarms, of_alarms = fit_alarms(tokens, rows, seed)
    fitted = fit_stacker(tokens, rows, out_of_fold, of_alarms)
    ensemble = None if fitted.stacker is None else Ensemble(networks, fitted.stacker)
    return ensemble, alarms, fitted


def fit_alarms(tokens: Tokens, rows: Numbers, seed: int = 0) -> tuple[dict[str, Alarm], dict[str, Scores]]:
    """Learn the alarms that some responses have enough faults for; return them, and for each the log odds of
    its rows by networks that did not learn from them."""
    alarms, scores = dict[str, Alarm](), dict[str, Scores]()
    names = alarm_names(tokens)
    for name in track(names, len(names), "training alarms"):
        fault = EVERY_FAULT[name]
        table = tokens.faults[fault.unit]
        networks, outside = fit_alarm(table, fault, tokens.groups, rows, seed)
        if networks:
            alarms[name], scores[name] = Alarm(fault.unit, table.columns, networks), outside
    return alarms, scores


def alarm_names(tokens: Tokens) -> list[str]:
    """Name the alarms whose rows were read."""
    return [name for name, fault in EVERY_FAULT.items() if fault.unit in tokens.faults]


def _inputs(tokens: Tokens, name: str, keys: Mapping[str, Any]) -> list[Any]:
    """Return what the scores of a block, or of an alarm, depend on beside the folds."""
    if name not in EVERY_FAULT:
        return [VERSION, name, keys[name]]
    return [ALARM_VERSION, name, keys[EVERY_FAULT[name].unit]]


def fit_block(
    fit: Callable[..., M], tokens: Tokens, name: str, rows: Numbers, seed: int = 0
) -> tuple[tuple[M, ...], Scores]:
    """Fit one block's base models; return them, and their out-of-fold log odds of the tokens of `rows`."""
    inside = tokens.within(rows)
    place = np.searchsorted(rows, tokens.owner[inside])
    folds = [
        (np.flatnonzero(np.isin(place, train)), np.flatnonzero(np.isin(place, held_out)))
        for train, held_out in grouped_folds(tokens.labels[rows], tokens.groups[rows], FOLDS, seed)
    ]
    flags = tokens.flags[inside]
    return fit_folds(fit, tokens.blocks[name][inside], flags, token_weights(flags, place), folds, seed)


def fit_stacker(
    tokens: Tokens,
    rows: Numbers,
    out_of_fold: Mapping[str, Scores],
    alarms: Mapping[str, Scores] = MappingProxyType({}),
) -> FittedStacker:
    """Learn to combine the blocks' scores (from `fit_block`, for the same rows), and to decide by them and
    the scores of `alarms` (from `fit_alarm`)."""
    inside = tokens.within(rows)
    place = np.searchsorted(rows, tokens.owner[inside])
    flags, generators = tokens.flags[inside], tokens.generators[rows]
    labels, sets = tokens.labels[rows], tokens.sets[rows]
    sentence = tokens.sentence[inside]
    stacker, scores = None, _unscored(len(inside))
    if out_of_fold:
        by_block = np.stack(list(out_of_fold.values()), axis=1)
        stacker = Stacker.fit(by_block, flags, place, sentence)
        scores = stacker(by_block, place, sentence)
    columns, sentences, owner = tokens.claims_of(scores.alone, scores.among, inside)
    owner = np.searchsorted(rows, owner)
    wrong = np.isin(sentences, sentence[flags])
    mark = best_threshold(expit(scores.among), flags)
    highest = _highest(tokens, rows, sentences, alarms)
    trees, claims = grow_trees(Claimed(columns, highest), wrong, owner, labels, tokens.groups[rows], sets)
    rule = choose_rule(claims, wrong, owner, labels, mark, generators, sets)
    trees = trees if rule.tree_weight else ()
    return FittedStacker(stacker, trees, rule, scores, rule.responses(claims, owner, generators))


def grow_trees(
    claims: Claimed, wrong: Flags, owner: Numbers, labels: Flags, groups: Names, sets: Names
) -> tuple[tuple[Trees, ...], Claimed]:
    """Learn trees from S claims (see `choose_rule`), one for each fold of the `groups` (R,), the sources of
    their responses; return them, and the claims with what trees make of them that did not learn from them."""
    folds = [
        (np.flatnonzero(np.isin(owner, train)), np.flatnonzero(np.isin(owner, held_out)))
        for train, held_out in grouped_folds(labels, groups, FOLDS, 0)
    ]
    counts = claim_weights(wrong, owner, sets)
    trees, outside = fit_folds(Trees.fit, claims.table.astype(np.float32), wrong, counts, folds)
    return trees, replace(claims, by_trees=outside)


def _unscored(count: int) -> TokenScores:
    """Return the scores of so many tokens by a detector without blocks, which knows of sentences only."""
    return TokenScores(np.zeros(count), np.zeros(count))


def _highest(
    tokens: Tokens, rows: Numbers, sentences: Numbers, alarms: Mapping[str, Scores]
) -> dict[str, Scores]:
    """Return the highest score of each alarm in each of some sentences of the responses `rows`."""
    return {
        name: tokens.highest(unit, scores, tokens.faults[unit].within(rows), sentences)
        for name, scores in alarms.items()
        for unit in (EVERY_FAULT[name].unit,)
    }


@dataclass(frozen=True, slots=True, eq=False)
class TokenPredictions:
    """What a protocol made of N tokens, and of R responses.

    `alone`, `log_odds` (among neighbours) and `marked` (N,) are of tokens, `sentences` (N,) says whether a
    token's sentence is marked, and `outcome` is of responses.
    """

    alone: Scores
    log_odds: Scores
    marked: Flags
    sentences: Flags
    outcome: Outcome

    @property
    def probabilities(self) -> Scores:
        """Of tokens, (N,)."""
        result: Scores = expit(self.log_odds)
        return result

    def take(self, tokens: Tokens, rows: Numbers) -> TokenPredictions:
        """Take some of the rows, whose numbers rise; `tokens` are those of all."""
        inside = tokens.within(rows)
        return TokenPredictions(
            self.alone[inside],
            self.log_odds[inside],
            self.marked[inside],
            self.sentences[inside],
            self.outcome.select(rows),
        )


def folds_of(
    tokens: Tokens, protocol: Protocol, learn: Flags | None = None, judged: Flags | None = None
) -> list[Split]:
    """Split responses into those learned from and those judged (default: all and all), in the first repeat.

    Raises `InputError` where too few sources have annotated tokens for folds within folds.
    """
    tokens.require_sources()
    everything = np.ones(len(tokens.labels), dtype=bool)
    train, test = (everything if mask is None else mask for mask in (learn, judged))
    return splits(replace(protocol, repeats=1), tokens.labels, tokens.groups, train, test)[0]


@dataclass(frozen=True, slots=True, eq=False)
class BlockScores:
    """One block's in one fold: of the tokens learned from, by base models that did not learn from them
    (`outside`), and of the tokens to be judged (`judged`)."""

    outside: Scores
    judged: Scores


@dataclass(frozen=True, slots=True, eq=False)
class FoldResult:
    """What one fold's models made of R test rows and their N tokens (see `TokenPredictions`)."""

    rows: Numbers
    alone: Scores
    log_odds: Scores
    marked: Flags
    sentences: Flags
    probabilities: Scores
    flagged: Flags
    chosen: str


def block_scores(tokens: Tokens, block: str, split: Split, seed: int, fit: Fit | None = None) -> BlockScores:
    """Score tokens by their features in one block; the expensive part. `fit` may fit other base models."""
    if block in EVERY_FAULT:
        rows = tokens.faults[EVERY_FAULT[block].unit]
        networks, outside = fit_alarm(rows, EVERY_FAULT[block], tokens.groups, split.train, seed)
        if not networks:
            return BlockScores(np.zeros(0), np.zeros(0))
        return BlockScores(outside, mean_log_odds(networks, rows.table[rows.within(split.test)]))
    models, out_of_fold = fit_block(fit or Network.fit, tokens, block, split.train, seed)
    return BlockScores(out_of_fold, mean_log_odds(models, tokens.blocks[block][tokens.within(split.test)]))


def decide_fold(
    tokens: Tokens, split: Split, scores: Mapping[str, BlockScores], point: str = DEFAULT_POINT
) -> FoldResult:
    """Learn from some blocks' scores of the training tokens, and decide by those of the others, at an
    operating point of the training rows."""
    blocks = {name: block for name, block in scores.items() if name not in EVERY_FAULT}
    alarms = {name: alarm for name, alarm in scores.items() if name in EVERY_FAULT and len(alarm.outside)}
    outside = {name: alarm.outside for name, alarm in alarms.items()}
    judged = {name: alarm.judged for name, alarm in alarms.items()}
    fitted = fit_stacker(
        tokens, split.train, {name: block.outside for name, block in blocks.items()}, outside
    )
    rule, inside = fitted.rule, tokens.within(split.test)
    place = np.searchsorted(split.test, tokens.owner[inside])
    sentence, generators = tokens.sentence[inside], tokens.generators[split.test]
    scored = _unscored(len(inside))
    if fitted.stacker is not None:
        by_block = np.stack([block.judged for block in blocks.values()], axis=1)
        scored = fitted.stacker(by_block, place, sentence)
    columns, numbers, owner = tokens.claims_of(scored.alone, scored.among, inside)
    owner = np.searchsorted(split.test, owner)
    highest = _highest(tokens, split.test, numbers, judged)
    claims = with_trees(Claimed(columns, highest), fitted.trees)
    probabilities = rule.responses(claims, owner, generators)
    shown = by_set(tokens.labels[split.train], fitted.probabilities, tokens.sets[split.train])
    cut = operating_points(*shown)[point]
    of_claims = rule.claims_by(claims, generators[owner])
    suspect = np.isin(sentence, numbers[of_claims >= cut.threshold])
    if fitted.stacker is None:  # a token is as suspect as its sentence
        chances = np.full(tokens.sentence.max(initial=0) + 2, TINY)
        chances[numbers] = np.clip(of_claims, TINY, 1 - TINY)
        scored = TokenScores(logit(chances)[sentence], logit(chances)[sentence])
    return FoldResult(
        rows=split.test,
        alone=scored.alone,
        log_odds=scored.among,
        marked=suspect & ((fitted.stacker is None) | (expit(scored.among) >= rule.token_threshold)),
        sentences=suspect,
        probabilities=probabilities,
        flagged=probabilities >= cut.threshold,
        chosen=f"from {cut.threshold:.2f}",
    )


def joined(results: Iterable[FoldResult], tokens: Tokens) -> TokenPredictions:
    """Join the folds' results; tokens of no fold are NaN and unmarked."""
    results, count, rows = list(results), len(tokens.flags), len(tokens.labels)
    alone, log_odds = np.full(count, np.nan), np.full(count, np.nan)
    marked, sentences = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    probabilities, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    for result in results:
        inside = tokens.within(result.rows)
        alone[inside], log_odds[inside] = result.alone, result.log_odds
        marked[inside], sentences[inside] = result.marked, result.sentences
        probabilities[0, result.rows], flagged[0, result.rows] = result.probabilities, result.flagged
    outcome = Outcome(probabilities, flagged, tuple(result.chosen for result in results))
    return TokenPredictions(alone, log_odds, marked, sentences, outcome)


def cross_validate_tokens(
    tokens: Tokens,
    protocol: Protocol,
    *,
    point: str = DEFAULT_POINT,
    cache: Path | None = None,
    keys: Mapping[str, Any] = MappingProxyType({}),
    jobs: int = 1,
) -> TokenPredictions:
    """Predict every row by models of the fold that held it out (the first repeat of a protocol); see
    `score_folds`."""
    folds = folds_of(tokens, protocol)
    scores = score_folds(tokens, folds, protocol, cache=cache, keys=keys, jobs=jobs)
    decided = (decide_fold(tokens, *fold, point) for fold in zip(folds, scores, strict=True))
    return joined(decided, tokens)


def score_folds(
    tokens: Tokens,
    folds: Sequence[Split],
    protocol: Protocol,
    *,
    cache: Path | None = None,
    keys: Mapping[str, Any] = MappingProxyType({}),
    jobs: int = 1,
) -> list[dict[str, BlockScores]]:
    """Score tokens by each of their blocks and alarms in each of a protocol's `folds`.

    Blocks are scored in `jobs` processes. In a folder `cache`, scores are kept, so that a run that was killed
    resumes after its last; `keys` are of all that the features of each block depend on.
    """
    if cache is not None:
        keys = {**keys, **{unit: rows.digest(tokens.groups) for unit, rows in tokens.faults.items()}}
    places: dict[tuple[int, str], Path | None] = {}
    for k, split in enumerate(folds):
        for name in (*tokens.blocks, *alarm_names(tokens)):
            places[k, name] = None
            if cache is not None:
                dependences = [_inputs(tokens, name, keys), protocol.words, k, split.train.tolist()]
                places[k, name] = cache / f"{json_hash(dependences)[:32]}.safetensors"
    scores = {place: _read(path) for place, path in places.items()}
    missing = [place for place, scored in scores.items() if scored is None]
    tasks = (
        delayed(_scored)(k, name, tokens.select({name} - EVERY_FAULT.keys()), folds[k], protocol.seed)
        for k, name in missing
    )
    # Without memory maps: a killed run would leave their files behind.
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", max_nbytes=None)
    for k, name, scored in track(pool(tasks), len(missing), "cross-validating"):
        scores[k, name] = scored
        if (path := places[k, name]) is not None:
            discard(path)
            write_tensors(path, KIND, {"outside": scored.outside, "judged": scored.judged}, name=path.stem)
    return [
        {name: result for fold, name in places if fold == k and (result := scores[fold, name]) is not None}
        for k in range(len(folds))
    ]


def _read(path: Path | None) -> BlockScores | None:
    """Read scores; None where they are missing, damaged or another's."""
    try:
        return None if path is None else BlockScores(**read_tensors(path, KIND, None, path.stem)[1])
    except (InputError, TypeError):
        return None


def _scored(fold: int, name: str, tokens: Tokens, split: Split, seed: int) -> tuple[int, str, BlockScores]:
    with one_thread(), threadpool_limits(1):
        return fold, name, block_scores(tokens, name, split, seed)
