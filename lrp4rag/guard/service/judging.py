"""Routes that judge what they are given: responses, batches, retrieved passages, and LiteLLM's guardrail."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.conflicts import Conflicts, prompt_note
from lrp4rag.guard.checks.gate import RetrievalGate
from lrp4rag.guard.checks.registry import run_checks
from lrp4rag.guard.policy import WITHHELD, Assessment, Policy, judge
from lrp4rag.guard.policy.assessment import record_finding
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.access import Client
from lrp4rag.guard.service.models import (
    BatchRequest,
    JudgeReply,
    JudgeRequest,
    Name,
    Passages,
    RetrievalReply,
    RetrievalRequest,
    Text,
    Topic,
)
from lrp4rag.guard.service.problems import Problem, as_problem
from lrp4rag.guard.service.recording import counted, evidence_of, labels, results_of, texts_of
from lrp4rag.guard.service.requests import StrictRoute, unless_gone
from lrp4rag.guard.service.state import Server, State
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.util.strict_json import parse

ROUTES = APIRouter(route_class=StrictRoute)


async def _judge(server: State, body: JudgeRequest, by: str, *, admitted: bool = False) -> JudgeReply:
    """Judge a response, decide, and record it."""
    started, example, policy = time.monotonic(), body.example(), server.settings.policy

    def job(detector: Detector) -> tuple[ExplainedVerdict, Assessment]:
        begun = time.monotonic()
        verdict, assessment = judge(detector, policy, example)
        metrics.took("verdict", "response", time.monotonic() - begun - assessment.checked.took)
        return verdict, assessment

    try:
        with metrics.missing("response"):
            verdict, assessment = await server.worker.run(job, server.settings.seconds, admitted=admitted)
    except TimeoutError:
        raise Problem(503, "Unavailable", "the response was not judged in time") from None
    results = results_of(assessment) | {"probability": verdict.probability}
    decision = await server.recorder.decide(
        "response",
        assessment.decided.action,
        assessment.decided.reason,
        by=by,
        rule=assessment.decided.rule,
        **results,
        threshold=verdict.threshold,
        abstained=verdict.abstained,
        **_labels(server, body, sentences=len(verdict.sentences)),
        evidence=evidence_of(verdict.sentences, verdict.spans),
        texts=texts_of(example.question, example.passages, body.response),
        sources=example.sources,
    )
    metrics.took("checks", "response", assessment.checked.took)
    metrics.took("whole", "response", time.monotonic() - started)
    return JudgeReply(
        decision=decision,
        shown=assessment.shown(body.response),
        faithfulness=results["faithfulness"],
        fact_score=results["fact_score"],
        findings=[record_finding(finding) for finding in assessment.checked.every],
        closest=[number + 1 for number in assessment.closest],
        unavailable=results["unavailable"],
        verdict=verdict.to_dict(),
    )


def _labels(server: State, body: JudgeRequest, *, sentences: int | None = None) -> dict[str, Any]:
    sources = [row.source for row in body.passages]
    names = {"topic": body.topic, "generator": body.generator}
    return labels(server.settings, sources, body.response, sentences=sentences, **names)


@ROUTES.post("/v1/judge", name="judge", tags=["judge"])
async def judge_response(body: JudgeRequest, request: Request, server: Server, client: Client) -> JudgeReply:
    """Judge one response by its question and passages."""
    return await unless_gone(request, _judge(server, body, client))


@ROUTES.post("/v1/judge/batch", tags=["judge"])
async def batch(body: BatchRequest, request: Request, server: Server, client: Client) -> dict[str, list[Any]]:
    """Judge several; replies keep their order, and one that fails is a problem in its place."""
    server.worker.admit(server.settings.seconds)
    replies: list[Any] = []
    for judge_request in body.requests:
        try:
            reply = await unless_gone(request, _judge(server, judge_request, client, admitted=True))
            replies.append(reply.model_dump(mode="json"))
        except Exception as error:
            if await request.is_disconnected():
                raise
            replies.append({"problem": as_problem(error).document()})
    return {"replies": replies}


@ROUTES.post("/v1/retrieval/check", tags=["judge"])
async def retrieval_check(body: RetrievalRequest, server: Server, client: Client) -> RetrievalReply:
    """Before an answer is written: which passages it may rest on, and what is against them."""
    sources = [row.source for row in body.passages]
    with metrics.timed("checks", "retrieval"):
        kept, findings, note = await run_in_threadpool(_gated, server.settings.policy, body)
    decision = await server.recorder.decide(
        "retrieval",
        "serve" if kept else "withhold",
        "grounded" if kept else "knowledge gap",
        by=client,
        kept=[number + 1 for number in kept],
        findings=counted(findings),
        **labels(server.settings, sources, topic=body.topic),
        texts=texts_of(body.question, [source.read for source in sources]),
    )
    return RetrievalReply(
        decision=decision,
        null=not kept,
        kept=[number + 1 for number in kept],
        prompt_note=note,
        findings=[record_finding(finding) for finding in findings],
    )


def _gated(policy: Policy, body: RetrievalRequest) -> tuple[list[int], list[Finding], str]:
    """Return the indexes of the passages to keep, findings, and the note for the prompt. Raises a problem
    (503) where the time was too short."""
    gate = policy.enabled_checks.get("retrieval")
    gate = gate if isinstance(gate, RetrievalGate) else RetrievalGate()
    sources = tuple(row.source for row in body.passages)
    check_input = CheckInput(body.question, sources, deadline=time.monotonic() + policy.budget)
    try:
        result = gate.decide(check_input)
    except Exception:
        metrics.missed("retrieval", "retrieval")
        raise Problem(503, "Unavailable", "the passages could not be looked at in time") from None
    check = {"conflicts": policy.enabled_checks.get("conflicts") or Conflicts()}
    conflicts = run_checks(check, check_input, budget=policy.budget)
    if conflicts.unavailable:
        metrics.missed("retrieval", "conflicts")
        raise Problem(503, "Unavailable", "the passages could not be compared in time")
    # What was dropped says nothing against what is kept.
    findings = [finding for finding in conflicts.every if set(finding.passages) <= set(result.kept)]
    return list(result.kept), [*result.findings, *findings], prompt_note(findings, sources)


HEADERS = {"x-lrp4rag-passages": "passages", "x-lrp4rag-question": "question"}
"""Headers and the parameters that they have, in JSON, which can be written in ASCII."""
UNJUDGED = "calls of tools and images are no text that can be judged"


class GuardrailRequest(BaseModel):
    """What LiteLLM's generic guardrail sends; fields that are not read are let pass."""

    model_config = ConfigDict(extra="allow")

    texts: Annotated[list[Text], Field(max_length=64)] | None = None
    tool_calls: list[Any] | None = None
    images: list[Any] | None = None
    input_type: Literal["request", "response"]
    request_headers: dict[str, str] | None = None
    additional_provider_specific_params: dict[str, Any] | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the guardrail's parameters, with those of the request in their place: LiteLLM hands on the
        headers that `extra_headers` names, and no other part of a request."""
        parameters = dict(self.additional_provider_specific_params or {})
        for name, value in (self.request_headers or {}).items():
            if name.lower() in HEADERS:
                parameters[HEADERS[name.lower()]] = parse(value)
        return parameters


class GuardrailReply(BaseModel):
    """BLOCKED and why, NONE, or the texts to use in the place of those given."""

    action: Literal["BLOCKED", "NONE", "GUARDRAIL_INTERVENED"]
    blocked_reason: str | None = None
    texts: list[str] | None = None


class _Parameters(BaseModel):
    """The guardrail's parameters that are of a request."""

    question: str = "What do the passages say?"
    passages: Passages
    topic: Topic = None
    generator: Name | None = None


