"""Results in a file, which is a baseline for later results, and `compare`: is a detector or a policy worse
than it was, on the same examples, by more than chance?"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.classifiers.card import Card, Interval, package_versions
from lrp4rag.example import Example
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.guard.evaluation.result import MEASURES, Result, groups_of, judged_hash, measured
from lrp4rag.guard.policy import Policy
from lrp4rag.training.metrics import RESAMPLES, Draws, Scores, intervals_of
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.strict_json import finite_or_none, read_record
from lrp4rag.util.types import first_fault, ids_once

FORMAT = 1
EXAMPLES = "examples"
HOW = "make one with: lrp4rag evaluate DATA --out FILE"


class Saved(BaseModel):
    """The part of a file that is read; the rest is for people."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    made_with: dict[Annotated[str, Field(max_length=100)], str | float | None]
    examples: Annotated[tuple[Result, ...], Field(min_length=1), AfterValidator(ids_once)]


def read_saved(path: Path) -> Saved:
    """Read a baseline. Raises `InputError` with the field for an invalid baseline, or another format."""
    description = "a baseline of this command"
    try:
        record = read_record(path, description)
    except OSError as error:
        raise InputError(f"cannot be read: {first_line(error)}; {HOW}", path=path) from error
    if EXAMPLES not in record or "format" not in record:
        raise InputError(f"not {description}; {HOW}", path=path)
    if record["format"] != FORMAT:
        raise InputError(
            f"it has another format than this lrp4rag reads ({FORMAT}); {HOW}", path=path, field="format"
        )
    try:
        return Saved.model_validate(record)
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(message, path=path, field=field) from None


def made_with(
    evaluation: Evaluation, card: Card, name: str, policy: Policy, date: datetime | None = None
) -> dict[str, str | float | None]:
    """Return the conditions that results depend on beside the examples. `name` is the detector's."""
    return {
        **({} if evaluation.comparer is None else {"comparer": str(evaluation.comparer)}),
        "lrp4rag": package_versions()["lrp4rag"],
        "detector": Path(name).name,
        "detector_sha256": card.sha256,
        "threshold": evaluation.threshold,
        "prevalence": evaluation.prevalence,
        "reader": str(card.reader["digest"]),
        "policy": policy.name,
        "policy_hash": policy.hash,
        "date": None if date is None else date.date().isoformat(),
    }


def written(record: Mapping[str, Any]) -> str:
    """Return a record as JSON with a line for each example, so that two files can be compared by line."""
    rest = {name: value for name, value in record.items() if name != EXAMPLES}
    head = json.dumps(finite_or_none(rest), indent=2, allow_nan=False).removesuffix("\n}")
    rows = ",\n".join(
        f"    {json.dumps(finite_or_none(example), allow_nan=False)}" for example in record[EXAMPLES]
    )
    return f'{head},\n  "{EXAMPLES}": [\n{rows}\n  ]\n}}\n'


State = Literal["passes", "not ruled out", "fails", "undefined", "not gated"]
ROUNDING = 1e-9
"""The tolerance of sums of floats: 1.0 - 0.95 is more than 0.05 to them."""


@dataclass(frozen=True, slots=True)
class Change:
    """A measure of the examples in both runs, `before` and `now`, and how much worse it got (`drop`, with the
    95 % interval of the paired bootstrap; below 0 it got better)."""

    before: float | None
    now: float | None
    drop: Interval
    state: State


@dataclass(frozen=True, slots=True)
class Pairs:
    """The `results` now and `before` of the examples in both runs, in one order; and the ids of the examples
    that only one run has, whose texts changed, and whose labels changed."""

    results: tuple[Result, ...]
    before: tuple[Result, ...]
    only_now: tuple[str, ...]
    only_before: tuple[str, ...]
    other_texts: tuple[str, ...]
    relabelled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """The comparison of two runs. `made_with` has the conditions that differ: (before, now)."""

    max_drop: float
    changes: dict[str, Change]
    pairs: Pairs
    made_with: dict[str, tuple[Any, Any]]

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the measures that fail."""
        return self._in("fails")

    @property
    def open(self) -> tuple[str, ...]:
        """Return the measures that do not fail and may yet have dropped by more."""
        return self._in("not ruled out")

    @property
    def sources(self) -> int:
        return len({result.source for result in self.pairs.results})

    @property
    def newly_wrong(self) -> tuple[str, ...]:
        """Return the examples whose verdict was right and is wrong."""
        return self._turned(True, False)

    @property
    def newly_right(self) -> tuple[str, ...]:
        return self._turned(False, True)

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the examples that had a verdict and have none."""
        pairs = zip(self.pairs.before, self.pairs.results, strict=True)
        return tuple(now.id for before, now in pairs if before.flagged is not None and now.flagged is None)

    def _in(self, state: State) -> tuple[str, ...]:
        return tuple(name for name, change in self.changes.items() if change.state == state)

    def _turned(self, was_right: bool, is_right: bool) -> tuple[str, ...]:
        pairs = zip(self.pairs.before, self.pairs.results, strict=True)
        return tuple(now.id for before, now in pairs if (before.right, now.right) == (was_right, is_right))


