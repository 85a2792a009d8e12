"""What relevance adds to the AUROC of responses: where tokens are judged, and where whole responses are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.cache import Cache
from experiments.figures.results import Difference, draw_differences
from experiments.metrics import auroc_draws
from experiments.pages import Results, View
from experiments.tokens.blocks import LIKELIHOOD, RELEVANCE_ALONE, blocks_named
from experiments.tokens.candidates import lexical_features
from experiments.tokens.extraction import SIGNALS, STATES, records
from experiments.tokens.response import POOLINGS, pooled
from experiments.tokens.states import nearest
from experiments.tokens.table import FEATURES
from experiments.tokens.text import TEXT_FEATURES
from experiments.tokens.trials import CrossValidation, Trial
from lrp4rag.classifiers.card import Interval
from lrp4rag.example import first_sources
from lrp4rag.features.parts import RELEVANCE as RELEVANCE_PART
from lrp4rag.features.record import Record
from lrp4rag.training.controls import logistic
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import ALL, parts_of, response_outcomes
from lrp4rag.training.metrics import LEVEL, intervals_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome, cross_validated
from lrp4rag.util.errors import InputError
from lrp4rag.util.progress import track

Level = Literal["tokens", "responses"]
LEVELS: tuple[Level, ...] = ("tokens", "responses")
PENALTIES = (0.0001, 0.001, 0.01, 0.1, 1.0)
Table = NDArray[np.float64]

RELEVANCE, PROVENANCE = "relevance", "relevance and provenance"
MEANS, ANOTHERS = "relevance, means only", "another response's relevance"
_PLAIN = ("text", "likelihood", "logit", "attention")
_GAIN = (*_PLAIN, "gain")
BASES = {
    "text and likelihood": ("text", "likelihood"),
    "text, likelihood, logit and attention": _PLAIN,
    "these and the passages' gain": _GAIN,
    "hidden state": ("state",),
    "all of these": (*_GAIN, "state"),
}
"""Without relevance: blocks of token features (`features.blocks`), each judged by networks of its own whose
log odds are combined, and the groups of features of whole responses of the same names, which one logistic
regression reads."""
NAMES = tuple(BASES)
ADDED: dict[Level, dict[str, tuple[str, ...]]] = {
    "tokens": {RELEVANCE: ("relevance",), PROVENANCE: ("relevance", "provenance")},
    "responses": {RELEVANCE: ("relevance",), MEANS: ("relevance means",), ANOTHERS: ("another's",)},
}
"""Blocks or groups that are added to those of each base."""
POOLED_FEATURES: Mapping[str, tuple[str, ...]] = {
    "text": tuple(TEXT_FEATURES),
    "likelihood": LIKELIHOOD,
    "logit": ("logit",),
    "gain": ("gain",),
    "attention": ("mean lookback",),
    "relevance": RELEVANCE_ALONE,
}
"""Token features, which are pooled in every way of `features.response.POOLINGS`."""


@dataclass(frozen=True, slots=True)
class Line:
    """`added` to `base` on one generator's rows, or on all: AUROC `before` and `after`, and what it gains, at
    95 % (`gain`) and at 95 % for all generators together (`together`, by Bonferroni's correction; of the
    line of all, the same as `gain`). `seeds` has each seed's gain, NaN where all rows have one label."""

    level: Level
    base: str
    added: str
    generator: str
    before: Interval
    after: Interval
    gain: Interval
    together: Interval
    seeds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Gains:
    """`rows` and `hallucinated` by generator and of all; `left_out` responses lack what is read, and `store`
    is the digest of the others. `trivial` has AUROCs of simple controls, by name and generator;
    `fold_seconds` are those of records that have them."""

    lines: tuple[Line, ...]
    trivial: dict[str, dict[str, Interval]]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    sources: int
    left_out: int
    store: str
    seeds: int
    fold_seconds: float = 0.0


def of_first_sources(rows: Rows, count: int | None) -> Rows:
    """Select the responses to the first sources, in the order of the data; to all where no count is given."""
    if count is None:
        return rows
    groups = rows.groups
    return rows.select(np.isin(groups, list(first_sources(groups.tolist(), count))))


