"""How often the regression gate stops what is as good as before, and how often what is worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from benchmarks.command import Listed, Report, benchmark, count, table
from lrp4rag.guard.evaluation.measures import MEASURES
from lrp4rag.guard.evaluation.regression_gate import Gate, compare
from lrp4rag.guard.evaluation.result import Result
from lrp4rag.guard.evaluation.saved import Saved

RIGHT = 0.85
"""Verdicts of the baseline that are right."""
LENGTH = 20
WAYS = ("the gate", "the drop alone")


def results(truth: Sequence[bool], right: Sequence[bool], distances: Sequence[float]) -> tuple[Result, ...]:
    """Answers of two sentences, the second of which is the hallucination; each of a source of its own."""
    second = (LENGTH // 2, LENGTH)
    made = []
    for k, (hallucinated, correct, distance) in enumerate(zip(truth, right, distances, strict=True)):
        flagged = bool(hallucinated == correct)
        made.append(
            Result.model_construct(
                id=str(k),
                judged=str(k),
                source=str(k),
                generator=None,
                length=LENGTH,
                labels=(second,) if hallucinated else (),
                outcome="judged",
                why="",
                probability=0.5 + distance / 2 if flagged else 0.5 - distance / 2,
                flagged=flagged,
                spans=(second,) if flagged else (),
                sentences=((0, second[0], False), (*second, flagged)),
                faithfulness=0.5 if flagged else 1.0,
                action="withhold" if flagged else "serve",
                reason="insufficient evidence" if flagged else "grounded",
            )
        )
    return tuple(made)


def drawn(examples: int, worse: float, turned: float, draw: np.random.Generator) -> Gate:
    """One change: a part `turned` of the verdicts is drawn anew, and as many right ones become wrong as make
    the accuracy fall by `worse`."""
    truth = np.arange(examples) % 2 == 1
    before = draw.random(examples) < RIGHT
    now = np.where(draw.random(examples) < turned, draw.random(examples) < RIGHT, before)
    now &= draw.random(examples) >= worse / RIGHT
    distances = draw.random(examples).tolist()
    first, second = (results(truth.tolist(), right.tolist(), distances) for right in (before, now))
    return compare(second, Saved(made_with={}, examples=first), {}, max_drop=0.05)


def stopped(gates: Sequence[Gate]) -> dict[str, float]:
    """The part of changes that fails, by the gate's rule, and where any drop of more than 0.05 fails."""
    larger = [
        any(
            one.drop.value is not None and one.drop.value > gate.max_drop
            for name, one in gate.changes.items()
            if MEASURES[name].gated
        )
        for gate in gates
    ]
    failed = [bool(one.failed) for one in gates]
    return {way: float(np.mean(some)) for way, some in zip(WAYS, (failed, larger), strict=True)}


@benchmark
@click.option(
    "--examples",
    type=Listed(click.IntRange(4)),
    default="12,50,100,300",
    show_default=True,
    help="Sizes of the golden set.",
)
@click.option(
    "--worse",
    type=Listed(click.FloatRange(0, 0.8)),
    default="0,0.05,0.1,0.2",
    show_default=True,
    help="By how much the accuracy really falls.",
)
@click.option(
    "--turned", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Verdicts drawn anew."
)
@count("--runs", 200, "Changes of each kind.")
def main(examples: tuple[int, ...], worse: tuple[float, ...], turned: float, runs: int) -> Report:
    """The part of changes that fails: of those that are no worse, and of those that are.

    \b
    Example:
      python -m benchmarks.regression_gate
    """
    result: dict[str, Any] = {"stopped": {}, "failing": {}}
    rows = []
    for number in examples:
        for part in worse:
            draw = np.random.default_rng([number, round(1000 * part)])
            gates = [drawn(number, part, turned, draw) for _ in range(runs)]
            name, found = f"{number} examples, {part:g} worse", stopped(gates)
            result["stopped"][name] = found
            result["failing"][name] = dict(Counter(one for gate in gates for one in gate.failed))
            rows.append((str(number), f"{part:g}", *(f"{found[way]:.2f}" for way in WAYS)))
    return result, table(("examples", "accuracy falls by", *WAYS), rows)


if __name__ == "__main__":
    main()