@ROUTES.post("/beta/litellm_basic_guardrail_api", tags=["guardrail"], response_model_exclude_none=True)
async def guardrail(
    body: GuardrailRequest, request: Request, server: Server, client: Client
) -> GuardrailReply:
    """LiteLLM's generic guardrail: texts of responses are judged, calls of tools and images are blocked,
    requests pass. The passages and the question are
    among the guardrail's parameters."""
    if body.input_type == "response" and (body.tool_calls or body.images):
        return GuardrailReply(action="BLOCKED", blocked_reason=UNJUDGED)
    if body.input_type == "request" or not body.texts:
        return GuardrailReply(action="NONE")
    policy = server.settings.policy
    try:
        parameters = _Parameters.model_validate(body.parameters())
    except (ValueError, RecursionError):
        return GuardrailReply(action="BLOCKED", blocked_reason="no passages came with the response")
    texts = []
    for text in body.texts:
        judge_request = JudgeRequest(response=text, **dict(parameters))
        try:
            reply = await unless_gone(request, _judge(server, judge_request, client))
            action, shown = reply.decision.action, reply.shown
        except Exception:  # whatever fails is no clean verdict
            action, shown = policy.unavailable, f"{text}{policy.texts.mark}"
            await server.recorder.decide(
                "response", action, "unavailable", by=client, **_labels(server, judge_request)
            )
            if action != "mark":
                shown = policy.texts.unavailable_notice
        if action in WITHHELD:
            return GuardrailReply(action="BLOCKED", blocked_reason=shown)
        texts.append(shown)
    if texts == body.texts:
        return GuardrailReply(action="NONE")
    return GuardrailReply(action="GUARDRAIL_INTERVENED", texts=texts)
