"""Is an example like those a detector was trained on? Where it is not, its probability means little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.card import Range
from lrp4rag.features.record import Record

HELD = 0.99
"""A range holds this part of the training responses, and is then made wider by the facet's slack."""


@dataclass(frozen=True, slots=True)
class Facet:
    """`of` makes a number above 0, whose range is `slack` times wider on both sides than what was trained on.
    An example outside has no verdict where `decides`."""

    words: str
    of: Callable[[Record], float]
    slack: float = 1.25
    decides: bool = True


def _tokens_per_word(record: Record) -> float:
    """A tokenizer spends more tokens on a word of a language, or of code, that it was not made for."""
    return len(record) / max(len(record.encoded.response.split()), 1)


def _surprise(record: Record) -> float:
    """In nats a token; a little more than 0, since ranges are made wider by a factor."""
    return float(-record["logprob"].mean()) + 0.1


FACETS: dict[str, Facet] = {
    "prompt tokens": Facet("the prompt's tokens", lambda record: len(record.encoded.prompt_ids), slack=2),
    "response tokens": Facet("the response's tokens", len, slack=2),
    "passages": Facet(
        "the number of passages", lambda record: len(record.encoded.segment_names) - 2, decides=False
    ),
    "tokens per word": Facet("tokens in a word of the response (its language)", _tokens_per_word),
    "surprise": Facet("how unlikely the reader finds the response (nats a token)", _surprise),
}


def ranges(records: Iterable[Record]) -> dict[str, Range]:
    """What the training responses are like."""
    values = {name: [] for name in FACETS}  # type: dict[str, list[float]]
    for record in records:
        for name, facet in FACETS.items():
            values[name].append(facet.of(record))
    held = ((1 - HELD) / 2, (1 + HELD) / 2)
    found = {}
    for name, numbers in values.items():
        low, high = np.quantile(numbers, held)
        slack = FACETS[name].slack
        found[name] = Range(low=float(low) / slack, high=float(high) * slack)
    return found


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
        if facet is None:
            continue
        value = facet.of(record)
        if not held.low <= value <= held.high:
            words = f"{facet.words}: {value:.3g}, trained on {held.low:.3g} to {held.high:.3g}"
            found.append(Unlike(name, words, facet.decides))
    return tuple(found)
