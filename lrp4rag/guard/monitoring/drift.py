"""`compare`: what changed from one window to another, beyond what chance explains."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lrp4rag.guard.monitoring.windows import UNAVAILABLE, Answer, Window
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.report.numbers import number, percent
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

RARE = 5
"""Expected answers of a category below which it is counted among the others."""
Z = float(stats.norm.isf(0.025))
"""The normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean or a proportion before and after, `after` less `before` with its 95 % interval, and the p-value
    of a `test` that both samples, of `counts` values, are of one distribution. Where all values are equal,
    nothing `varies`: no test could have found anything."""

    before: float
    after: float
    low: float
    high: float
    p: float
    test: str
    counts: tuple[int, int]
    varies: bool = True

    @property
    def value(self) -> float:
        return self.after - self.before

    @property
    def error(self) -> float:
        """The standard error that the interval is made of."""
        return (self.high - self.low) / (2 * Z)


@dataclass(frozen=True, slots=True)
class Table:
    """Proportions of categories before and after, those that changed most first, and a test of all."""

    parts: Mapping[str, Difference]
    p: float
    test: str


def compare_means(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Compare means by Welch's t-test. Both samples need two values or more."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    counts, means = (len(first), len(second)), (float(first.mean()), float(second.mean()))
    if np.ptp(first) == 0 and np.ptp(second) == 0:  # only whether they are the same value
        varies, value = means[0] != means[1], means[1] - means[0]
        p = float(stats.fisher_exact(np.diag(counts)).pvalue) if varies else 1.0
        return Difference(*means, value, value, p, "Fisher", counts, varies)
    with warnings.catch_warnings():  # where one of them does not vary
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        welch = stats.ttest_ind(second, first, equal_var=False)
        low, high = welch.confidence_interval(0.95)
    return Difference(*means, float(low), float(high), float(welch.pvalue), "Welch", counts)


def compare_proportions(before: Share, after: Share) -> Difference:
    """Compare proportions by a chi-squared test, or Fisher's where few are expected; the interval is
    Newcombe's (1998, method 10). Both need a value or more."""
    p, test = _counts_test(np.array([[share.part, share.count - share.part] for share in (before, after)]))
    assert before.interval is not None
    assert after.interval is not None
    first, second = before.part / before.count, after.part / after.count
    (low, high), (lower, upper) = before.interval, after.interval
    value = second - first
    interval = (
        value - math.hypot(second - lower, high - first),
        value + math.hypot(upper - second, first - low),
    )
    varies = 0 < before.part + after.part < before.count + after.count
    return Difference(first, second, *interval, p, test, (before.count, after.count), varies)


def compare_tables(before: Mapping[str, int], after: Mapping[str, int]) -> Table:
    """Compare all categories together by a chi-squared test; rare ones count as one. Both need a value or
    more."""
    names = sorted(before.keys() | after.keys())
    counts = np.array([[sample.get(name, 0) for name in names] for sample in (before, after)])
    totals = counts.sum(1)
    differences = {
        name: compare_proportions(
            *(Share(int(count), int(total)) for count, total in zip(column, totals, strict=True))
        )
        for name, column in zip(names, counts.T, strict=True)
    }
    rare = counts.sum(0) * totals.min() / counts.sum() < RARE
    if rare.sum() > 1:
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(1)])
    p, test = _counts_test(counts)
    order = sorted(names, key=lambda name: (-abs(differences[name].value), name))
    return Table({name: differences[name] for name in order}, p, test)


def _counts_test(counts: NDArray[np.int64]) -> tuple[float, str]:
    """Return the p-value of a table with one row per sample, and the name of the test."""
    counts = counts[:, counts.sum(0) > 0]
    if counts.shape[1] < 2:
        return 1.0, "chi-squared"
    if counts.shape[1] == 2 and stats.contingency.expected_freq(counts).min() < RARE:
        return float(stats.fisher_exact(counts).pvalue), "Fisher"
    return float(stats.chi2_contingency(counts, correction=False).pvalue), "chi-squared"


