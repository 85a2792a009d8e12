"""`compare`: what changed from one window to another, beyond what chance explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lrp4rag.guard.monitoring.statistics import (
    Difference,
    Table,
    compare_means,
    compare_proportions,
    compare_tables,
    holm,
)
from lrp4rag.guard.monitoring.windows import UNAVAILABLE, Answer, Window
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.report.numbers import number, percent
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

Kind = Literal["mean", "proportion", "table"]
Family = Literal["outcome", "cause"]
Value = float | bool | str | None

GROUPS = ("topic", "generator")
"""The fields by which answers are grouped."""


@dataclass(frozen=True, slots=True)
class Measure:
    """`value` gives a number ("mean"), whether something is so ("proportion") or a name ("table") of an
    answer, None where it has none.

    * `family`: outcomes are what users meet; causes are where a change of them may come from.
    * `worse`: 1 where higher is worse, -1 where lower is, 0 where neither is.
    * `relative`: its change is a part of its mean in the baseline; that of the others is absolute.
    * `grouped`: it is also compared within each topic and each generator.
    * `retrieved`: it is of the checks of what was retrieved, and not of answers.
    """

    name: str
    kind: Kind
    family: Family
    value: Callable[[Answer], Value]
    worse: Literal[-1, 0, 1] = 0
    relative: bool = False
    grouped: bool = False
    retrieved: bool = False


def _sentence_characters(answer: Answer) -> float | None:
    if answer.characters is None or not answer.sentence_count:
        return None
    return answer.characters / answer.sentence_count


MEASURES = (
    Measure("probability", "mean", "outcome", lambda x: x.probability if x.judged else None, 1, grouped=True),
    Measure(
        "faithfulness", "mean", "outcome", lambda x: x.faithfulness if x.judged else None, -1, grouped=True
    ),
    Measure("fact score", "mean", "outcome", lambda x: x.fact_score if x.judged else None, -1, grouped=True),
    Measure("withheld", "proportion", "outcome", lambda x: not x.served, 1, grouped=True),
    Measure("actions", "table", "cause", lambda x: x.action),
    Measure("reasons", "table", "cause", lambda x: x.reason),
    Measure("abstained", "proportion", "cause", lambda x: x.unlike, 1),
    Measure("unavailable", "proportion", "cause", lambda x: x.reason == UNAVAILABLE, 1),
    Measure("knowledge gap", "proportion", "cause", lambda x: x.reason == "knowledge gap", 1),
    Measure("contradicted", "proportion", "cause", lambda x: x.reason == "contradicted", 1),
    Measure("unsupported", "proportion", "cause", lambda x: x.reason == "unsupported", 1),
    Measure("length", "mean", "cause", lambda x: x.characters, relative=True),
    Measure("sentence length", "mean", "cause", _sentence_characters, relative=True),
    Measure("passages", "mean", "cause", lambda x: x.passages, relative=True),
    Measure("retrieval score", "mean", "cause", lambda x: x.retrieval_score, -1, relative=True, grouped=True),
    Measure(
        "score at the gate", "mean", "cause", lambda x: x.retrieval_score, -1, relative=True, retrieved=True
    ),
    Measure("nothing retrieved", "proportion", "cause", lambda x: not x.served, 1, retrieved=True),
    Measure("topics", "table", "cause", lambda x: x.topic),
    Measure("generators", "table", "cause", lambda x: x.generator),
)
"""In the order in which they are shown."""


SMALLEST_SAMPLE = 20
"""Values of a measure in each window; of fewer, nothing is said."""
NAME = 40
"""Characters of a topic, a generator or a category that are shown."""
ALPHA = 0.05
LEAST = 0.01
WEIGHTS = {"outcome": 0.5, "cause": 0.25, "group": 0.25}
"""Which part of the level each family of tests has: they share it, so that in all of them together a false
alarm is no likelier than the level."""
Direction = Literal["worse", "better", "changed", ""]


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
    category: str | None = None
    parts: Mapping[str, Difference] | None = None
    adjusted: float = 1.0
    drifted: bool = False

    @property
    def family(self) -> str:
        return self.measure.family if self.group is None else "group"

    @property
    def size(self) -> float:
        """The absolute change; of a relative measure, as a part of the value before."""
        value = abs(self.difference.value)
        if not self.measure.relative or value == 0:
            return value
        return value / abs(self.difference.before) if self.difference.before else float("inf")

    @property
    def direction(self) -> Direction:
        """Empty where it did not drift."""
        if not self.drifted:
            return ""
        way = self.measure.worse * self.difference.value
        return "worse" if way > 0 else "better" if way < 0 else "changed"


@dataclass(frozen=True, slots=True)
class Skipped:
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
    skipped: tuple[Skipped, ...]
    alpha: float
    least: float

    @property
    def drifted(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.drifted)

    def of(self, measure: str, group: Group | None = None) -> Change | None:
        """Return the change of a measure, where it was compared."""
        return next(
            (change for change in self.changes if (change.measure.name, change.group) == (measure, group)),
            None,
        )


def compare(baseline: Window, window: Window, *, alpha: float = ALPHA, least: float = LEAST) -> Drift:
    """Compare all measures of two windows, and some within each topic and generator.

    Raises `InputError` for windows that overlap, and for one with fewer than `SMALLEST_SAMPLE` answers:
    nothing can be said of it, and least of all that nothing drifted.
    """
    _require(baseline, window)
    changes: list[Change] = []
    skipped: list[Skipped] = []
    for measure, group, before, after in _samples(baseline, window):
        if min(len(before), len(after)) < SMALLEST_SAMPLE:
            skipped.append(Skipped(measure, group, (len(before), len(after))))
        else:
            changes.append(_change(measure, group, before, after))
    adjusted = tuple(_adjusted(changes, alpha, least))
    return Drift(baseline, window, adjusted, tuple(skipped), alpha, least)


def _require(baseline: Window, window: Window) -> None:
    first, second = baseline.period, window.period
    if first.start < second.end and second.start < first.end:
        raise InputError(f"the windows overlap: {first} and {second}", field="baseline")
    for name, part in (("baseline", baseline), ("since", window)):
        if len(part.answers) < SMALLEST_SAMPLE:
            count = len(part.answers)
            held = (
                f"holds {count or 'no'} answer{'' if count == 1 else 's'}, and {SMALLEST_SAMPLE} are needed"
            )
            unread = f" ({part.unreadable} records of it could not be read)" if part.unreadable else ""
            message = f"{part.period} {held}{unread}: name an earlier beginning, or another log with --audit"
            raise InputError(message, field=name)


_Sample = Sequence[float | bool | str]


def _samples(baseline: Window, window: Window) -> Iterator[tuple[Measure, Group | None, _Sample, _Sample]]:
    """Yield the values of each measure, of all answers and of those of each group."""
    for measure in MEASURES:
        first, second = (
            part.retrievals if measure.retrieved else part.answers for part in (baseline, window)
        )
        yield measure, None, _values(measure, first), _values(measure, second)
    for by in GROUPS:
        before, after = (_grouped(part.answers, by) for part in (baseline, window))
        names = sorted(before.keys() | after.keys())
        for name in names if len(names) > 1 else ():
            early, late = before.get(name, []), after.get(name, [])
            for measure in (measure for measure in MEASURES if measure.grouped):
                yield measure, Group(by, name), _values(measure, early), _values(measure, late)


def _values(measure: Measure, records: Iterable[Answer]) -> _Sample:
    return [value for record in records if (value := measure.value(record)) is not None]


def _grouped(answers: Iterable[Answer], by: str) -> dict[str, list[Answer]]:
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        if (name := getattr(answer, by)) is not None:
            groups.setdefault(name, []).append(answer)
    return groups


def _change(measure: Measure, group: Group | None, before: _Sample, after: _Sample) -> Change:
    if measure.kind == "table":
        table: Table = compare_tables(Counter(map(str, before)), Counter(map(str, after)))
        category = next(iter(table.parts))
        most = table.parts[category]
        varies = len(table.parts) > 1
        most = replace(most, varies=varies, p=table.p, test=table.test)
        return Change(measure, group, most, category, table.parts)
    first, second = ([float(value) for value in side] for side in (before, after))
    if measure.kind == "proportion":
        shares = [Share(int(sum(side)), len(side)) for side in (first, second)]
        difference = compare_proportions(*shares)
    else:
        difference = compare_means(first, second)
    return Change(measure, group, difference)


def _adjusted(changes: Sequence[Change], alpha: float, least: float) -> Iterator[Change]:
    """Adjust p-values within each family (Holm) and for its part of the level. What does not vary is
    in no family: its test could not have found anything, whatever is true."""
    adjusted: dict[int, float] = {}
    for family, weight in _weights(changes).items():
        places = [
            k for k, change in enumerate(changes) if change.family == family and change.difference.varies
        ]
        values = holm([changes[k].difference.p for k in places])
        adjusted |= {k: min(1.0, p / weight) for k, p in zip(places, values, strict=True)}
    for k, change in enumerate(changes):
        p = adjusted.get(k, 1.0)
        yield replace(change, adjusted=p, drifted=p <= alpha and change.size >= least)


def _weights(changes: Iterable[Change]) -> dict[str, float]:
    """Weigh the families that there are; they share the weight of those that are not."""
    there = {change.family for change in changes if change.difference.varies}
    total = sum(WEIGHTS[name] for name in there)
    return {name: WEIGHTS[name] / total for name in WEIGHTS if name in there}


def measure_words(change: Change) -> str:
    """Return the measure, of a table with the category that changed most."""
    name = change.measure.name
    return name if change.category is None else f"{name}: {one_line(change.category, NAME)}"


def value_words(measure: Measure, value: float) -> str:
    """Return a mean or a proportion."""
    if measure.kind != "mean":
        return percent(value)
    return number(value, 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0)
