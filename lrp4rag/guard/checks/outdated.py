"""`Outdated`: sentences of an answer that rest on passages which do not hold at the time asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.guard.checks.gate import RetrievalGate
from lrp4rag.guard.checks.resting import resting_on

NO_LONGER = ("expired", "not yet effective", "superseded")


@dataclass(frozen=True, slots=True)
class Outdated:
    """One finding of kind "outdated" for each sentence that has the values, or nearly the words, which only a
    passage has that is expired, superseded by another, or not yet effective.

    The retrieval gate decides which passages hold: where a question asks for another time, it keeps those of
    then. `time_zone` is that of dates that have none, by its IANA name.
    """

    name: ClassVar[str] = "outdated"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    time_zone: str | None = None

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings in the order of the response. Raises `OverBudget`."""
        gate = RetrievalGate(minimum=0, time_zone=self.time_zone)
        outdated = {finding.passages[0]: finding for finding in gate(inputs) if finding.kind in NO_LONGER}
        if not outdated or inputs.response is None:
            return []
        findings = []
        spans = {number: (0, len(inputs.sources[number].text)) for number in outdated}
        for start, end, passage in resting_on(inputs, spans):
            reason = outdated[passage]
            findings.append(
                Finding(
                    self.name,
                    "outdated",
                    reason.words,
                    start=start,
                    end=end,
                    passages=reason.passages,
                    details={"because": reason.kind},
                )
            )
        return findings
