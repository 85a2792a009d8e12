"""The gate before generation: which of the retrieved passages an answer may rest on."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.conflicts import Conflicts, prompt_note
from lrp4rag.guard.checks.gate import RetrievalGate
from lrp4rag.guard.checks.registry import run_checks
from lrp4rag.guard.policy import Policy
from lrp4rag.guard.policy.assess import record_finding
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.models import Decision, Passages, Text, Topic
from lrp4rag.guard.service.problems import Problem


class RetrievalRequest(BaseModel):
    """A question, and the passages that were retrieved for it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "question": "How long is parental leave?",
                    "passages": [
                        {
                            "text": "Leave is 12 weeks.",
                            "title": "Leave Policy",
                            "version": "2.8",
                            "score": 0.8,
                        },
                        {
                            "text": "Leave is 16 weeks.",
                            "title": "Leave Policy",
                            "version": "3.1",
                            "score": 0.9,
                        },
                    ],
                }
            ]
        },
    )

    question: Text
    passages: Passages
    topic: Topic = None


class RetrievalReply(BaseModel):
    """Passages count from 1."""

    decision: Decision
    null: bool = Field(description="Whether nothing is fit to answer from.")
    kept: list[int] = Field(description="The passages to answer from, in the order to use them.")
    prompt_note: str = Field(description="For the prompt: what the kept passages say against each other.")
    findings: list[dict[str, Any]]


async def looked_at(policy: Policy, given: RetrievalRequest) -> tuple[list[int], list[Finding], str]:
    """Indexes of the passages to keep, what was found, and the note for the prompt. Raises a problem (503)
    where there was no time for it."""
    with metrics.timed("checks", "retrieval"):
        return await run_in_threadpool(_looked_at, policy, given)


def _looked_at(policy: Policy, given: RetrievalRequest) -> tuple[list[int], list[Finding], str]:
    gate = policy.made.get("retrieval")
    gate = gate if isinstance(gate, RetrievalGate) else RetrievalGate()
    sources = tuple(row.source for row in given.passages)
    whole = CheckInput(given.question, sources, deadline=time.monotonic() + policy.budget)
    try:
        result = gate.decide(whole)
    except Exception:
        metrics.missed("retrieval", "retrieval")
        raise Problem(503, "Unavailable", "the passages could not be looked at in time") from None
    conflicts = run_checks(
        {"conflicts": policy.made.get("conflicts") or Conflicts()}, whole, budget=policy.budget
    )
    if conflicts.unavailable:
        metrics.missed("retrieval", "conflicts")
        raise Problem(503, "Unavailable", "the passages could not be compared in time")
    # What was dropped says nothing against what is kept.
    told = [one for one in conflicts.every if set(one.passages) <= set(result.kept)]
    return list(result.kept), [*result.findings, *told], prompt_note(told, sources)


def reply(decision: Decision, kept: list[int], findings: list[Finding], note: str) -> RetrievalReply:
    return RetrievalReply(
        decision=decision,
        null=not kept,
        kept=[number + 1 for number in kept],
        prompt_note=note,
        findings=[record_finding(one) for one in findings],
    )
