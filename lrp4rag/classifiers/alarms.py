"""`Alarm`: networks that find one kind of fault, in the values or in the sentences of a response.

One network for all kinds would learn the frequent ones: an alarm learns from one kind and from right text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lrp4rag.classifiers.decision import highest_of
from lrp4rag.classifiers.ensemble import (
    Arrays,
    Network,
    Scores,
    arrays_of,
    mean_log_odds,
    networks_of,
)
from lrp4rag.features.record import Record
from lrp4rag.features.rows import (
    Row,
    comparison_rows,
    sentence_rows,
    table,
    text_rows,
    value_rows,
    with_entailments,
)

Unit = Literal["values", "sentences", "text values", "text sentences"]
"""What faults are looked for in; "text" ones have no features of a reader."""
Units = Mapping[Unit, Sequence[Row]]
PLACE = "alarms"
"""Of their networks, among a model's arrays."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault: what it is looked for in, and the `kinds` of the labels that mark it, None for all.

    What is less than a part `share` of a label's text may be right: in a longer one, words are wrong."""

    unit: Unit
    kinds: frozenset[str] | None
    share: float = 0.0


OF_LABEL = 0.3
KINDS = {
    "negation": frozenset({"negation"}),
    "condition": frozenset({"condition"}),
    "invention": frozenset({"invention"}),
    "refusal": frozenset({"refusal"}),
    "attribution": frozenset({"misattributed"}),
}
"""The kinds of labels that mark whole sentences, by the alarm's name."""
FAULTS: dict[str, Fault] = {
    "sentence": Fault("sentences", None),
    "value": Fault("values", None, OF_LABEL),
    **{name: Fault("sentences", kinds) for name, kinds in KINDS.items()},
}
"""The kinds of faults that a detector with a reader has alarms for, beside what it makes of tokens."""
TEXT_FAULTS: dict[str, Fault] = {
    f"text {name}": replace(fault, unit="text values" if fault.unit == "values" else "text sentences")
    for name, fault in FAULTS.items()
}
"""Those of a detector without one."""
EVERY_FAULT = FAULTS | TEXT_FAULTS


def units(record: Record, *, entailed: bool = False) -> Units:
    """Compute the rows of a response, with `entailed` what the comparer makes of them too; none where
    alternatives were not scored."""
    if not record.has_contrasts:
        return {}
    rows: Units = {"values": value_rows(record), "sentences": sentence_rows(record)}
    return _entailed(record, rows) if entailed else rows


def text_units(record: Record, *, entailed: bool = False) -> Units:
    """Compute the rows that text alone tells, with `entailed` what the comparer makes of them too."""
    compared = record.compared
    rows: Units = {"text values": comparison_rows(compared), "text sentences": text_rows(compared)}
    return _entailed(record, rows) if entailed else rows


def _entailed(record: Record, units: Units) -> Units:
    return {unit: with_entailments(record, rows) for unit, rows in units.items()}


@dataclass(frozen=True, eq=False)
class Alarm:
    """`networks` that score the rows of a `unit` by the `columns` of their features."""

    unit: Unit
    columns: tuple[str, ...]
    networks: tuple[Network, ...]

    def log_odds(self, rows: Sequence[Row]) -> Scores:
        """Score rows, (rows,)."""
        return mean_log_odds(self.networks, table(rows, self.columns)) if rows else np.zeros(0)


Alarms = Mapping[str, Alarm]


@dataclass(frozen=True, slots=True, eq=False)
class Alarmed:
    """What the alarms make of a response: the `rows` of its units, and their log odds by the alarm's name."""

    rows: Units
    log_odds: Mapping[str, Scores]

    @classmethod
    def of(cls, alarms: Alarms, rows: Units) -> Alarmed:
        """Score the rows of a response."""
        return cls(rows, {name: alarm.log_odds(rows[alarm.unit]) for name, alarm in alarms.items()})

    def by_sentence(self, name: str, count: int) -> Scores:
        """Return the highest log odds of an alarm in each of so many sentences; minus infinity for none."""
        rows = self.rows[EVERY_FAULT[name].unit]
        numbers = np.array([row.sentence for row in rows], dtype=np.intp)
        return highest_of(self.log_odds[name], numbers, count)


def alarm_arrays(alarms: Alarms) -> dict[str, np.ndarray]:
    """Return what alarms have learned, by name; `alarms_of` reads it back."""
    arrays: dict[str, np.ndarray] = {}
    for name, alarm in alarms.items():
        arrays |= arrays_of(alarm.networks, f"{PLACE}/{name}")
    return arrays


def alarms_of(arrays: Arrays, columns: Mapping[str, tuple[str, ...]]) -> dict[str, Alarm]:
    """Read alarms with these columns by their names; raises as `Ensemble.of` does."""
    alarms = {
        name: Alarm(EVERY_FAULT[name].unit, names, tuple(networks_of(arrays, f"{PLACE}/{name}")))
        for name, names in columns.items()
    }
    for name, alarm in alarms.items():
        if any(network.mean.shape != (len(alarm.columns),) for network in alarm.networks):
            raise ValueError(f"the networks of the alarm '{name}' have other columns than its card")
    if alarm_arrays(alarms).keys() != {name for name in arrays if name.startswith(f"{PLACE}/")}:
        raise ValueError("the alarms are not those in its card")
    return alarms