def heterogeneity(differences: Sequence[Difference]) -> float:
    """Return the p-value of Cochran's test that the differences of several groups are equal; 1 where fewer
    than two vary."""
    pairs = [(difference.value, difference.error**-2) for difference in differences if difference.error > 0]
    if len(pairs) < 2:
        return 1.0
    values, weights = np.array(pairs).T
    mean = float(np.average(values, weights=weights))
    return float(stats.chi2.sf(float(weights @ (values - mean) ** 2), len(pairs) - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values adjusted so that a false alarm among all of them is no likelier than the level that
    they are compared with (Holm 1979)."""
    order = np.argsort(p)
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


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
    * `retrieved`: it is of the checks of passages, and not of answers.
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
"""The measures, in the order in which they are shown."""


SMALLEST_SAMPLE = 20
"""Values of a measure in each window; of fewer, nothing is said."""
NAME = 40
"""Characters of a topic, a generator or a category that are shown."""
ALPHA = 0.05
LEAST = 0.01
WEIGHTS = {"outcome": 0.5, "cause": 0.25, "group": 0.25}
"""The part of the level that each family of tests has: they share it, so that in all of them together a
false alarm is no likelier than the level."""
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
        """The direction of the drift; empty where the measure did not drift."""
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
    """The comparison of two windows at the level `alpha`; a change smaller than `least` is none."""

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
        raise InputError(f"the windows overlap: {first} and {second}", field="reference")
    for name, sample in (("reference", baseline), ("since", window)):
        if len(sample.answers) < SMALLEST_SAMPLE:
            count = len(sample.answers)
            shortage = (
                f"holds {count or 'no'} answer{'' if count == 1 else 's'}, and {SMALLEST_SAMPLE} are needed"
            )
            unread = f" ({sample.unreadable} records of it could not be read)" if sample.unreadable else ""
            advice = "name an earlier beginning, or another log with --audit"
            raise InputError(f"{sample.period} {shortage}{unread}: {advice}", field=name)


_Sample = Sequence[float | bool | str]


def _samples(baseline: Window, window: Window) -> Iterator[tuple[Measure, Group | None, _Sample, _Sample]]:
    """Yield the values of each measure, of all answers and of those of each group."""
    for measure in MEASURES:
        first, second = (
            sample.retrievals if measure.retrieved else sample.answers for sample in (baseline, window)
        )
        yield measure, None, _values(measure, first), _values(measure, second)
    for by in GROUPS:
        before, after = (_grouped(sample.answers, by) for sample in (baseline, window))
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
    """Adjust p-values within each family (Holm) and for its part of the level. A measure that does not vary
    is in no family: its test could not have found anything, whatever is true."""
    adjusted: dict[int, float] = {}
    for family, weight in _weights(changes).items():
        indices = [
            k for k, change in enumerate(changes) if change.family == family and change.difference.varies
        ]
        values = holm([changes[k].difference.p for k in indices])
        adjusted |= {k: min(1.0, p / weight) for k, p in zip(indices, values, strict=True)}
    for k, change in enumerate(changes):
        p = adjusted.get(k, 1.0)
        yield replace(change, adjusted=p, drifted=p <= alpha and change.size >= least)


def _weights(changes: Iterable[Change]) -> dict[str, float]:
    """Weigh the families that are tested; they share the weight of the others."""
    there = {change.family for change in changes if change.difference.varies}
    total = sum(WEIGHTS[name] for name in there)
    return {name: WEIGHTS[name] / total for name in WEIGHTS if name in there}


def measure_words(change: Change) -> str:
    """Name the measure, that of a table with the category that changed most."""
    name = change.measure.name
    return name if change.category is None else f"{name}: {one_line(change.category, NAME)}"


def value_words(measure: Measure, value: float) -> str:
    """Write a mean or a proportion."""
    if measure.kind != "mean":
        return percent(value)
    return number(value, 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0)
