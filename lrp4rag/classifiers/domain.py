"""Is an example like those a detector was trained on? Where it is not, its probability means little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.card import Range
from lrp4rag.features.record import Record

HELD = 0.99
"""A range holds this part of the training responses, and is then made wider by the facet's slack."""


@dataclass(frozen=True, slots=True)
class Facet:
    """`of` makes a number above 0, whose range is `slack` times wider than what was trained on, and `below`
    times at its lower end. An example outside has no verdict where `decides`; one below it, where it also
    `decides_below`."""

    words: str
    of: Callable[[Record], float]
    slack: float = 1.25
    below: float = 1.25
    decides: bool = True
    decides_below: bool = True


FACETS: dict[str, Facet] = {
    # There is less to get wrong in what is shorter: one passage of a sentence, an answer of three words.
    "prompt tokens": Facet(
        "the prompt's tokens", lambda record: len(record.encoded.prompt_ids), slack=2, below=4
    ),
    "response tokens": Facet("the response's tokens", len, slack=2, below=4),
    "passages": Facet(
        "the number of passages", lambda record: len(record.encoded.segment_names) - 2, decides=False
    ),
    # A tokenizer spends more tokens on a word of a language, or of code, that it was not made for.
    "tokens per word": Facet(
        "tokens in a word of the response (its language)",
        lambda record: len(record) / max(len(record.encoded.response.split()), 1),
    ),
    "surprise": Facet(
        "how unlikely the reader finds the response (nats a token)",
        lambda record: float(-record["logprob"].mean()) + 0.1,  # above 0: ranges widen by a factor
        decides_below=False,  # what a passage says word for word is likely, and grounded
    ),
}


def ranges(records: Iterable[Record]) -> dict[str, Range]:
    """What the training responses are like."""
    values = [[facet.of(record) for facet in FACETS.values()] for record in records]
    lows, highs = np.quantile(values, ((1 - HELD) / 2, (1 + HELD) / 2), axis=0)
    return {
        name: Range(low=float(low) / facet.below, high=float(high) * facet.slack)
        for (name, facet), low, high in zip(FACETS.items(), lows, highs, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Unlike:
    """A facet of an example outside the range of the training data; no verdict is given where `decides`."""

    facet: str
    words: str
    decides: bool


def unlike(trained: dict[str, Range], record: Record) -> tuple[Unlike, ...]:
    """Where an example is outside the ranges; a card of facets that are no longer known is read as it is."""
    found = []
    for name, held in trained.items():
        facet = FACETS.get(name)
        if facet and not held.low <= (value := facet.of(record)) <= held.high:
            words = f"{facet.words}: {_compared(value, held)}"
            decides = facet.decides and (value > held.high or facet.decides_below)
            found.append(Unlike(name, words, decides))
    return tuple(found)


def _compared(value: float, held: Range) -> str:
    """Counts are written whole: of a range, the counts that lie in it."""
    if isinstance(value, int):
        return f"{value:,}, trained on {math.ceil(held.low):,} to {math.floor(held.high):,}"
    return f"{value:.3g}, trained on {held.low:.3g} to {held.high:.3g}"
