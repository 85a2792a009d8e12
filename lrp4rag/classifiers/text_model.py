"""`TextModel`: alarms that compare text only, without a reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from scipy.special import expit

from lrp4rag.claims.compare import Comparison
from lrp4rag.claims.stating import stating_of
from lrp4rag.classifiers.alarms import Alarmed, Alarms, alarm_arrays, alarms_of, text_units
from lrp4rag.classifiers.card import Card, TextInput
from lrp4rag.classifiers.contradiction import SUSPECTED, differences
from lrp4rag.classifiers.decision import COLUMNS
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.verdict import Assessment, Claims, Contradiction, TokenMarks
from lrp4rag.features.record import Record
from lrp4rag.reader.encoding import tokens_in

VALUE = "text value"
"""The alarm that says which words of a suspect sentence are; without one, all of them are."""


@dataclass(frozen=True, eq=False)
class TextModel(Model):
    """The `alarms` of a card, by their names, and the rule that joins them."""

    alarms: Alarms

    kind: ClassVar[str] = "text"
    plain: ClassVar[bool] = True

    @property
    def input(self) -> TextInput:
        """Its description in the card."""
        return cast(TextInput, self.card.input)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def score(self, record: Record) -> Assessment:
        text, sentences, rule = record.encoded.response, record.encoded.sentences, self.input.reading
        stating = tuple(stating_of(text, sentences))
        alarmed = Alarmed.of(self.alarms, text_units(record))
        highest = {name: alarmed.by_sentence(name, len(sentences)) for name in self.alarms}
        claims = rule.claims(np.zeros((len(sentences), len(COLUMNS))), record.generator, highest)
        offsets = record.encoded.response_offsets
        marks, contradictions = np.zeros(len(record)), list[Contradiction]()
        if VALUE in self.alarms:
            chances = expit(alarmed.log_odds[VALUE])
            values = [value for sentence in record.compared for value in sentence.values]
            for value, chance in zip(values, chances, strict=True):
                inside = tokens_in(offsets, [(value.start, value.end)])
                marks[inside] = np.maximum(marks[inside], chance)
                if chance >= SUSPECTED and value.status == "contradicted":
                    contradictions.append(_contradiction(value))
        for (start, end), claim in zip(sentences, claims, strict=True):
            inside = tokens_in(offsets, [(start, end)])
            if not (marks[inside] >= SUSPECTED).any():  # all of its words are as suspect as it is
                marks[inside] = claim
        states = [number for number, states in enumerate(stating) if states != "nothing"]
        return Assessment(
            float(claims[states].max()) if states else None,
            rule.shift_in_all(record.generator),
            marks=TokenMarks(marks.astype(np.float32), SUSPECTED),
            claims=Claims(claims, stating),
            contradictions=tuple(contradictions),
            differences=differences(text, record.compared, record.context.passages, alarmed),
        )

    def arrays(self) -> Arrays:
        return alarm_arrays(self.alarms)

    @classmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        return cls(card, alarms_of(arrays, cast(TextInput, card.input).alarms))


def _contradiction(value: Comparison) -> Contradiction:
    passage, (start, end) = value.passage or 0, value.rival or (0, 0)
    return Contradiction(
        value.start, value.end, value.text, value.rival_text, passage, start, end, margin=None
    )
