"""`Record`: a run as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lrp4rag.guard.policy import Action
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.guard.redteam.cases import ALL
from lrp4rag.guard.redteam.targets import Result, Target
from lrp4rag.util.hashes import json_hash

Text = Annotated[str, Field(max_length=20_000)]
"""What a file can hold: of a text with a limit, pydantic refuses half of a character too."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True)


class ShareRow(_Row):
    """How many cases have passed, as a share with its 95 % interval (Wilson)."""

    passed: int
    cases: int
    share: float | None
    low: float | None
    high: float | None

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
    probability: float | None
    faithfulness: float | None
    fact_score: float | None
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
    seconds: float
    kinds: dict[str, KindRow]
    results: list[CaseRow]


def record(results: Sequence[Result], target: Target, seconds: float) -> Record:
    """Collect the results by case and their shares by kind."""
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
