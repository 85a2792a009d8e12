"""`TextModel`: alarms that compare text only, beside any reader or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from scipy.special import expit

from lrp4rag.claims.stating import stating_of
from lrp4rag.classifiers.alarms import Alarmed, Alarms, alarm_arrays, alarms_of, text_units
from lrp4rag.classifiers.card import Card, TextInput
from lrp4rag.classifiers.contradiction import SUSPECTED, denials, differences, of_slot, with_clauses
from lrp4rag.classifiers.decision import COLUMNS, Claimed
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.trees import Trees, tree_arrays, trees_for, with_trees
from lrp4rag.classifiers.verdict import Assessment, Claims, Contradiction, Judgement, Reason, TokenMarks
from lrp4rag.features.record import Record

ALARM_WORDS = {
    "text sentence": "no passage says what it says",
    "text value": "a value of it is not what the passages say",
    "text negation": "it denies what the passages say, or says what they deny",
    "text condition": "it has other conditions than the passages",
    "text invention": "it says what no passage has",
    "text refusal": "it says that the passages lack what they may have",
    "text attribution": "the passages say it of something else",
}
"""What a sentence is suspected of, by the alarm's name."""
VALUE = "text value"
"""The alarm that says which words of a suspect sentence are; without one, all of them are."""


@dataclass(frozen=True, eq=False)
class TextModel(Model):
    """The `alarms` of a card, by their names, the `trees` that score claims by them, and the rule."""

    alarms: Alarms
    trees: tuple[Trees, ...] = ()

    kind: ClassVar[str] = "text"
    plain: ClassVar[bool] = True
    texts: ClassVar[bool] = True

    @property
    def input(self) -> TextInput:
        """Its description in the card."""
        return cast(TextInput, self.card.input)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def score(self, record: Record) -> Assessment:
        text, sentences, rule = record.encoded.response, record.encoded.sentences, self.input.reading
        passages, stating = record.context.passages, tuple(stating_of(text, sentences))
        alarmed = self._alarmed(record)
        highest = {name: alarmed.by_sentence(name, len(sentences)) for name in self.alarms}
        judged = with_trees(Claimed(np.zeros((len(sentences), len(COLUMNS))), highest), self.trees)
        claims = rule.claims(judged, record.generator)
        offsets = np.array(record.encoded.response_offsets).reshape(-1, 2)

        def tokens_of(start: int, end: int) -> slice:
            """Return those that overlap some characters: offsets rise."""
            return slice(
                *(np.searchsorted(offsets[:, 1], start, "right"), np.searchsorted(offsets[:, 0], end))
            )

        marks, contradictions = np.zeros(len(record)), list[Contradiction]()
        if VALUE in self.alarms:
            chances = expit(alarmed.log_odds[VALUE])
            values = [value for sentence in record.compared for value in sentence.values]
            for value, chance in zip(values, chances, strict=True):
                inside = tokens_of(value.start, value.end)
                marks[inside] = np.maximum(marks[inside], chance)
                if chance >= SUSPECTED and value.status == "contradicted":
                    contradictions.append(of_slot(value))
        for (start, end), claim in zip(sentences, claims, strict=True):
            inside = tokens_of(start, end)
            if not (marks[inside] >= SUSPECTED).any():  # all of its words are as suspect as it is
                marks[inside] = claim
        stated = [number for number, kind in enumerate(stating) if kind != "nothing"]
        return Assessment(
            float(claims[stated].max()) if stated else None,
            rule.shift(record.generator),
            marks=TokenMarks(marks.astype(np.float32), SUSPECTED),
            claims=Claims(claims, stating),
            contradictions=with_clauses(contradictions, denials(text, record.compared, passages, alarmed)),
            differences=differences(record.compared, passages, alarmed),
        )

    def reasons(self, record: Record, judgement: Judgement) -> tuple[Reason, ...]:
        """Say of suspect sentences that nothing else is told of which alarm they resemble most."""
        explained = [contradiction.start for contradiction in judgement.assessment.contradictions]
        explained += [difference.start for difference in judgement.differences]
        silent = []
        for number in judgement.suspect:
            start, end = judgement.spans[number]
            if not any(start <= place < end for place in explained):
                silent.append(number)
        names = [name for name in ALARM_WORDS if name in self.alarms]
        if not silent or not names:  # most verdicts: nothing is scored again
            return ()
        alarmed = self._alarmed(record)
        count = len(judgement.spans)
        log_odds = np.array([alarmed.by_sentence(name, count) for name in names])
        most = [names[k] for k in log_odds.argmax(0)]
        return tuple(Reason(most[number], None, number, words=ALARM_WORDS[most[number]]) for number in silent)

    def _alarmed(self, record: Record) -> Alarmed:
        return Alarmed.of(self.alarms, text_units(record, entailed=bool(self.comparer)))

    def arrays(self) -> Arrays:
        return alarm_arrays(self.alarms) | tree_arrays(self.trees)

    @classmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        read = cast(TextInput, card.input)
        return cls(card, alarms_of(arrays, read.alarms), trees_for(read, arrays))
