"""Is an example like those a detector was trained on? Where it is not, its probability means little."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.words import STOP_WORDS
from lrp4rag.classifiers.card import Range
from lrp4rag.features.record import Record, Values

Numbers = NDArray[np.intp]

FEWEST = 8
"""Tokens of a response from which on means of them tell that it is unlike others."""
USUAL, ENGLISH = 2, 1.4
"""Words that a mean is taken of beside a response's own, and their tokens, as English has them: one long word
in an answer of four does not tell of a language."""
WORD_LETTERS = 16
HELD = 0.99
"""A range holds this part of the training responses, and is then made wider by the facet's slack."""
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"@|://|/\w[^/]*/|\d[A-Za-z]+\d")
"""In addresses, paths and codes."""


@dataclass(frozen=True, slots=True)
class Facet:
    """`of` makes a number above 0 of each of a response's sentences, (S,): of the response up to its end. Its
    range is `slack` times wider than what was trained on, and `below` times at its lower end. A sentence
    outside is not judged where it `decides`; one below it, where it also `decides_below`."""

    words: str
    of: Callable[[Record, Numbers], Values]
    slack: float = 1.25
    below: float = 1.25
    decides: bool = True
    decides_below: bool = True
    whole: bool = False


def _tokens_per_word(record: Record, ends: Numbers) -> Values:
    """Count tokens in words that have a letter and are no addresses, paths or codes, without their digits and
    emoji, whose tokens tell of no language; 1 where there are too few to tell."""

    def further(done: Sequence[float]) -> list[float]:
        return _each_tokens_per_word(record, ends[len(done) :])

    return np.array(record.of_each("tokens per word", further), dtype=np.float64)


def _each_tokens_per_word(record: Record, ends: Numbers) -> list[float]:
    text, offsets = record.encoded.response, record.encoded.response_offsets
    tells = np.array([sign.isalpha() or category(sign).startswith("P") for sign in text], dtype=bool)
    means = []
    for end in ends:
        stop = offsets[end - 1][1]
        words = [match.span() for match in re.finditer(r"\S+", text[:stop]) if _is_word(match[0])]
        within = np.zeros(len(text), dtype=bool)
        for start, last in words:
            within[start:last] = tells[start:last]
        tokens = sum(bool(within[start:last].any()) for start, last in offsets[:end])
        mean = (tokens + USUAL * ENGLISH) / (len(words) + USUAL)
        means.append(mean if tokens >= FEWEST else 1.0)
    return means


def _is_word(text: str) -> bool:
    return bool(_LETTER.search(text)) and not (text.isascii() and _NO_WORD.search(text))


FACETS: dict[str, Facet] = {
    # There is less to get wrong in what is shorter: one passage of a sentence, an answer of three words.
    "prompt tokens": Facet(
        "the prompt's tokens",
        lambda record, ends: np.full(len(ends), float(len(record.encoded.prompt_ids))),
        slack=2,
        below=4,
        whole=True,
    ),
    "response tokens": Facet(
        "the response's tokens", lambda _, ends: ends.astype(np.float64), slack=2, below=4, whole=True
    ),
    "passages": Facet(
        "the number of passages",
        lambda record, ends: np.full(len(ends), float(sum(map(bool, record.encoded.passages)))),
        decides=False,
        whole=True,
    ),
    # A tokenizer spends more tokens on a word of a language, or of code, that it was not made for.
    "tokens per word": Facet(
        "tokens in a word of the response (its language)",
        _tokens_per_word,
    ),
    "surprise": Facet(
        "how unlikely the reader finds the response (nats a token)",
        # Above 0: ranges widen by a factor.
        lambda record, ends: -np.cumsum(record["logprob"])[ends - 1] / ends + 0.1,
        decides_below=False,  # what a passage says word for word is likely, and grounded
    ),
}


