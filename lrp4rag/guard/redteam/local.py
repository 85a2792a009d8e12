"""`LocalTarget`: a detector and a policy in this process, as the server has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from lrp4rag.guard.policy import Policy, judge
from lrp4rag.guard.policy.assess import UNREMARKABLE
from lrp4rag.guard.redteam.cases import Case
from lrp4rag.guard.redteam.target import Answered, NotJudged
from lrp4rag.judge import Detector
from lrp4rag.util.errors import LRP4RAGError


class LocalTarget:
    """Judges by a detector, which is held open for all cases, and decides by a policy."""

    name = "local"

    def __init__(self, detector: Detector, policy: Policy) -> None:
        self._detector, self._policy = detector, policy

    @property
    def versions(self) -> Mapping[str, str]:
        return {**self._detector.versions, "policy": self._policy.hash}

    def judge(self, case: Case) -> Answered:
        example = case.example()
        try:
            verdict, found = judge(self._detector, self._policy, example)
        # RuntimeError: torch, for example when memory runs out on one long answer.
        except (LRP4RAGError, RuntimeError) as error:
            raise NotJudged(error) from error
        return Answered(
            found.decided.action,
            found.decided.reason,
            found.decided.rule,
            verdict.probability,
            found.measures.faithfulness,
            found.measures.facts,
            tuple(one.words for one in found.checked.every if one.kind not in UNREMARKABLE),
            found.shown(case.response),
        )

    def __enter__(self) -> Self:
        self._detector.__enter__()
        return self

    def __exit__(self, *given: object) -> None:
        self._detector.__exit__(*given)
