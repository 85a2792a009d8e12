"""`compare`: what changed from one window to another, beyond what chance explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.stats import norm

from lrp4rag.guard.monitoring.measures import GROUPS, MEASURES, Measure
from lrp4rag.guard.monitoring.tests import (
    Difference,
    Table,
    compare_means,
    compare_shares,
    compare_tables,
    holm,
)
from lrp4rag.guard.monitoring.windows import Observed, Window
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.util.errors import InputError

FEWEST = 20
"""Values of a measure in each window; of fewer, nothing is said."""
ALPHA = 0.05
LEAST = 0.01
POWER = 0.8
WEIGHTS = {"outcome": 0.5, "cause": 0.25, "group": 0.25}
"""Which part of the level each family of tests has: they share it, so that in all of them together a false
alarm is no likelier than the level."""
Said = Literal["worse", "better", "changed", ""]


@dataclass(frozen=True, slots=True)
class Group:
    """The answers of one topic or of one generator."""

    by: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """A measure before and after, of all answers or of a `group`. Of a table, `difference` is that of the
    `category` that changed most, and `parts` are all. `adjusted` is the p-value for all tests together."""

    measure: Measure
    group: Group | None
    difference: Difference
    p: float
    test: str
    category: str | None = None
    parts: Mapping[str, Difference] | None = None
    adjusted: float = 1.0
    drifted: bool = False

    @property
    def family(self) -> str:
        return self.measure.family if self.group is None else "group"

    @property
    def size(self) -> float:
        """How much it changed: of a relative measure, as a part of what it was."""
        value = abs(self.difference.value)
        if not self.measure.relative or value == 0:
            return value
        return value / abs(self.difference.before) if self.difference.before else float("inf")

    @property
    def said(self) -> Said:
        """Empty where it did not drift."""
        if not self.drifted:
            return ""
        way = self.measure.worse * self.difference.value
        return "worse" if way > 0 else "better" if way < 0 else "changed"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A measure that was not compared: there are too few values in one of the windows."""

    measure: Measure
    group: Group | None
    counts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Drift:
    """All that was compared, at the level `alpha`; a change smaller than `least` is none."""

    baseline: Window
    window: Window
    changes: tuple[Change, ...]
    left_out: tuple[LeftOut, ...]
    alpha: float
    least: float

    @property
    def found(self) -> tuple[Change, ...]:
        return tuple(one for one in self.changes if one.drifted)

    def of(self, measure: str, group: Group | None = None) -> Change | None:
        """The change of a measure, where it was compared."""
        return next((one for one in self.changes if (one.measure.name, one.group) == (measure, group)), None)

    def detectable(self, change: Change) -> float:
        """How much this measure would have to change, in its own unit, to be found four times out of five if
        nothing else changed; 0 where it does not vary."""
        if not change.difference.varies:
            return 0.0
        family = [one for one in self.changes if one.family == change.family and one.difference.varies]
        level = self.alpha * _weights(self.changes)[change.family] / len(family)
        return float((norm.isf(level / 2) + norm.isf(1 - POWER)) * change.difference.error)


def compare(baseline: Window, window: Window, *, alpha: float = ALPHA, least: float = LEAST) -> Drift:
    """Compare all measures of two windows, and some within each topic and generator.

    Raises `InputError` for windows that overlap, and for one with fewer than `FEWEST` answers: nothing can be
    said of it, and least of all that nothing drifted.
    """
    _require(baseline, window)
    found: list[Change] = []
    left_out: list[LeftOut] = []
    for measure, group, before, after in _samples(baseline, window):
        if min(len(before), len(after)) < FEWEST:
            left_out.append(LeftOut(measure, group, (len(before), len(after))))
        else:
            found.append(_change(measure, group, before, after))
    changes = tuple(_adjusted(found, alpha, least))
    return Drift(baseline, window, changes, tuple(left_out), alpha, least)


def _require(baseline: Window, window: Window) -> None:
    first, second = baseline.period, window.period
    if first.start < second.end and second.start < first.end:
        raise InputError(f"the windows overlap: {first} and {second}", field="baseline")
    for name, one in (("baseline", baseline), ("since", window)):
        if len(one.answers) < FEWEST:
            count = len(one.answers)
            held = f"holds {count or 'no'} answer{'' if count == 1 else 's'}, and {FEWEST} are needed"
            unread = f" ({one.unreadable} records of it could not be read)" if one.unreadable else ""
            message = f"{one.period} {held}{unread}: name an earlier beginning, or another log with --audit"
            raise InputError(message, field=name)


_Sample = Sequence[float | bool | str]


def _samples(baseline: Window, window: Window) -> Iterator[tuple[Measure, Group | None, _Sample, _Sample]]:
    """The values of each measure, of all answers and of those of each group."""
    for measure in MEASURES:
        first, second = (one.retrievals if measure.retrieved else one.answers for one in (baseline, window))
        yield measure, None, _values(measure, first), _values(measure, second)
    for by in GROUPS:
        before, after = (_grouped(one.answers, by) for one in (baseline, window))
        names = sorted(before.keys() | after.keys())
        for name in names if len(names) > 1 else ():
            early, late = before.get(name, []), after.get(name, [])
            for measure in (one for one in MEASURES if one.grouped):
                yield measure, Group(by, name), _values(measure, early), _values(measure, late)


def _values(measure: Measure, records: Iterable[Observed]) -> _Sample:
    return [value for one in records if (value := measure.value(one)) is not None]


def _grouped(answers: Iterable[Observed], by: str) -> dict[str, list[Observed]]:
    found: dict[str, list[Observed]] = {}
    for one in answers:
        if (name := getattr(one, by)) is not None:
            found.setdefault(name, []).append(one)
    return found


def _change(measure: Measure, group: Group | None, before: _Sample, after: _Sample) -> Change:
    if measure.kind == "table":
        table: Table = compare_tables(Counter(map(str, before)), Counter(map(str, after)))
        category = next(iter(table.parts))
        most = table.parts[category]
        varies = len(table.parts) > 1
        return Change(
            measure, group, replace(most, varies=varies), table.p, table.test, category, table.parts
        )
    first, second = ([float(value) for value in side] for side in (before, after))
    if measure.kind == "share":
        shares = [Share(int(sum(side)), len(side)) for side in (first, second)]
        difference = compare_shares(*shares)
    else:
        difference = compare_means(first, second)
    return Change(measure, group, difference, difference.p, difference.test)


def _adjusted(changes: Sequence[Change], alpha: float, least: float) -> Iterator[Change]:
    """With p-values adjusted within each family (Holm) and for its part of the level. What does not vary is
    in no family: its test could not have found anything, whatever is true."""
    adjusted: dict[int, float] = {}
    for family, weight in _weights(changes).items():
        places = [k for k, one in enumerate(changes) if one.family == family and one.difference.varies]
        values = holm([changes[k].p for k in places])
        adjusted |= {k: min(1.0, p / weight) for k, p in zip(places, values, strict=True)}
    for k, one in enumerate(changes):
        p = adjusted.get(k, 1.0)
        yield replace(one, adjusted=p, drifted=p <= alpha and one.size >= least)


def _weights(changes: Iterable[Change]) -> dict[str, float]:
    """Of the families that there are; what others would have is theirs."""
    there = {one.family for one in changes if one.difference.varies}
    total = sum(WEIGHTS[name] for name in there)
    return {name: WEIGHTS[name] / total for name in WEIGHTS if name in there}
