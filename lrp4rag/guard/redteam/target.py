"""`Target`: a guardrail that is asked, and what it `Answered`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lrp4rag.guard.policy import Action
from lrp4rag.guard.redteam.cases import Case
from lrp4rag.util.errors import LRP4RAGError


class NotJudged(LRP4RAGError):  # noqa: N818 - of one case: the others go on
    """A target could not judge a case; the message says why."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a guardrail does with the answer of a case: the action with its reason and the rule that decided,
    its measures (0 to 1, None where there are none), what checks found, in words, and what the reader of the
    answer gets."""

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
        """Of package, detector, reader and policy, as far as they are known, once something was judged."""
        ...

    def judge(self, case: Case) -> Answered:
        """Raises `NotJudged` where it cannot judge this case, `InputError` where it can judge none."""
        ...
