"""What a study compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments.tokens.blocks import FAST_BLOCKS, FULL_BLOCKS
from experiments.tokens.learners import LEARNERS
from experiments.tokens.trials import Trial

FULL, FAST, SEGMENTS, SIGNALS, STATE = "full", "fast", "segments", "signals", "state alone"

WAYS: dict[str, Trial] = {
    FULL: Trial(FULL_BLOCKS),
    FAST: Trial(FAST_BLOCKS),
    "quick features": Trial(("quick",)),
    SEGMENTS: Trial(("segments",)),
    SIGNALS: Trial(("signals",)),
    STATE: Trial(("state",)),
    "passages' part alone": Trial(("passages",)),
    "full and text": Trial((*FULL_BLOCKS, "text")),
    "full, generator not told": Trial(FULL_BLOCKS, know_generators=False),
}
"""From one tangent to all: accuracy against cost."""

BY_LEARNER: dict[str, Trial] = {
    name: Trial(("text", "likelihood", "relevance"), learner=name) for name in LEARNERS
}
"""Learners of single tokens, on blocks that all of them learn from in minutes."""

SIZES = (50, 100, 200, 400)
"""Sources to learn from."""


def curve(sources: int) -> dict[int, Trial]:
    """The sizes that there are enough sources for; four of five are learned from."""
    return {size: Trial(FULL_BLOCKS, sources=size) for size in SIZES if size < sources * 4 // 5}


def left_out(generators: Iterable[str]) -> dict[str, Trial]:
    """Fast models tested on each generator that they did not learn from; {} where there is one generator."""
    names = sorted(set(generators))
    return {name: Trial(FAST_BLOCKS, judged=name) for name in names} if len(names) > 1 else {}


def trials_of(
    sections: Iterable[str], generators: Iterable[str], sources: int
) -> dict[str, Mapping[str, Trial]]:
    """What is run for each section; the ways always are."""
    every: dict[str, Mapping[str, Trial]] = {
        "ways": WAYS,
        "learners": BY_LEARNER,
        "curve": {str(size): trial for size, trial in curve(sources).items()},
        "transfer": left_out(generators),
    }
    return {name: trials for name, trials in every.items() if name in ("ways", *sections)}
