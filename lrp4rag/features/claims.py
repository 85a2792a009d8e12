"""Features of tokens that belong to a value: what the passages and the reader say of its alternatives.

They are 0 at all other tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words
from lrp4rag.claims.written import number_of
from lrp4rag.features.contrast import Claim, Contrast, Scored
from lrp4rag.features.feature import Feature
from lrp4rag.features.record import Record, Values

KINDS = ("quantity", "date", "time", "period", "name", "polarity")
LARGEST = 20.0
"""Nats; margins are clipped there."""
_SMALL = 1e-6
_POLARITY = 1 + KINDS.index("polarity")


FEATURES = tuple(
    Feature(name, span, definition, "nat" if span == "any" else "-")
    for name, span, definition in (
        ("value", "0 or 1", "the token belongs to a value"),
        *((f"{kind}", "0 or 1", f"of kind {kind}") for kind in KINDS),
        ("support", "0 to 1", "similarity of the best place with a value that agrees"),
        ("rival", "0 to 1", "similarity of the best place with a value that does not"),
        ("rival's lead", "-1 to 1", "rival less support"),
        ("unsupported", "0 or 1", "no value of the passages agrees"),
        ("rivals", "0 or more", "log(1 + values that do not agree)"),
        ("value asked", "0 or 1", "the question has a content word of it"),
        ("scored", "0 or 1", "some alternatives were scored"),
        ("margin", "any", "of the best alternative over what is written, with what follows"),
        ("value margin", "any", "the largest of the alternatives' own tokens"),
        ("tail margin", "any", "the largest of what follows"),
        ("share", "0 to 1", "what is written has of its and the alternatives' probability"),
        ("best's lead", "-1 to 1", "similarity of the best alternative's place, less support"),
        (
            "margin a token",
            "any",
            "the largest difference of mean log-probabilities of the tokens themselves",
        ),
        ("best's tail", "any", "what follows the best alternative"),
        ("alternatives", "0 or more", "how many were scored"),
        (
            "same polarity",
            "0 to 1",
            "of a polarity word: similarity of the best place that says the same, of the top",
        ),
        ("opposite polarity", "0 to 1", "... of the best place that says the opposite"),
        ("polarity's lead", "-1 to 1", "the second less the first"),
        ("same number", "0 to 1", "of a quantity or date: ... of the best place with the same number"),
        ("negated", "0 or 1", "a polarity word with a not"),
        ("sentence's similarity", "0 to 1", "of the sentence and its place"),
        ("support of it", "0 to 1", "support / that similarity"),
    )
)
NAMES = tuple(feature.name for feature in FEATURES)
CLAIMS = "claims' rows"
"""What a record keeps them by."""


def claim_features(record: Record) -> Values:
    """Return the `FEATURES` of tokens, (features, t). Of two values that share a token, the one that is not a
    polarity word, or the first."""
    table = np.zeros((len(record), len(FEATURES)))
    for contrast, row in zip(record.contrasts, claim_rows(record), strict=True):
        claim = contrast.claim
        for token in range(claim.first, claim.last):
            if not table[token, 0] or (table[token, _POLARITY] and claim.value.kind != "polarity"):
                table[token] = row
    return table.T


def claim_rows(record: Record) -> Values:
    """Return the `FEATURES` of each of a record's contrasts, (contrasts, features), computed once."""

    def further(done: Sequence[list[Values]]) -> Iterator[list[Values]]:
        for numbers in record.numbered[len(done) :]:
            contrasts = (record.contrasts[number] for number in numbers)
            yield [claim_row(contrast, record) for contrast in contrasts]

    if CLAIMS not in record.groups:
        rows = [row for inside in record.of_each(CLAIMS, further) for row in inside]
        record.groups[CLAIMS] = np.array(rows).reshape(-1, len(FEATURES))
    return record.groups[CLAIMS]


def claim_row(contrast: Contrast, record: Record) -> NDArray[np.float64]:
    """Return the `FEATURES` of a value."""
    claim, context = contrast.claim, record.context
    similarities = record.similarities(claim.sentence)
    index, value, top = context.index, claim.value, max(similarities, default=0.0) + _SMALL
    rival = max((occurrence.similarity for occurrence in claim.rivals), default=0.0)
    same = opposite = number = 0.0
    if value.kind == "polarity":
        same, opposing = index.polarity(value, similarities)
        opposite = opposing.similarity if opposing else 0.0
    elif value.kind in ("quantity", "date"):
        number = _same_number(claim, index, similarities)
    row = [
        1.0,
        *(float(value.kind == kind) for kind in KINDS),
        claim.support,
        rival,
        rival - claim.support,
        float(not claim.support),
        math.log1p(len(claim.rivals)),
        float(bool(content_words(value.text) & context.question_words)),
        *_margins(claim, contrast.scored),
        same / top,
        opposite / top,
        (opposite - same) / top,
        number / top,
        float(value.kind == "polarity" and bool(value.key[1])),
        top,
        min(claim.support / top, 1.0),
    ]
    return np.array(row)


def _margins(claim: Claim, scored: tuple[Scored, ...]) -> list[float]:
    if not scored:
        return [0.0] * 9
    best = scored[0]
    margins = np.array([alternative.margin for alternative in scored])
    return [
        1.0,
        _clipped(best.margin),
        _clipped(max(alternative.value for alternative in scored)),
        _clipped(max(alternative.tail for alternative in scored)),
        float(1 / (1 + np.exp(np.clip(margins, -30, 30)).sum())),
        best.alternative.similarity - claim.support,
        _clipped(max(map(_mean_difference, scored))),
        _clipped(best.tail),
        float(len(scored)),
    ]


def _mean_difference(scored: Scored) -> float:
    """Return the mean log-probability of a token of the alternative, less that of one of what is written."""
    written = scored.written_logprob
    return (written + scored.value) / max(scored.tokens, 1) - written / max(scored.written, 1)


def _clipped(margin: float) -> float:
    return float(np.clip(margin, -LARGEST, LARGEST))


def _same_number(claim: Claim, index: Index, similarities: list[float]) -> float:
    number = number_of(claim.value)
    if number is None:
        return 0.0
    pairs = zip(index.places, similarities, strict=True)
    return max(
        (
            similarity
            for place, similarity in pairs
            for value in place.values
            if value.kind in ("quantity", "date") and number_of(value) == number
        ),
        default=0.0,
    )