def measure(
    rows: Rows, cache: Cache, *, seeds: int, resamples: int, levels: Sequence[Level] = LEVELS
) -> Gains:
    """Cross-validate every base alone and with what is added, on the same folds of each seed.

    Raises `InputError` where no response has signals (and, where tokens are judged, states), or too few
    sources have them.
    """
    complete = with_parts(rows, levels)
    outcomes = {"tokens": _of_tokens, "responses": _of_responses}
    parts = parts_of(complete)
    return Gains(
        lines=tuple(
            line
            for level in levels
            for line in _lines(level, complete, outcomes[level](complete, cache, seeds), resamples)
        ),
        trivial=_trivial(complete, cache.jobs, seeds, resamples),
        rows={str(name): len(part) for name, part in parts.items()},
        hallucinated={str(name): int(complete.labels[part].sum()) for name, part in parts.items()},
        sources=len(set(complete.groups)),
        left_out=len(rows) - len(complete),
        store=complete.digest,
        seeds=seeds,
    )


def with_parts(rows: Rows, levels: Sequence[Level]) -> Rows:
    """The rows that have what the levels read; raises `InputError` where none has."""
    needs = (RELEVANCE_PART, SIGNALS, *([STATES] if "tokens" in levels else []))
    has = np.array([all(rows.store.has(example, part) for part in needs) for example in rows.examples])
    if not has.any():
        parts = ",".join(needs)
        command = f"python -m experiments extract DATA --parts {parts}"
        why = f"no response has {' and '.join(needs[1:])}; run {command}"
        raise InputError(why, path=rows.store.folder)
    return rows.select(has)


Outcomes = Mapping[tuple[str, str], Outcome]
"""By base and what is added; nothing (\"\") is added to the base alone."""


def _of_tokens(rows: Rows, cache: Cache, seeds: int) -> Outcomes:
    added = {"": (), **ADDED["tokens"]}
    trials = {
        f"{base}, {name}": Trial((*blocks, *more))
        for base, blocks in BASES.items()
        for name, more in added.items()
    }
    names = sorted({block for trial in trials.values() for block in trial.blocks})
    validation = CrossValidation.open(rows, cache, blocks_named(names))
    runs = [
        replace(validation, protocol=replace(ONCE, seed=seed)).run(trials, f"seed {seed + 1} of {seeds}")
        for seed in range(seeds)
    ]
    return {
        (base, name): _as_repeats([run[f"{base}, {name}"].outcome for run in runs])
        for base in BASES
        for name in added
    }


def _of_responses(rows: Rows, cache: Cache, seeds: int) -> Outcomes:
    tables, common = feature_groups(rows), _common(rows)
    outcomes = {}
    for base, groups in BASES.items():
        for name, more in {"": (), **ADDED["responses"]}.items():
            inputs = np.concatenate([common, *(tables[group] for group in (*groups, *more))], axis=1)
            candidates = logistic(inputs, base, PENALTIES)
            # Each seed draws the inner folds too.
            protocols = [replace(ONCE, seed=seed) for seed in range(seeds)]
            outcomes[base, name] = _as_repeats(
                [
                    cross_validated(candidates, rows.labels, rows.groups, one, n_jobs=cache.jobs)
                    for one in protocols
                ]
            )
    return outcomes


