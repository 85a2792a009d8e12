"""Features of whole responses: token features pooled, and how R_prompt is spread over the passages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.tokens.features import TOKEN_FEATURES
from experiments.tokens.pulled import concentration, positive_shares, sentence_features
from lrp4rag.claims.words import STOP_WORDS
from lrp4rag.features.record import Record, Values
from lrp4rag.features.units import TOKEN_WINDOW, sentence_numbers, smoothed
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import WORD

TOP_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Pooling:
    """`of` makes one number of a token feature (t,) of a response."""

    name: str
    of: Callable[[Values, Record], float]
    definition: str


def content_tokens(record: Record) -> NDArray[np.bool_]:
    """Which tokens are of content words (t,): words that are no English stop words. Function words are
    predicted from grammar rather than from the passages (fragments of SIRG: arXiv 2601.03052)."""
    response = record.encoded.response
    words = [match.span() for match in WORD.finditer(response) if match[0].lower() not in STOP_WORDS]
    inside: NDArray[np.bool_] = tokens_in(record.encoded.response_offsets, words)
    return inside


def _content(values: Values, record: Record) -> float:
    content = content_tokens(record)
    return float(values[content].mean() if content.any() else values.mean())


def _worst_sentence(values: Values, record: Record) -> float:
    numbers = sentence_numbers(record)
    inside = numbers >= 0
    if not inside.any():
        return float(values.mean())
    _, where = np.unique(numbers[inside], return_inverse=True)
    return float((np.bincount(where, values[inside]) / np.bincount(where)).min())


_POOLINGS = (
    Pooling("mean", lambda values, _: float(values.mean()), "mean over the response's tokens"),
    Pooling(
        "lowest",
        lambda values, _: float(smoothed(values).min()),
        f"lowest mean of {TOKEN_WINDOW} neighbouring tokens: the worst window",
    ),
    Pooling(
        "highest",
        lambda values, _: float(smoothed(values).max()),
        f"highest mean of {TOKEN_WINDOW} neighbouring tokens",
    ),
    Pooling("deviation", lambda values, _: float(values.std()), "standard deviation over the tokens"),
    Pooling("content", _content, "mean over tokens of content words (no English stop words)"),
    Pooling("worst sentence", _worst_sentence, "lowest mean of a sentence's tokens"),
)
POOLINGS: dict[str, Pooling] = {one.name: one for one in _POOLINGS}


def pooled(values: Values, record: Record) -> dict[str, float]:
    """A token feature (t,) of a response pooled in every way, by the pooling's name."""
    return {name: pooling.of(values, record) for name, pooling in POOLINGS.items()}


@dataclass(frozen=True, slots=True)
class PromptFeature:
    """`of` makes one number of the passages' part of R_prompt, m tokens: they are not linear in it, so they
    cannot be had of each response token without pulling each."""

    name: str
    of: Callable[[Values], float]
    unit: str
    range: str
    definition: str

    def __call__(self, record: Record) -> float:
        """Raises `InputError` where R_prompt was not extracted."""
        relevance = record.require_relevance()
        if relevance.prompt is None:
            raise InputError(f"the feature '{self.name}' needs R_prompt (parts relevance,prompt)")
        in_passages = np.array(record.encoded.segments) >= 2
        return self.of(np.asarray(relevance.prompt, dtype=np.float64)[in_passages])


def gini(relevance: Values) -> float:
    shares = np.sort(positive_shares(relevance))
    count = len(shares)
    if not count:
        return 0.0
    return float((2 * np.arange(1, count + 1) - count - 1) @ shares / count)


def top_mass(relevance: Values) -> float:
    return float(np.sort(positive_shares(relevance))[::-1][:TOP_TOKENS].sum())


_PROMPT = (
    PromptFeature("concentration", concentration, "-", "0 to 1", "1 - entropy of positive shares / log m"),
    PromptFeature("gini", gini, "-", "0 to 1", "Gini coefficient of the tokens' positive relevance"),
    PromptFeature(
        "top mass", top_mass, "-", "0 to 1", f"share of the {TOP_TOKENS} passage tokens with most relevance"
    ),
    PromptFeature(
        "positive",
        lambda relevance: float(np.maximum(relevance, 0).sum()),
        "logit",
        "0 or more",
        "sum of positive R_prompt over passage tokens",
    ),
    PromptFeature(
        "negative",
        lambda relevance: float(np.minimum(relevance, 0).sum()),
        "logit",
        "0 or less",
        "sum of negative R_prompt over passage tokens",
    ),
)
PROMPT_FEATURES: dict[str, PromptFeature] = {one.name: one for one in _PROMPT}


POOLED = tuple(name for name in TOKEN_FEATURES if name != "position")
"""A pooled position would reveal the length only."""


def response_features(record: Record) -> dict[str, float]:
    """Every pooled token feature, `NAME: POOLING`, those of R_prompt and of sentences where they are there.

    Raises `InputError` for an empty response or missing signals.
    """
    if not len(record):
        raise InputError("a response without tokens has no features")
    found: dict[str, float] = {}
    for name in POOLED:
        values = TOKEN_FEATURES[name](record)
        found |= {f"{name}: {pooling}": value for pooling, value in pooled(values, record).items()}
    if record.require_relevance().prompt is not None:
        found |= {f"R_prompt: {name}": feature(record) for name, feature in PROMPT_FEATURES.items()}
    return found | sentence_features(record)
