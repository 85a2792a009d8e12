"""`TokenModel`: an ensemble that scores tokens, and the rule that makes a verdict of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from scipy.special import expit

from lrp4rag.classifiers.card import Card, TokenInput
from lrp4rag.classifiers.contradiction import Statements, with_suspected
from lrp4rag.classifiers.decision import Numbers, Scores, claim_columns, highest_of
from lrp4rag.classifiers.ensemble import Ensemble, Network, arrays_of, mean_log_odds, networks_of
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.verdict import Assessment, Claims, Judgement, Reason, TokenMarks
from lrp4rag.features.blocks import Block
from lrp4rag.features.contrast import Contrast
from lrp4rag.features.parts import READING
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.record import Record
from lrp4rag.features.units import sentence_numbers
from lrp4rag.features.values import value_rows

REASONS = 3
VALUES = "values"
"""The place of the networks that score values, among the arrays."""
SUSPECTED = 0.5
"""Probability from which a value is named as contradicted by what a passage has in its place."""


@dataclass(frozen=True, eq=False)
class TokenModel(Model):
    """An `ensemble` of the card's blocks of features, the card's rule, and networks that score `values`."""

    ensemble: Ensemble
    values: tuple[Network, ...] = ()

    kind: ClassVar[str] = "tokens"
    plain: ClassVar[bool] = True

    @property
    def input(self) -> TokenInput:
        """Its description in the card."""
        return cast(TokenInput, self.card.input)

    @property
    def blocks(self) -> Mapping[str, Block]:
        """The blocks that the ensemble reads."""
        return self.input.blocks

    @property
    def needs(self) -> tuple[str, ...]:
        return (READING,)

    def score(self, record: Record) -> Assessment:
        numbers, rule = sentence_numbers(record), self.input.reading
        scores = self.ensemble({name: block(record) for name, block in self.blocks.items()}, numbers)
        statements = Statements.of(record)
        columns = claim_columns(scores.alone, scores.among, numbers, statements.compared)
        compared, log_odds = self.score_values(record)
        highest = highest_of(log_odds, sentences_of(compared, record), len(columns))
        read = np.isin(np.arange(len(columns)), numbers)
        claims = np.where(read, rule.claims(columns, record.generator, highest), 0.0)
        stating = [k for k, one in enumerate(statements.stating) if one != "nothing" and read[k]]
        marks, probabilities = expit(scores.among), rule.value(log_odds)
        for one, probability in zip(compared, probabilities, strict=True):
            inside = slice(one.claim.first, one.claim.last)
            marks[inside] = np.maximum(marks[inside], probability)
        suspected = [compared[k] for k in np.flatnonzero(probabilities >= SUSPECTED)]
        return Assessment(
            float(claims[stating].max()) if stating else None,
            rule.shift(record.generator),
            TokenMarks(marks.astype(np.float32), rule.token_threshold),
            scores,
            Claims(claims, statements.stating),
            with_suspected(record, statements.contradictions, suspected),
        )

    def score_values(self, record: Record) -> tuple[tuple[Contrast, ...], Scores]:
        """Return the values of a response and their log odds, (V,), of not being what the passages have."""
        if not self.values or not record.has_contrasts:
            return (), np.zeros(0)
        compared, table = value_rows(record)
        return compared, mean_log_odds(self.values, table.astype(np.float32))

    def reasons(self, record: Record, judgement: Judgement) -> tuple[Reason, ...]:
        """Return the features that moved one sentence most towards the verdict: the most suspect sentence of
        a response that is called hallucinated, else the least suspect one.

        A feature is put at its mean over the training tokens, at all its windows, and what that takes off the
        sentence's mean log odds is what the feature moved. Features of states have no words and are left out.
        """
        stating = [
            (probability, number)
            for number, status in enumerate(judgement.statuses)
            if (probability := judgement.probability_of(number)) is not None and status != "states nothing"
        ]
        if not stating:
            return ()
        probability, threshold = judgement.assessment.probability, judgement.threshold or 0.0
        flagged = probability is not None and probability >= threshold
        _, chosen = max(stating) if flagged else min(stating)
        inside = judgement.tokens[chosen]
        if not inside.any():
            return ()
        reference, reasons = self.card.reference, list[Reason]()
        for name, block in self.blocks.items():
            if not isinstance(block, PlainTable):
                continue
            table, networks = block(record)[inside], self.ensemble.networks[name]
            before = mean_log_odds(networks, table)
            mean = np.mean([network.mean for network in networks], axis=0)
            for feature in block.telling:
                without, columns = table.copy(), block.columns_of(feature)
                without[:, columns] = mean[columns]
                after = mean_log_odds(networks, without)
                moved = self.ensemble.weight(name) * float((before - after).mean())
                if feature in reference and (moved > 0) == flagged:
                    value = float(block.values(record, feature)[inside].mean())
                    reason = Reason(feature, moved, chosen, value, reference[feature].faithful)
                    if not (flagged and reason.usual):  # what is usual explains no suspicion
                        reasons.append(reason)
        return tuple(sorted(reasons, key=lambda reason: -abs(reason.moved or 0.0))[:REASONS])

    def arrays(self) -> Arrays:
        return self.ensemble.arrays() | arrays_of(self.values, VALUES)

    @classmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        read = cast(TokenInput, card.input)
        values = {name: array for name, array in arrays.items() if name.startswith(f"{VALUES}/")}
        words = {name: array for name, array in arrays.items() if name not in values}
        if bool(values) != (read.reading.values is not None):
            raise ValueError("the networks of values are not those of the rule in its card")
        networks = tuple(networks_of(values, VALUES)) if values else ()
        if networks and arrays_of(networks, VALUES).keys() != values.keys():
            raise ValueError("the networks of values have further arrays")
        return cls(card, Ensemble.of(words, list(read.blocks)), networks)


def sentences_of(compared: Sequence[Contrast], record: Record) -> Numbers:
    """Return the number of the sentence that each value stands in, (V,)."""
    numbers = {span: number for number, span in enumerate(record.encoded.sentences)}
    return np.array([numbers[one.claim.sentence] for one in compared], dtype=np.intp)
