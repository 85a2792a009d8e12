"""`TokenModel`: an ensemble that scores tokens, and the rule that makes a verdict of its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

import numpy as np
from scipy.special import expit

from lrp4rag.classifiers.alarms import PLACE, Alarmed, Alarms, alarm_arrays, alarms_of, units
from lrp4rag.classifiers.card import Card, TokenInput
from lrp4rag.classifiers.contradiction import (
    SUSPECTED,
    Statements,
    denials,
    differences,
    of_their_slots,
    with_clauses,
    with_suspected,
)
from lrp4rag.classifiers.decision import Claimed, claim_columns
from lrp4rag.classifiers.ensemble import Ensemble, mean_log_odds
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.trees import PLACE as TREES
from lrp4rag.classifiers.trees import Trees, tree_arrays, trees_for, with_trees
from lrp4rag.classifiers.verdict import Assessment, Claims, Difference, Judgement, Reason, TokenMarks
from lrp4rag.features.blocks import Block
from lrp4rag.features.contrast import Contrast
from lrp4rag.features.parts import READING
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.record import Record
from lrp4rag.features.rows import values_of
from lrp4rag.features.units import sentence_numbers

REASONS = 3


@dataclass(frozen=True, eq=False)
class TokenModel(Model):
    """An `ensemble` of the card's blocks of features, the card's rule, `alarms` by their names, and
    the `trees` that score claims."""

    ensemble: Ensemble
    alarms: Alarms = field(default_factory=dict)
    trees: tuple[Trees, ...] = ()

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
        text, passages = record.encoded.response, record.context.passages
        scores = self.ensemble({name: block(record) for name, block in self.blocks.items()}, numbers)
        statements = Statements.of(record)
        columns = claim_columns(scores.alone, scores.among, numbers, statements.compared)
        alarmed = Alarmed.of(self.alarms, units(record, entailed=bool(self.comparer)) if self.alarms else {})
        highest = {name: alarmed.by_sentence(name, len(columns)) for name in self.alarms}
        read = np.isin(np.arange(len(columns)), numbers)
        judged = with_trees(Claimed(columns, highest), self.trees)
        claims = np.where(read, rule.claims(judged, record.generator), 0.0)
        stating = [k for k, kind in enumerate(statements.stating) if kind != "nothing" and read[k]]
        marks, suspected = expit(scores.among), list[Contrast]()
        if "value" in self.alarms:
            compared = values_of(record)
            probabilities = expit(alarmed.log_odds["value"])
            for contrast, probability in zip(compared, probabilities, strict=True):
                inside = slice(contrast.claim.first, contrast.claim.last)
                marks[inside] = np.maximum(marks[inside], probability)
            suspected = [compared[k] for k in np.flatnonzero(probabilities >= SUSPECTED)]
        contradictions = with_suspected(record, statements.contradictions, suspected)
        contradictions = of_their_slots(contradictions, record.compared)
        against: tuple[Difference, ...] = ()
        if self.alarms:
            contradictions = with_clauses(contradictions, denials(text, record.compared, passages, alarmed))
            against = differences(record.compared, passages, alarmed)
        return Assessment(
            float(claims[stating].max()) if stating else None,
            rule.shift(record.generator),
            TokenMarks(marks.astype(np.float32), rule.token_threshold),
            Claims(claims, statements.stating),
            contradictions,
            against,
        )

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
            networks = self.ensemble.networks[name]
            mean = np.mean([network.mean for network in networks], axis=0)
            tables = [block(record)[inside]]
            for feature in block.telling:
                tables.append(tables[0].copy())
                columns = block.columns_of(feature)
                tables[-1][:, columns] = mean[columns]
            scores = mean_log_odds(networks, np.concatenate(tables)).reshape(len(tables), -1).mean(axis=1)
            for feature, after in zip(block.telling, scores[1:], strict=True):
                moved = self.ensemble.weight(name) * float(scores[0] - after)
                if feature in reference and (moved > 0) == flagged:
                    value = float(tables[0][:, block.own_column(feature)].mean(dtype=np.float64))
                    reason = Reason(feature, moved, chosen, value, reference[feature].faithful)
                    if not (flagged and reason.usual):  # what is usual explains no suspicion
                        reasons.append(reason)
        return tuple(sorted(reasons, key=lambda reason: -abs(reason.moved or 0.0))[:REASONS])

    def arrays(self) -> Arrays:
        return self.ensemble.arrays() | alarm_arrays(self.alarms) | tree_arrays(self.trees)

    @classmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        read = cast(TokenInput, card.input)
        alarms = alarms_of(arrays, read.alarms)
        beside = f"{PLACE}/", f"{TREES}/"
        of_tokens = {name: array for name, array in arrays.items() if not name.startswith(beside)}
        return cls(card, Ensemble.of(of_tokens, list(read.blocks)), alarms, trees_for(read, arrays))