def _function_words(record: Record, ends: Numbers) -> Values:
    """Return the proportion of function words up to each end, whatever the reader's tokens; a half where
    there are too few to tell. Letters without spaces between them, as in Chinese, count as a word for each
    `WORD_LETTERS`."""
    text, offsets, stops = record.encoded.response, record.encoded.response_offsets, STOP_WORDS
    matches = list(_WORD.finditer(text))
    words = np.cumsum([0, *(math.ceil(len(_LETTER.findall(match[0])) / WORD_LETTERS) for match in matches)])
    common = np.cumsum([0, *(match[0].lower() in stops for match in matches)])
    numbers = np.searchsorted(
        [match.end() for match in matches], [offsets[end - 1][1] for end in ends], "right"
    )
    counts, common_counts = words[numbers], common[numbers]
    return np.where(counts >= FEWEST, (common_counts + 1) / np.maximum(counts, 1), 0.5)


TEXT_FACETS: dict[str, Facet] = {
    "function words": Facet(
        "the proportion of common English words in the response (its language)", _function_words, below=2
    ),
}
"""Those of a detector without a reader."""


def ends_in(record: Record) -> Numbers:
    """Return how many tokens there are up to the end of each sentence, (S,); 1 or more."""
    starts = np.array([start for start, _ in record.encoded.response_offsets])
    ends = np.array([end for _, end in record.encoded.sentences], dtype=np.intp)
    return np.maximum(np.searchsorted(starts, ends), 1).astype(np.intp)


def ranges(records: Iterable[Record], facets: Mapping[str, Facet] = FACETS) -> dict[str, Range]:
    """Return the ranges of the training responses, up to the end of each of their sentences."""
    values: dict[str, list[Values]] = {name: [] for name in facets}
    for record in records:
        ends = ends_in(record)
        for name, facet in facets.items():
            values[name].append(facet.of(record, ends))
    by_facet = {}
    for name, facet in facets.items():
        low, high = np.quantile(np.concatenate(values[name]), ((1 - HELD) / 2, (1 + HELD) / 2))
        by_facet[name] = Range(low=float(low) / facet.below, high=float(high) * facet.slack)
    return by_facet


@dataclass(frozen=True, slots=True)
class Unlike:
    """A facet of an example outside the range of the training data; there is no verdict where it
    `decides`."""

    facet: str
    words: str
    decides: bool


def unlike(trained: dict[str, Range], record: Record) -> list[tuple[Unlike, ...]]:
    """Return, of each sentence, where the response up to its end is outside the ranges; a card of facets that
    are no longer known is read as it is."""
    ends = ends_in(record)
    facets: list[list[Unlike]] = [[] for _ in ends]
    for name, limits in trained.items():
        facet = FACETS.get(name) or TEXT_FACETS.get(name)
        if facet is None:
            continue
        for of_sentence, value, end in zip(facets, facet.of(record, ends), ends, strict=True):
            # A mean of a few tokens says little of a language.
            if (facet.whole or end >= FEWEST) and not limits.low <= value <= limits.high:
                words = f"{facet.words}: {_compared(float(value), limits, whole=facet.whole)}"
                decides = facet.decides and (value > limits.high or facet.decides_below)
                of_sentence.append(Unlike(name, words, bool(decides)))
    return [tuple(of_sentence) for of_sentence in facets]


def each_once(facets: Iterable[Unlike]) -> tuple[Unlike, ...]:
    """Return each facet once: the first that decides, else the first."""
    by_name = dict[str, Unlike]()
    for facet in sorted(facets, key=lambda facet: not facet.decides):
        by_name.setdefault(facet.facet, facet)
    return tuple(by_name.values())


def _compared(value: float, limits: Range, *, whole: bool) -> str:
    """Compare a value with a range, in words. Counts are written whole: of a range, those that lie in it."""
    if whole:
        return f"{value:,.0f}, trained on {math.ceil(limits.low):,} to {math.floor(limits.high):,}"
    return f"{value:.3g}, trained on {limits.low:.3g} to {limits.high:.3g}"
