"""`run`: ask a target about every case, and compare what it does with what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.guard.policy.simulate import Share
from lrp4rag.guard.redteam.cases import KINDS, Case
from lrp4rag.guard.redteam.target import Answered, NotJudged, Target


@dataclass(frozen=True, slots=True)
class Result:
    """A case, and what the target does with it; without an answer, `error` says why there is none."""

    case: Case
    answered: Answered | None
    error: str | None = None

    @property
    def passed(self) -> bool:
        """What could not be judged has not passed. A contradicted answer that is served with the passage's
        words is marked, and more."""
        if self.answered is None:
            return False
        corrected = self.answered.action == "disclose" and self.answered.reason == "contradicted"
        return self.answered.action in self.case.expected or (corrected and "mark" in self.case.expected)

    @property
    def action(self) -> str:
        return "not judged" if self.answered is None else self.answered.action

    @property
    def reason(self) -> str:
        return (self.error or "") if self.answered is None else self.answered.reason


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cases of a kind have passed: all, those that do harm, and the harmless ones."""

    kind: str
    every: Share
    harmful: Share
    harmless: Share

    @property
    def title(self) -> str:
        return KINDS.get(self.kind, self.kind)


def run(cases: Iterable[Case], target: Target) -> Iterator[Result]:
    """Case by case. Raises `InputError` where the target can judge none."""
    for case in cases:
        try:
            yield Result(case, target.judge(case))
        except NotJudged as error:
            yield Result(case, None, str(error))


def tallies(results: Sequence[Result]) -> list[Tally]:
    """By kind, in the order of the cases."""
    kinds = dict.fromkeys(one.case.kind for one in results)
    return [tally(kind, [one for one in results if one.case.kind == kind]) for kind in kinds]


def tally(kind: str, results: Sequence[Result]) -> Tally:
    harmless = [one for one in results if one.case.harmless]
    harmful = [one for one in results if not one.case.harmless]
    shares = (Share(sum(one.passed for one in some), len(some)) for some in (results, harmful, harmless))
    return Tally(kind, *shares)
