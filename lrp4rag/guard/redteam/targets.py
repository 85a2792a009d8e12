"""`Target`: a guardrail that judges cases; `LocalTarget`: a detector and a policy in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from lrp4rag.guard.policy import Action, Policy, judge
from lrp4rag.guard.redteam.cases import Case
from lrp4rag.judge import Detector
from lrp4rag.util.errors import EXAMPLE_ERRORS, LRP4RAGError


class NotJudged(LRP4RAGError):  # noqa: N818 - of a case: the run goes on
    """A target could not judge a case; the message says why."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A guardrail's decision on the answer of a case: the action with its reason and rule, its measures (0 to
    1, None where missing), findings in words, and the text that the reader of the answer gets."""

    action: Action
    reason: str
    rule: str | None
    probability: float | None
    faithfulness: float | None
    fact_score: float | None
    findings: tuple[str, ...]
    shown: str


class Target(Protocol):
    """A guardrail."""

    @property
    def name(self) -> str: ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the known versions of package, detector, reader and policy, once a case was judged."""
        ...

    def judge(self, case: Case) -> Answered:
        """Judge a case. Raises `NotJudged` where it cannot judge this case, `InputError` where it can judge
        none."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """A case with the target's decision; without a decision, `error` says why."""

    case: Case
    answered: Answered | None
    error: str | None = None

    @property
    def passed(self) -> bool:
        """Say whether the action is expected, which it never is without a decision. A contradicted answer
        that is served with the passage's words also counts as marked."""
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


def run(cases: Iterable[Case], target: Target) -> Iterator[Result]:
    """Judge each case. Raises `InputError` where the target can judge none."""
    for case in cases:
        try:
            yield Result(case, target.judge(case))
        except NotJudged as error:
            yield Result(case, None, str(error))


class LocalTarget:
    """Judges by a detector, which its caller holds open for all cases, and decides by a policy."""

    name = "local"

    def __init__(self, detector: Detector, policy: Policy) -> None:
        self._detector, self._policy = detector, policy

    @property
    def versions(self) -> Mapping[str, str]:
        return {**self._detector.versions, "policy": self._policy.hash}

    def judge(self, case: Case) -> Answered:
        try:
            verdict, assessment = judge(self._detector, self._policy, case.example())
        except EXAMPLE_ERRORS as error:
            raise NotJudged(error) from error
        return Answered(
            assessment.decided.action,
            assessment.decided.reason,
            assessment.decided.rule,
            verdict.probability,
            assessment.measures.faithfulness,
            assessment.measures.facts,
            tuple(words for _, words in assessment.words().findings),
            assessment.shown(case.response),
        )
