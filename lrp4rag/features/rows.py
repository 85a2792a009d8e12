"""Features of the values and of the sentences of a response, a row each: what the passages say of them, and
the reader.

What follows a sentence changes none of them: they are the same while the response is being written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims import agree
from lrp4rag.claims.answer import Compared
from lrp4rag.claims.compare import Comparison
from lrp4rag.claims.find import find_values
from lrp4rag.features import alignment, claims
from lrp4rag.features.contrast import Contrast
from lrp4rag.features.entailment import entailment_features
from lrp4rag.features.feature import Feature
from lrp4rag.features.plain import group_of
from lrp4rag.features.record import Record
from lrp4rag.features.units import sentence_numbers

SMALL_COUNT = 4
"""Up to which a plain count ("two of them") is often the writer's own."""
ALIGNED = (
    "in no passage", "similarity", "similarity elsewhere", "in the place", "near the place",
    "away from home", "asked there", "asked at the place", "sentence's words", "limits missing",
    "limits added",
)  # fmt: skip
"""Features of `alignment` whose means over the sentence are read."""

_OF_TOKENS = ("sum", "max", "min", "first")
FEATURES = (
    *claims.FEATURES[1:],
    *(
        Feature(f"{name}, {what}", "any", f"of the value's tokens: {what} of '{name}'", "nat")
        for name in ("logprob", "entropy", "rank", "best", "best_in_passages", "mass")
        for what in _OF_TOKENS
    ),
    Feature("next log-probability", "0 or less", "of the next token of the sentence", "nat"),
    Feature("sentence's log-probability", "0 or less", "mean over its tokens", "nat"),
    Feature("sentence's entropy", "0 or more", "mean over its tokens", "nat"),
    *(Feature(f"sentence: {name}", "any", "mean over the sentence's tokens") for name in ALIGNED),
    *(
        Feature(*definition)
        for definition in (
            ("in the question", "0 or 1", "the question has a value that it agrees with"),
            ("in words", "0 or 1", "it has no digit"),
            ("value's tokens", "1 or more", "their number"),
            ("amount", "any", "log(1 + its size); -1 where it has none"),
            ("small count", "0 or 1", f"a count without a unit, up to {SMALL_COUNT}"),
            ("unit", "0 or 1", "it has a unit"),
            ("noun", "0 or 1", "it has the noun of what is counted"),
            ("sentence's values", "1 or more", "their number"),
            ("values so far", "1 or more", "their number up to the end of the sentence"),
            ("sentence's number", "0 or more", "log(1 + sentences before it)"),
            ("places that agree", "0 or more", "values of the passages that agree"),
            ("places", "0 or more", "values of the passages of its kind"),
        )
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Characters `start` to `end` of a response, the number of their `sentence`, and numbers by name."""

    start: int
    end: int
    sentence: int
    features: Mapping[str, float]


def table(rows: Sequence[Row], columns: Sequence[str]) -> NDArray[np.float32]:
    """Return the named features of rows, (rows, columns); one that a row lacks is 0."""
    numbers = [[row.features.get(name, 0.0) for name in columns] for row in rows]
    return np.array(numbers, dtype=np.float32).reshape(len(rows), len(columns))


NAMES = tuple(feature.name for feature in FEATURES)
STATUSES = ("supported", "computed", "unsupported", "contradicted")
"""What passages say of a value, from the best to the worst."""


def values_of(record: Record) -> tuple[Contrast, ...]:
    """Return the values of a response that are no words of polarity, in order. Raises `InputError` where
    alternatives were not scored."""
    return tuple(contrast for contrast in record.contrasts if contrast.claim.value.kind != "polarity")


def value_rows(record: Record) -> list[Row]:
    """Return the features of `values_of` a response: `FEATURES`, and those of their comparisons."""
    if not values_of(record):
        return []
    table = _Table(record)

    def further(done: Sequence[list[Row]]) -> Iterator[list[Row]]:
        for sentence in range(len(done), len(record.encoded.sentences)):
            slots = {row.start: row.features for row in comparison_rows([record.compared[sentence]])}
            rows = list[Row]()
            for k in record.numbered[sentence]:
                value = record.contrasts[k].claim.value
                if value.kind != "polarity":
                    numbers = zip(NAMES, map(float, table.row(k)), strict=True)
                    slot = slots.get(value.start, {"slot: none": 1.0})
                    rows.append(Row(value.start, value.end, sentence, {**dict(numbers), **slot}))
            yield rows

    return [row for rows in record.of_each("values' rows", further) for row in rows]


def comparison_rows(compared: list[Compared]) -> list[Row]:
    """Return the features of the values that text alone tells."""
    return [
        Row(value.start, value.end, number, _of_slot(value))
        for number, sentence in enumerate(compared)
        for value in sentence.values
    ]


def _of_slot(value: Comparison) -> dict[str, float]:
    features = {f"slot: {name}": number for name, number in value.features.items() if math.isfinite(number)}
    return {
        **features,
        "slot: status": float(STATUSES.index(value.status)),
        f"slot: {value.kind}": 1.0,
    }


class _Table:
    """What the rows of a response's values share."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.likelihoods = group_of("likelihoods", record)
        aligned = group_of("alignment", record)
        self.aligned = aligned[[alignment.NAMES.index(name) for name in ALIGNED]]
        self.numbers = sentence_numbers(record)
        self.places = {span: number for number, span in enumerate(record.encoded.sentences)}
        self.counts = Counter(contrast.claim.sentence for contrast in record.contrasts)
        self.question_values = find_values(record.encoded.question)

    def row(self, number: int) -> list[float]:
        """Return the features of one of the response's contrasts."""
        record = self.record
        claim = record.contrasts[number].claim
        value, sentence = claim.value, claim.sentence
        of_value = self.likelihoods[:, claim.first : claim.last]
        inside = self.numbers == self.places[sentence]
        if not inside.any():  # its tokens are those of the sentence before
            inside[claim.first : claim.last] = True
        goes_on = claim.last < len(record) and bool(inside[claim.last])
        amount = math.log1p(abs(value.amount)) if math.isfinite(value.amount) else -1.0
        index = record.context.index
        places = index.occurrences(value, [0.0] * len(index.places))
        return [
            *claims.claim_rows(record)[number, 1:],
            *np.stack([of_value.sum(1), of_value.max(1), of_value.min(1), of_value[:, 0]], axis=1).ravel(),
            self.likelihoods[0, claim.last] if goes_on else 0.0,
            self.likelihoods[0, inside].mean(),
            self.likelihoods[1, inside].mean(),
            *self.aligned[:, inside].mean(1),
            any(agree(value, each) for each in self.question_values if each.kind == value.kind),
            not any(sign.isdigit() for sign in value.text),
            claim.last - claim.first,
            amount,
            not value.unit and abs(value.amount) <= SMALL_COUNT,
            bool(value.unit),
            bool(value.noun),
            self.counts[sentence],
            sum(count for (start, _), count in self.counts.items() if start <= sentence[0]),
            math.log1p(self.places[sentence]),
            sum(agree(value, occurrence.value) for occurrence in places),
            len(places),
        ]


OF_VALUES = ("margin", "value margin", "tail margin", "share", "polarity's lead")
"""Features of values (see `features.claims`) whose highest in the sentence is read."""


def sentence_rows(record: Record) -> list[Row]:
    """Return the features of each sentence: of `text_rows`, and of the reader. Raises `InputError` where
    alternatives were not scored."""
    likelihoods, numbers = group_of("likelihoods", record), sentence_numbers(record)
    rows = []
    for number, row in enumerate(text_rows(record.compared)):
        inside = numbers == number
        features = {**row.features, **_highest(record, number)}
        if inside.any():
            features |= {
                "log-probability": float(likelihoods[0, inside].mean()),
                "lowest log-probability": float(likelihoods[0, inside].min()),
                "entropy": float(likelihoods[1, inside].mean()),
            }
        rows.append(Row(row.start, row.end, number, features))
    return rows


def _highest(record: Record, sentence: int) -> dict[str, float]:
    """Return the highest of `OF_VALUES` among a sentence's values, and among its words of polarity."""
    highest = dict[str, float]()
    for k in record.numbered[sentence]:
        kind = "polarity" if record.contrasts[k].claim.value.kind == "polarity" else "value"
        for name in OF_VALUES:
            value = float(claims.claim_rows(record)[k, claims.NAMES.index(name)])
            highest[f"{kind}: {name}"] = max(highest.get(f"{kind}: {name}", value), value)
    return highest


def with_entailments(record: Record, rows: Sequence[Row]) -> list[Row]:
    """Add to rows what the comparer makes of their sentences, and of their words."""
    added = []
    for row in rows:
        first, _ = record.encoded.sentences[row.sentence]
        entailment = record.entailments[row.sentence]
        features = entailment_features(entailment, row.start - first, row.end - first)
        added.append(replace(row, features={**row.features, **features}))
    return added


def text_rows(compared: list[Compared]) -> list[Row]:
    """Return the features of each sentence that text alone tells."""
    rows = []
    for number, sentence in enumerate(compared):
        counts = Counter(value.status for value in sentence.values)
        statuses = {f"values {status}": float(count) for status, count in counts.items()}
        rows.append(Row(sentence.start, sentence.end, number, {**sentence.features, **statuses}))
    return rows