def _as_repeats(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcomes of several seeds as repeats of one protocol."""
    return Outcome(
        np.concatenate([one.probabilities for one in outcomes]),
        np.concatenate([one.flagged for one in outcomes]),
        tuple(label for one in outcomes for label in one.chosen),
        sum(one.leaks for one in outcomes),
    )


def _trivial(rows: Rows, jobs: int, seeds: int, resamples: int) -> dict[str, dict[str, Interval]]:
    runs = [response_outcomes(rows, replace(ONCE, seed=seed), jobs=jobs) for seed in range(seeds)]
    return {
        name: {
            str(generator): _interval(_draws(rows, _as_repeats([run[name] for run in runs]), part, resamples))
            for generator, part in parts_of(rows).items()
        }
        for name in runs[0]
    }


def _lines(level: Level, rows: Rows, outcomes: Outcomes, resamples: int) -> Iterator[Line]:
    # Where all labels are equal there is no AUROC, and no test to correct for.
    tests = sum(0 < rows.labels[part].sum() < len(part) for part in rows.by_generator.values())
    together = 1 - (1 - LEVEL) / max(tests, 1)
    for generator, part in parts_of(rows).items():
        draws = {key: _draws(rows, outcome, part, resamples) for key, outcome in outcomes.items()}
        for (base, added), after in draws.items():
            if added:
                before = draws[base, ""]
                gain = after - before
                yield Line(
                    level,
                    base,
                    added,
                    str(generator),
                    _interval(before),
                    _interval(after),
                    _interval(gain),
                    _interval(gain, LEVEL if generator == ALL else together),
                    tuple(gain[:, 0].tolist()),
                )


def _draws(rows: Rows, outcome: Outcome, part: NDArray[np.intp], resamples: int) -> Table:
    return auroc_draws(outcome.select(part), rows.labels[part], rows.groups[part], resamples=resamples)


def _interval(draws: Table, level: float = LEVEL) -> Interval:
    return intervals_of({"auroc": draws}, level)["auroc"]


# Features of whole responses.


def feature_groups(rows: Rows) -> dict[str, Table]:
    """(R, columns) by group. `text` has the six lexical features too, `attention` each head's mean lookback
    ratio, and `state` is the mean hidden state of one layer: these have hundreds of columns and are not
    pooled in other ways. `relevance means` are the means of `relevance` alone, and `another's` is
    `relevance` of another response of the same generator: as many columns that know nothing else of this.

    Raises `InputError` where the store has no signals.
    """
    lines: dict[str, list[list[float]]] = {name: [] for name in (*POOLED_FEATURES, "state")}
    for record in track(records(rows), len(rows), "pooling features"):
        for name, features in POOLED_FEATURES.items():
            pools = (pooled(FEATURES[feature](record), record) for feature in features)
            lines[name].append([value for pool in pools for value in pool.values()])
        lines["attention"][-1] += record["lookback"].mean(-1).ravel().tolist()
        lines["state"].append(mean_state(record).tolist())
    tables = {name: np.array(table) for name, table in lines.items()}
    lexical = np.array([lexical_features(example) for example in rows.examples])
    tables["text"] = np.concatenate([tables["text"], lexical], axis=1)
    poolings = np.array([name for _ in POOLED_FEATURES["relevance"] for name in POOLINGS])
    tables["relevance means"] = tables["relevance"][:, poolings == "mean"]
    tables["another's"] = tables["relevance"][shuffled_within(rows.by_generator.values(), len(rows))]
    return tables


def mean_state(record: Record) -> Table:
    """(d,), after the layer whose states token models read."""
    means = record["hidden_mean"]
    stored = np.asarray(record["part_layers"], dtype=np.intp) + 1
    return np.asarray(means[stored[nearest(stored, len(means))]], dtype=np.float64)


def _common(rows: Rows) -> Table:
    """(R, generators + 1): whose response it is, and the logarithm of its length in tokens. Token models know
    both, so both sides of a comparison of whole responses have them too."""
    generators = rows.generators
    whose = generators[:, None] == np.unique(generators)
    lengths = np.log1p([len(one.response_ids) for one in rows.encodings])
    return np.concatenate([whose, lengths[:, None]], axis=1).astype(np.float64)


def shuffled_within(parts: Iterable[NDArray[np.intp]], count: int) -> NDArray[np.intp]:
    """A permutation of `count` rows that leaves every row in its part, and none in its place where a part
    has several."""
    rng, order = np.random.default_rng(0), np.arange(count)
    for part in parts:
        shuffled = rng.permutation(part)
        order[shuffled] = np.roll(shuffled, 1)
    return order


# The page.


def view(results: Results) -> View:
    """Raises `InputError` for what `measure` did not give."""
    found = results.read(Gains)
    differences = [
        Difference(line.generator, f"{line.level}: {line.base}", line.together)
        for line in found.lines
        if line.added == RELEVANCE
    ]
    values = {
        "found": found,
        "resamples": results.get("resamples", int),
        "protocol": ONCE,
        "reader": results.get("reader", str),
        "levels": [level for level in LEVELS if any(line.level == level for line in found.lines)],
        "bases": list(BASES),
        "names": NAMES,
        "others": {"tokens": [PROVENANCE], "responses": [MEANS, ANOTHERS]},
        "relevance": RELEVANCE,
        "provenance": PROVENANCE,
        "means": MEANS,
        "by": {(line.level, line.base, line.added, line.generator): line for line in found.lines},
    }
    tables = {"gains": pd.DataFrame(map(_row, found.lines))}
    return View(values, {"gains": draw_differences(differences, "AUROC gained")}, tables, {"seeds": _range})


def _row(line: Line) -> dict[str, Any]:
    return {
        "level": line.level,
        "base": line.base,
        "added": line.added,
        "generator": line.generator,
        "before": line.before.value,
        "after": line.after.value,
        "gain": line.gain.value,
        "low": line.gain.low,
        "high": line.gain.high,
        "low_together": line.together.low,
        "high_together": line.together.high,
        "least_seed": min(line.seeds),
        "most_seed": max(line.seeds),
    }


def _range(seeds: tuple[float | None, ...]) -> str:
    """+0.004 to +0.011; empty where there is no AUROC."""
    values = [seed for seed in seeds if seed is not None]
    return "" if len(values) < len(seeds) else f"{min(values):+.3f} to {max(values):+.3f}"
