"""`Record`: a run as JSON, for machines and for the next run; and what has changed since another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.guard.policy import Action
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.guard.redteam.cases import ALL
from lrp4rag.guard.redteam.results import Result, Tally, tallies, tally
from lrp4rag.guard.redteam.target import Target
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import Count, Probability, first_fault, ids_once

Text = Annotated[str, Field(max_length=20_000)]
"""What a file can hold: of a text with a limit, pydantic refuses half of a character too."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ShareRow(_Row):
    """A share with its 95 % interval (Wilson)."""

    passed: Count
    cases: Count
    share: Probability | None
    low: Probability | None
    high: Probability | None


class KindRow(_Row):
    """The shares of a kind that have passed."""

    every: ShareRow
    harmful: ShareRow
    harmless: ShareRow


class CaseRow(_Row):
    """What was done with a case; `case` is its hash. `action` is null where it was not judged."""

    id: Text
    kind: Text
    case: Text
    expected: list[str]
    passed: bool
    action: Action | None
    reason: Text | None
    rule: Text | None
    probability: Probability | None
    faithfulness: Probability | None
    fact_score: Probability | None
    findings: list[str]
    error: Text | None


class Record(_Row):
    """A run: of which `target` in which `versions`, with which `cases` (their hash), `kinds` with all of them
    under "all", and `results` by case."""

    target: Text
    versions: dict[str, str]
    cases: Text
    seconds: float = Field(ge=0, allow_inf_nan=False)
    kinds: dict[str, KindRow]
    results: Annotated[list[CaseRow], AfterValidator(ids_once)]


@dataclass(frozen=True, slots=True)
class Change:
    """A case of which something changed, and `what`: in words."""

    id: str
    what: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed since another run: cases that fail now and passed then, the other way round, other
    actions beside these, and cases that are not the same or are in one run only."""

    broken: tuple[Change, ...]
    mended: tuple[Change, ...]
    other: tuple[Change, ...]
    cases: tuple[Change, ...]
    versions: tuple[Change, ...]


def record(results: Sequence[Result], target: Target, seconds: float) -> Record:
    every = [*tallies(results), tally(ALL, results)]
    return Record(
        target=target.name,
        versions=dict(target.versions),
        cases=json_hash([one.case.hash for one in results])[:16],
        seconds=round(seconds, 1),
        kinds={one.kind: _kind(one) for one in every},
        results=[_case(one) for one in results],
    )


def read(path: Path) -> Record:
    """The record of another run. Raises `InputError` for anything else."""
    what = "results of 'lrp4rag redteam'"
    try:
        return Record.model_validate(read_record(path, what))
    except FileNotFoundError:
        raise InputError("no such file", path=path) from None
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(f"not {what}: {message}", path=path, field=field) from None


def changes(then: Record, now: Record) -> Changes:
    """Of the cases that are the same in both, and of what the target is made of."""
    before = {one.id: one for one in then.results}
    after = {one.id: one for one in now.results}
    both = [(before[id], one) for id, one in after.items() if id in before]
    same = [(one, other) for one, other in both if one.case == other.case]
    moved = [(one, other) for one, other in same if one.action != other.action]
    return Changes(
        broken=tuple(_change(*two) for two in same if two[0].passed and not two[1].passed),
        mended=tuple(_change(*two) for two in same if two[1].passed and not two[0].passed),
        other=tuple(_change(*two) for two in moved if two[0].passed == two[1].passed),
        cases=(
            *(Change(one.id, "is another case now") for one, other in both if one.case != other.case),
            *(Change(id, "is new") for id in after if id not in before),
            *(Change(id, "was left out") for id in before if id not in after),
        ),
        versions=tuple(_versions(then.versions, now.versions)),
    )


def _change(one: CaseRow, other: CaseRow) -> Change:
    return Change(other.id, f"{one.action or 'not judged'} then, {other.action or 'not judged'} now")


def _versions(then: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
    names = dict.fromkeys([*then, *now])
    return [
        Change(name, f"{then.get(name, 'unknown')} then, {now.get(name, 'unknown')} now")
        for name in names
        if then.get(name) != now.get(name)
    ]


def _kind(one: Tally) -> KindRow:
    return KindRow(every=_share(one.every), harmful=_share(one.harmful), harmless=_share(one.harmless))


def _share(one: Share) -> ShareRow:
    low, high = one.interval or (None, None)
    return ShareRow(passed=one.part, cases=one.count, share=one.value, low=low, high=high)


def _case(one: Result) -> CaseRow:
    found: dict[str, Any] = {
        name: None if one.answered is None else getattr(one.answered, name)
        for name in ("action", "reason", "rule", "probability", "faithfulness", "fact_score")
    }
    return CaseRow(
        id=one.case.id,
        kind=one.case.kind,
        case=one.case.hash,
        expected=list(one.case.expected),
        passed=one.passed,
        findings=[] if one.answered is None else [words[:1000] for words in one.answered.findings],
        error=one.error,
        **found,
    )
