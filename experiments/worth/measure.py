"""What relevance adds to the AUROC of responses: where tokens are judged, and where whole responses are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.metrics import auroc_draws
from experiments.tokens.blocks import blocks_named
from experiments.tokens.extraction import SIGNALS, STATES
from experiments.tokens.trials import CrossValidation, Trial
from experiments.worth import plan, whole
from lrp4rag.classifiers.card import Interval
from lrp4rag.features.parts import RELEVANCE
from lrp4rag.training.controls import Candidates, logistic
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import ALL, parts_of
from lrp4rag.training.localisation import whole as controls_of
from lrp4rag.training.metrics import LEVEL, intervals_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome, cross_validated
from lrp4rag.util.errors import InputError

Level = Literal["tokens", "responses"]
LEVELS: tuple[Level, ...] = ("tokens", "responses")
PENALTIES = (0.0001, 0.001, 0.01, 0.1, 1.0)


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
    is the digest of the others. `trivial` has AUROCs of what anybody could do, by name and generator, and
    `fold_seconds` what the folds of token models took, each on one core, whenever that was."""

    lines: tuple[Line, ...]
    trivial: dict[str, dict[str, Interval]]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    sources: int
    left_out: int
    store: str
    seeds: int
    fold_seconds: float = 0.0


def measure(
    rows: Rows, folder: Path, *, seeds: int, jobs: int, resamples: int, levels: Sequence[Level] = LEVELS
) -> Gains:
    """Cross-validate every base alone and with what is added, on the same folds of each seed. `folder` keeps
    features and finished folds of token models; the others take minutes.

    Raises `InputError` where no response has signals (and, where tokens are judged, states), or too few
    sources have them.
    """
    kept = with_parts(rows, levels)
    lines: list[Line] = []
    seconds = 0.0
    for level in levels:
        if level == "tokens":
            outcomes, seconds = _of_tokens(kept, folder, seeds, jobs)
        else:
            outcomes = _whole(kept, seeds, jobs)
        lines += _lines(level, kept, outcomes, resamples)
    parts = parts_of(kept)
    return Gains(
        tuple(lines),
        _trivial(kept, seeds, jobs, resamples),
        {str(name): len(part) for name, part in parts.items()},
        {str(name): int(kept.labels[part].sum()) for name, part in parts.items()},
        len(set(kept.groups)),
        len(rows) - len(kept),
        kept.digest,
        seeds,
        seconds,
    )


def with_parts(rows: Rows, levels: Sequence[Level]) -> Rows:
    """Those that have what the levels read; raises `InputError` where none has."""
    needs = (RELEVANCE, SIGNALS, STATES) if "tokens" in levels else (RELEVANCE, SIGNALS)
    has = np.array([all(rows.store.has(example, part) for part in needs) for example in rows.examples])
    if not has.any():
        parts = ",".join(needs)
        why = f"no response has {' and '.join(needs[1:])}; run lrp4rag extract DATA --parts {parts}"
        raise InputError(why, path=rows.store.folder)
    return rows.select(has)


Outcomes = Mapping[tuple[str, str], Outcome]
"""By base and what is added; nothing (\"\") is added to the base alone."""


def _of_tokens(rows: Rows, folder: Path, seeds: int, jobs: int) -> tuple[Outcomes, float]:
    """And the seconds that all folds took, each on one core, whenever that was."""
    added = {"": (), **plan.BLOCKS_ADDED}
    trials = {
        f"{base}, {name}": Trial((*one.blocks, *more))
        for base, one in plan.BASES.items()
        for name, more in added.items()
    }
    names = {block for trial in trials.values() for block in trial.blocks}
    validation = CrossValidation.open(rows, folder, blocks_named(sorted(names)), jobs)
    seeded = [replace(validation, protocol=replace(ONCE, seed=seed)) for seed in range(seeds)]
    found = [one.run(trials, f"seed {seed + 1} of {seeds}") for seed, one in enumerate(seeded)]
    outcomes = {
        (base, name): _together([one[f"{base}, {name}"].outcome for one in found])
        for base in plan.BASES
        for name in added
    }
    return outcomes, sum(one.seconds(trials.values()) for one in seeded)


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    """Of several seeds as repeats of one protocol."""
    return Outcome(
        np.concatenate([one.probabilities for one in outcomes]),
        np.concatenate([one.flagged for one in outcomes]),
        tuple(label for one in outcomes for label in one.chosen),
        sum(one.leaks for one in outcomes),
    )


def _whole(rows: Rows, seeds: int, jobs: int) -> Outcomes:
    tables, known = whole.groups(rows), whole.known_of_all(rows)
    found = {}
    for base, one in plan.BASES.items():
        for name, more in {"": (), **plan.GROUPS_ADDED}.items():
            inputs = np.concatenate([known, *(tables[group] for group in (*one.groups, *more))], axis=1)
            found[base, name] = _seeded(rows, logistic(inputs, base, PENALTIES), seeds, jobs)
    return found


def _seeded(rows: Rows, candidates: Candidates, seeds: int, jobs: int) -> Outcome:
    """Each seed draws the inner folds too."""
    return _together(
        [
            cross_validated(candidates, rows.labels, rows.groups, replace(ONCE, seed=seed), n_jobs=jobs)
            for seed in range(seeds)
        ]
    )


def _trivial(rows: Rows, seeds: int, jobs: int, resamples: int) -> dict[str, dict[str, Interval]]:
    each = [controls_of(rows, replace(ONCE, seed=seed), jobs=jobs) for seed in range(seeds)]
    return {
        name: {
            str(generator): _interval(_draws(rows, _together([one[name] for one in each]), part, resamples))
            for generator, part in parts_of(rows).items()
        }
        for name in each[0]
    }


def _lines(level: Level, rows: Rows, outcomes: Outcomes, resamples: int) -> Iterator[Line]:
    # Where all labels are one there is no AUROC, so nothing is told at once with the others.
    told = sum(0 < rows.labels[part].sum() < len(part) for part in rows.by_generator.values())
    together = 1 - (1 - LEVEL) / max(told, 1)
    for generator, part in parts_of(rows).items():
        found = {key: _draws(rows, outcome, part, resamples) for key, outcome in outcomes.items()}
        for (base, added), after in found.items():
            if not added:
                continue
            before = found[base, ""]
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


def _draws(rows: Rows, outcome: Outcome, part: NDArray[np.intp], resamples: int) -> NDArray[np.float64]:
    return auroc_draws(outcome.select(part), rows.labels[part], rows.groups[part], resamples=resamples)


def _interval(draws: NDArray[np.float64], level: float = LEVEL) -> Interval:
    return intervals_of({"auroc": draws}, level)["auroc"]
