"""Features of sentences from the relevance pulled back for each: the prompt tokens it rests on, their words.

They are not linear in relevance, so they need a row for each sentence (part sentences).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.record import Record, Values
from lrp4rag.util.text import words_of

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Pull:
    """A sentence's row: positive relevance of the n prompt tokens, in logits; which are the passages', and
    which are in a word that the sentence has too."""

    positive: Values
    in_passages: NDArray[np.bool_]
    repeated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SentenceFeature:
    """`of` makes one number, 0 to 1, of a sentence; a response has its mean and its lowest."""

    name: str
    of: Callable[[Pull], float]
    definition: str


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def concentration(relevance: Values) -> float:
    """1 less the entropy of the tokens' shares of positive relevance, over log m."""
    shares = positive_shares(relevance)
    if len(shares) < 2:
        return float(len(shares))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return float(np.clip(1 + (shares * logs).sum() / np.log(len(shares)), 0, 1))


def positive_shares(relevance: Values) -> Values:
    """They sum to 1; all alike where no relevance is positive."""
    parts = np.maximum(relevance, 0.0)
    total = parts.sum()
    return parts / total if total > 0 else np.full(len(parts), 1 / max(len(parts), 1))


def passages_share(pull: Pull) -> float:
    return _share(float(pull.positive[pull.in_passages].sum()), float(pull.positive.sum()))


def overlap(pull: Pull) -> float:
    passages = pull.positive[pull.in_passages]
    return _share(float(passages[pull.repeated[pull.in_passages]].sum()), float(passages.sum()))


def focus(pull: Pull) -> float:
    return concentration(pull.positive[pull.in_passages])


_ALL = (
    SentenceFeature("passages", passages_share, "the passages' share of the prompt's positive relevance"),
    SentenceFeature("overlap", overlap, "share of that which is on words that the sentence has too"),
    SentenceFeature("focus", focus, "1 - entropy of its shares over the passages' tokens / log m"),
)
SENTENCE_FEATURES: dict[str, SentenceFeature] = {one.name: one for one in _ALL}


def pulls(record: Record) -> list[Pull]:
    """One for each sentence of the response; none where sentences were not extracted."""
    if "sentences" not in record.signals:
        return []
    encoded = record.encoded
    in_passages = np.array(encoded.segments) >= 2
    prompt = [_words_at(encoded.text, start, end) for start, end in encoded.prompt_offsets]
    found = []
    for row, (start, end) in zip(record.signals["sentences"], record.signals["spans"], strict=True):
        sentence = set(words_of(encoded.response[start:end]))
        repeated = np.array([bool(words & sentence) for words in prompt])
        positive = np.maximum(np.asarray(row, dtype=np.float64), 0.0)
        found.append(Pull(positive, in_passages, repeated))
    return found


def sentence_features(record: Record) -> dict[str, float]:
    """`sentences: NAME: mean` and `... lowest`; empty where sentences were not extracted."""
    every = pulls(record)
    found: dict[str, float] = {}
    for name, feature in SENTENCE_FEATURES.items():
        values = [feature.of(pull) for pull in every]
        if values:
            found[f"sentences: {name}: mean"] = float(np.mean(values))
            found[f"sentences: {name}: lowest"] = float(np.min(values))
    return found


def _words_at(text: str, start: int, end: int) -> set[str]:
    """The words that a token has characters of, whole and in lower case."""
    while start and text[start - 1].isalnum() and start < len(text) and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1 : end].isalnum():
        end += 1
    return {match[0].lower() for match in _WORD.finditer(text[start:end])}
