"""`Record`: a run as JSON, for machines and for the next run; and what has changed since another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.guard.policy import Action
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.guard.redteam.cases import ALL
from lrp4rag.guard.redteam.targets import Result, Target
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import Count, Probability, first_fault, ids_once

Text = Annotated[str, Field(max_length=20_000)]
"""What a file can hold: of a text with a limit, pydantic refuses half of a character too."""
WHAT = "results of 'lrp4rag redteam'"


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ShareRow(_Row):
    """How many cases have passed, as a share with its 95 % interval (Wilson)."""

    passed: Count
    cases: Count
    share: Probability | None
    low: Probability | None
    high: Probability | None

    @classmethod
    def of(cls, results: Sequence[Result]) -> ShareRow:
        share = Share(sum(one.passed for one in results), len(results))
        low, high = share.interval or (None, None)
        return cls(passed=share.part, cases=share.count, share=share.value, low=low, high=high)


class KindRow(_Row):
    """The shares of a kind."""

    every: ShareRow
    harmful: ShareRow
    harmless: ShareRow

    @classmethod
    def of(cls, results: Sequence[Result]) -> KindRow:
        harmful, harmless = ([one for one in results if one.case.harmless is side] for side in (False, True))
        return cls(every=ShareRow.of(results), harmful=ShareRow.of(harmful), harmless=ShareRow.of(harmless))


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

    @classmethod
    def of(cls, result: Result) -> CaseRow:
        names = ("action", "reason", "rule", "probability", "faithfulness", "fact_score")
        measured: dict[str, Any] = {name: getattr(result.answered, name, None) for name in names}
        return cls(
            id=result.case.id,
            kind=result.case.kind,
            case=result.case.hash,
            expected=list(result.case.expected),
            passed=result.passed,
            findings=[words[:1000] for words in result.answered.findings] if result.answered else [],
            error=result.error,
            **measured,
        )


class Record(_Row):
    """A run: of which `target` in which `versions`, with which `cases` (their hash), `kinds` with all of them
    under "all", and `results` by case."""

    target: Text
    versions: dict[str, str]
    cases: Text
    seconds: float = Field(ge=0, allow_inf_nan=False)
    kinds: dict[str, KindRow]
    results: Annotated[list[CaseRow], AfterValidator(ids_once)]


def record(results: Sequence[Result], target: Target, seconds: float) -> Record:
    kinds = dict.fromkeys(one.case.kind for one in results)
    return Record(
        target=target.name,
        versions=dict(target.versions),
        cases=json_hash([one.case.hash for one in results])[:16],
        seconds=round(seconds, 1),
        kinds={kind: KindRow.of([one for one in results if one.case.kind == kind]) for kind in kinds}
        | {ALL: KindRow.of(results)},
        results=[CaseRow.of(one) for one in results],
    )


def read(path: Path) -> Record:
    """The record of another run. Raises `InputError` for anything else."""
    try:
        return Record.model_validate(read_record(path, WHAT))
    except FileNotFoundError:
        raise InputError("no such file", path=path) from None
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(f"not {WHAT}: {message}", path=path, field=field) from None


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


def changes(then: Record, now: Record) -> Changes:
    """Compare the cases that are the same in both runs, and what the targets are made of."""
    before, after = ({one.id: one for one in run.results} for run in (then, now))
    both = [(before[id], one) for id, one in after.items() if id in before]
    same = [(one, other) for one, other in both if one.case == other.case]

    def moved(some: Sequence[tuple[CaseRow, CaseRow]]) -> tuple[Change, ...]:
        return tuple(
            Change(one.id, f"{one.action or 'not judged'} then, {other.action or 'not judged'} now")
            for one, other in some
        )

    return Changes(
        broken=moved([two for two in same if two[0].passed and not two[1].passed]),
        mended=moved([two for two in same if two[1].passed and not two[0].passed]),
        other=moved(
            [two for two in same if two[0].action != two[1].action and two[0].passed == two[1].passed]
        ),
        cases=(
            *(Change(one.id, "is another case now") for one, other in both if one.case != other.case),
            *(Change(id, "is new") for id in after if id not in before),
            *(Change(id, "was left out") for id in before if id not in after),
        ),
        versions=tuple(
            Change(
                name, f"{then.versions.get(name, 'unknown')} then, {now.versions.get(name, 'unknown')} now"
            )
            for name in dict.fromkeys([*then.versions, *now.versions])
            if then.versions.get(name) != now.versions.get(name)
        ),
    )