def compare(
    results: Sequence[Result],
    baseline: Saved,
    made_with: Mapping[str, Any],
    *,
    max_drop: float,
    gated: Collection[str] = (),
    resamples: int = RESAMPLES,
) -> Gate:
    """Compare results with those of a baseline, on the examples that both have with the same id and texts, by
    their labels now; measures of verdicts on those with a verdict in both. `gated` are the measures that can
    fail (default: all but those of which neither more nor less is better).

    Raises `InputError` where no example is in both, where no gated measure is defined on them, and for an
    unknown measure.
    """
    pairs = paired(results, baseline.examples)
    _require_some(pairs.results)
    names = require_gated(gated)
    judged = np.array([result.flagged is not None for result in (*pairs.results, *pairs.before)])
    both = judged[: len(pairs.results)] & judged[len(pairs.results) :]
    draws = Draws.of(groups_of(pairs.results), resamples)
    now, before = (draws.values(measured(side, both)) for side in (pairs.results, pairs.before))
    worse = {
        name: now[name] - before[name] if measure.better == "lower" else before[name] - now[name]
        for name, measure in MEASURES.items()
    }
    drops = intervals_of({name: _defined(drop) for name, drop in worse.items()})
    if draws.counts.shape[1] < 2:  # drawing the same source again tells nothing of other sources
        drops = {name: drop.model_copy(update={"low": None, "high": None}) for name, drop in drops.items()}
    changes = {
        name: Change(
            _finite(before[name][0]),
            _finite(now[name][0]),
            drop,
            state_of(drop, max_drop) if name in names else "not gated",
        )
        for name, drop in drops.items()
    }
    if all(change.state in ("undefined", "not gated") for change in changes.values()):
        raise InputError(f"none of the measures to be compared is defined here: {', '.join(names)}")
    return Gate(max_drop, changes, pairs, differences(baseline.made_with, made_with))


def require_comparable(examples: Iterable[Example], baseline: Saved) -> None:
    """Raise `InputError` where no example is in the baseline, before any is judged; `compare` would only
    raise it afterwards."""
    judged = {(result.id, result.judged) for result in baseline.examples}
    _require_some(any((example.id, judged_hash(example)) in judged for example in examples))


def _require_some(shared: object) -> None:
    if not shared:
        raise InputError(
            "no example is in both: an example is known by its id and its texts; make the baseline of the "
            "same examples"
        )


def require_gated(names: Collection[str]) -> Collection[str]:
    """Return the names, or without names those of all measures that can fail. Raises `InputError` for a name
    of no such measure."""
    gated = [name for name, measure in MEASURES.items() if measure.better != "neither"]
    for name in names:
        if name not in gated:
            raise InputError(f"no measure '{name}' can fail; these can: {', '.join(gated)}")
    return names or gated


def state_of(drop: Interval, max_drop: float) -> State:
    """Return the state of a measure: it fails where it is worse by more than `max_drop`, and its interval
    excludes that it is no worse; it passes where the interval has no larger drop."""
    if drop.value is None:
        return "undefined"
    larger = drop.value > max_drop + ROUNDING
    if larger and drop.low is not None and drop.low > ROUNDING:
        return "fails"
    highest = drop.value if drop.high is None else drop.high
    return "not ruled out" if larger or highest > max_drop + ROUNDING else "passes"


def paired(results: Sequence[Result], before: Sequence[Result]) -> Pairs:
    """Pair the results of the same id and texts; those before get the labels of now."""
    earlier = {result.id: result for result in before}
    ids = {result.id for result in results}
    pairs = [(result, earlier[result.id]) for result in results if result.id in earlier]
    same = [(now, then) for now, then in pairs if now.judged == then.judged]
    return Pairs(
        tuple(now for now, _ in same),
        tuple(then.model_copy(update={"labels": now.labels, "source": now.source}) for now, then in same),
        tuple(result.id for result in results if result.id not in earlier),
        tuple(result.id for result in before if result.id not in ids),
        tuple(now.id for now, then in pairs if now.judged != then.judged),
        tuple(now.id for now, then in same if set(now.labels) != set(then.labels)),
    )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the values that differ, by name: (before, now); None for a missing value."""
    names = dict.fromkeys((*now, *before))
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}


def _defined(drop: Scores) -> Scores:
    """Set the drop to 0 in draws in which a measure is undefined, unless it is undefined on all examples.
    Else the recall of a single hallucinated example would seem certain: each draw that defines it has it."""
    finite = np.isfinite(drop)
    return np.where(finite, drop, 0.0) if finite[0] else drop


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
