"""The server's routes: each parses, asks the owner of the reader, records what is decided, and replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from lrp4rag import __version__
from lrp4rag.guard.audit import Entry
from lrp4rag.guard.policy import WITHHELD, Assessment, judge
from lrp4rag.guard.policy.assess import record_finding
from lrp4rag.guard.service import chat, metrics, page, problems, retrieval
from lrp4rag.guard.service.answers import JudgedAnswer, RecordedPart
from lrp4rag.guard.service.bodies import StrictRoute, json_of
from lrp4rag.guard.service.door import CLIENT, Known, Limited
from lrp4rag.guard.service.labels import labels
from lrp4rag.guard.service.models import BatchRequest, JudgeReply, JudgeRequest, Name, Passages, Text, Topic
from lrp4rag.guard.service.problems import Problem, as_problem
from lrp4rag.guard.service.recording import counted, evidence_of, results_of, texts_of
from lrp4rag.guard.service.reviews import KINDS, FeedbackRequest, ReviewRequest, corrects
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.state import State, running
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.util.strict_json import parse
from lrp4rag.util.text import clipped

LOOKS_EVERY = 0.05
"""Seconds between looks at whether a client is still there."""
MOST_WAITING = 100
"""Answers that wait for a reviewer are told at a time."""
MOST_TOLD = 1000
"""Decisions are told at a time."""
LONGEST_QUESTION = 300
"""Characters that are told of a question beside its decision."""
T = TypeVar("T")


def create_app(settings: Settings, detector: Detector | None = None) -> FastAPI:
    """The ASGI application; the reader is loaded when it starts, unless a `detector` is given."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, detector) as state:
            app.state.server = state
            yield

    app = FastAPI(
        title="lrp4rag",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        description="Judges answers of retrieval-augmented generation, and lets out judged text only.",
    )
    app.router.route_class = StrictRoute
    app.add_middleware(Known)
    app.add_middleware(Limited, largest=settings.largest_request)
    problems.register(app)
    page.add(app, settings)
    _add_judging(app)
    _add_chat(app)
    _add_reviews(app)
    _add_guardrail(app)
    _add_watching(app)
    return app


def _state(request: Request) -> State:
    found: State = request.app.state.server
    return found


def _client(request: Request, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]) -> str:
    """The name of the client, as `Known` found it."""
    return str(request.scope[CLIENT])


Server = Annotated[State, Depends(_state)]
Client = Annotated[str, Depends(_client)]


def told(entry: Entry) -> dict[str, Any]:
    """A decision in a list of many."""
    record = {name: value for name, value in entry.record.items() if name not in ("evidence", "texts")}
    return {"sequence": entry.sequence, "time": entry.time, **record}


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work returns; it is cancelled, and a problem raised, where the client goes before."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOKS_EVERY))[0]:
            if await request.is_disconnected():
                raise Problem(499, "Client closed request")
        return task.result()
    finally:
        task.cancel()


async def _judge(server: State, given: JudgeRequest, by: str, *, admitted: bool = False) -> JudgeReply:
    """Judge a response, decide, and record it."""
    started, example, policy = time.monotonic(), given.example(), server.settings.policy

    def job(detector: Detector) -> tuple[ExplainedVerdict, Assessment]:
        begun = time.monotonic()
        verdict, found = judge(detector, policy, example)
        metrics.took("verdict", "response", time.monotonic() - begun - found.checked.took)
        return verdict, found

    try:
        with metrics.missing("response"):
            verdict, found = await server.owner.run(job, server.settings.seconds, admitted=admitted)
    except TimeoutError:
        raise Problem(503, "Unavailable", "the response was not judged in time") from None
    measures, checked = found.measures, found.checked
    decision = await server.recorder.decide(
        "response",
        found.decided.action,
        found.decided.reason,
        by=by,
        rule=found.decided.rule,
        **results_of(found) | {"probability": verdict.probability},
        threshold=verdict.threshold,
        abstained=verdict.abstained,
        **_labels(server, given, sentences=len(verdict.sentences)),
        evidence=evidence_of(verdict.sentences, verdict.spans),
        texts=texts_of(example, given.response),
    )
    metrics.took("checks", "response", checked.took)
    metrics.took("whole", "response", time.monotonic() - started)
    return JudgeReply(
        decision=decision,
        shown=found.shown(given.response),
        faithfulness=measures.faithfulness,
        fact_score=measures.facts,
        findings=[record_finding(one) for one in checked.every],
        closest=[number + 1 for number in found.closest],
        unavailable=dict(checked.unavailable),
        verdict=verdict.to_dict(),
    )


def _labels(server: State, given: JudgeRequest, *, sentences: int | None = None) -> dict[str, Any]:
    return labels(
        server.settings,
        [row.source for row in given.passages],
        given.response,
        sentences=sentences,
        topic=given.topic,
        generator=given.generator,
    )


def _add_judging(app: FastAPI) -> None:
    @app.post("/v1/judge", tags=["judge"])
    async def judge(given: JudgeRequest, request: Request, server: Server, client: Client) -> JudgeReply:
        """Judge one response by its question and passages."""
        return await unless_gone(request, _judge(server, given, client))

    @app.post("/v1/judge/batch", tags=["judge"])
    async def batch(
        given: BatchRequest, request: Request, server: Server, client: Client
    ) -> dict[str, list[Any]]:
        """Judge several; replies keep their order, and one that fails is a problem in its place."""
        server.owner.admit(server.settings.seconds)
        found: list[Any] = []
        for one in given.requests:
            try:
                reply = await unless_gone(request, _judge(server, one, client, admitted=True))
                found.append(reply.model_dump(mode="json"))
            except Exception as error:
                if await request.is_disconnected():
                    raise
                found.append({"problem": as_problem(error).document()})
        return {"replies": found}

    @app.post("/v1/retrieval/check", tags=["judge"])
    async def retrieval_check(
        given: retrieval.RetrievalRequest, server: Server, client: Client
    ) -> retrieval.RetrievalReply:
        """Before an answer is written: which passages it may rest on, and what is against them."""
        sources = [row.source for row in given.passages]
        kept, findings, note = await retrieval.looked_at(server.settings.policy, given)
        decision = await server.recorder.decide(
            "retrieval",
            "serve" if kept else "withhold",
            "grounded" if kept else "knowledge gap",
            by=client,
            kept=[number + 1 for number in kept],
            findings=counted(findings),
            **labels(server.settings, sources, topic=given.topic),
            texts={"question": given.question}
            | {f"passage {k}": source.read for k, source in enumerate(sources, start=1)},
        )
        return retrieval.reply(decision, kept, findings, note)

    @app.get("/v1/decisions", tags=["judge"])
    async def decisions(
        server: Server,
        client: Client,
        limit: Annotated[int, Query(ge=1, le=MOST_TOLD)] = 100,
        before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
        questions: bool = False,
    ) -> dict[str, list[Any]]:
        """The last decisions on answers, the newest first; `before` is the sequence number of the last that
        is known. Without texts; with `questions`, each has its question, shortened, where that is kept."""
        entries = await server.recorder.latest(before=before, limit=limit)
        asked = await server.recorder.questions(entries) if questions else {}
        short = {id: {"question": clipped(text, LONGEST_QUESTION)} for id, text in asked.items()}
        return {"decisions": [told(entry) | short.get(entry.id, {}) for entry in entries]}

    @app.get("/v1/decisions/{id}", tags=["judge"])
    async def decision(id: str, server: Server, client: Client) -> dict[str, Any]:
        """The record of a decision, as it stands in the audit log."""
        entry = await server.recorder.find(id)
        if entry is None:
            raise Problem(404, "Not found", "there is no decision with this id")
        return {
            "sequence": entry.sequence,
            "time": entry.time,
            "previous": entry.previous,
            "hash": entry.hash,
            "record": entry.record,
        }


def _add_reviews(app: FastAPI) -> None:
    @app.get("/v1/reviews", tags=["review"])
    async def reviews(server: Server, client: Client) -> dict[str, list[Any]]:
        """Escalated answers that wait for a reviewer, the oldest first, with their texts where these are
        kept."""
        waiting = list((await server.recorder.waiting()).items())[:MOST_WAITING]
        return {"reviews": [{**record, "written": await server.recorder.texts(id)} for id, record in waiting]}

    @app.post("/v1/reviews", tags=["review"])
    async def review(given: ReviewRequest, server: Server, client: Client) -> dict[str, str]:
        """A named reviewer's decision on an answer."""
        allowed = server.settings.reviewers
        if allowed and client not in allowed:
            raise Problem(403, "Forbidden", "this token may not review")
        return await _said(server, "review", given, client)

    @app.post("/v1/feedback", tags=["review"])
    async def feedback(given: FeedbackRequest, server: Server, client: Client) -> dict[str, str]:
        """What a user says of an answer."""
        return await _said(server, "feedback", given, client)


async def _said(
    server: State, kind: Literal["review", "feedback"], given: ReviewRequest | FeedbackRequest, client: str
) -> dict[str, str]:
    entry = await server.recorder.find(given.decision)
    if entry is None or entry.kind not in KINDS:
        raise Problem(404, "Not found", "there is no answer with this id", field="decision")
    if isinstance(given, ReviewRequest):
        given.require_within(entry.record.get("characters"))
    told = given.model_dump(mode="json", exclude={"decision", "comment"})
    texts = {} if given.comment is None else {"comment": given.comment}
    id = await server.recorder.note(kind, by=client, of=given.decision, texts=texts, **told)
    metrics.said(kind, given.said, corrects(given.said, entry.record))
    return {"id": id}


def _add_chat(app: FastAPI) -> None:
    @app.post("/v1/chat/completions", tags=["chat"], response_model=None, openapi_extra=chat.REQUEST)
    async def completions(
        request: Request, server: Server, client: Client
    ) -> dict[str, Any] | StreamingResponse:
        """OpenAI's chat completions, through the upstream: each sentence is held until it is judged.

        Passages come in the field `lrp4rag`: `{"passages": ["…"]}`, as `documents`, in a message where the
        server's template says, or as results of tools. Decisions are under `lrp4rag` in the reply; in a
        stream, in each chunk.
        """
        if server.upstream is None:
            raise Problem(501, "No upstream", "start the server with an upstream, or with --demo")
        body, extension, example = chat.parse(await json_of(request), server.settings.written)
        answer = JudgedAnswer(
            server.owner,
            server.recorder,
            server.access,
            server.settings,
            example,
            extension.language,
            client,
            extension.topic,
        )
        model = str(server.settings.model or body.get("model") or "lrp4rag")
        parts = answer.parts(server.upstream.answer(body, example))
        if not body.get("stream"):
            return chat.completion(answer, await unless_gone(request, _all(parts)), model)
        # The first part is awaited: until then, an error has a status of its own.
        first = await unless_gone(request, _first(parts))

        async def all_parts() -> AsyncGenerator[RecordedPart]:
            async with aclosing(parts):
                if first is not None:
                    yield first
                async for part in parts:
                    yield part

        options = body.get("stream_options") or {}
        usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return StreamingResponse(
            chat.events(answer, all_parts(), model, usage=usage), media_type="text/event-stream"
        )

    @app.get("/v1/models", tags=["chat"])
    async def models(server: Server, client: Client) -> dict[str, Any]:
        """The upstream's models."""
        names = [] if server.upstream is None else await server.upstream.models()
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


async def _all(parts: AsyncGenerator[RecordedPart]) -> list[RecordedPart]:
    async with aclosing(parts):
        return [part async for part in parts]


async def _first(parts: AsyncGenerator[RecordedPart]) -> RecordedPart | None:
    try:
        return await anext(parts, None)
    except BaseException:
        await parts.aclose()
        raise


HEADERS = {"x-lrp4rag-passages": "passages", "x-lrp4rag-question": "question"}
"""In JSON, which can be written in ASCII."""
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
        """Of the guardrail, under those of the request: LiteLLM hands on the headers that `extra_headers`
        names, and no other part of a request."""
        found = dict(self.additional_provider_specific_params or {})
        for name, value in (self.request_headers or {}).items():
            if name.lower() in HEADERS:
                found[HEADERS[name.lower()]] = parse(value)
        return found


class GuardrailReply(BaseModel):
    """BLOCKED and why, NONE, or the texts to use in the place of those given."""

    action: Literal["BLOCKED", "NONE", "GUARDRAIL_INTERVENED"]
    blocked_reason: str | None = None
    texts: list[str] | None = None


class _Given(BaseModel):
    """Of the guardrail's own parameters, those of a request."""

    question: str = "What do the passages say?"
    passages: Passages
    topic: Topic = None
    generator: Name | None = None


def _add_guardrail(app: FastAPI) -> None:
    @app.post("/beta/litellm_basic_guardrail_api", tags=["guardrail"], response_model_exclude_none=True)
    async def guardrail(
        given: GuardrailRequest, request: Request, server: Server, client: Client
    ) -> GuardrailReply:
        """LiteLLM's generic guardrail: texts of responses are judged, calls of tools and images are blocked,
        requests pass. The passages and the question are
        among the guardrail's parameters."""
        if given.input_type == "response" and (given.tool_calls or given.images):
            return GuardrailReply(action="BLOCKED", blocked_reason=UNJUDGED)
        if given.input_type == "request" or not given.texts:
            return GuardrailReply(action="NONE")
        policy = server.settings.policy
        try:
            known = _Given.model_validate(given.parameters())
        except (ValueError, RecursionError):
            return GuardrailReply(action="BLOCKED", blocked_reason="no passages came with the response")
        texts = []
        for text in given.texts:
            one = JudgeRequest(response=text, **dict(known))
            try:
                found = await unless_gone(request, _judge(server, one, client))
                action, shown = found.decision.action, found.shown
            except Exception:
                action, shown = policy.unavailable, f"{text}{policy.texts.mark}"
                await server.recorder.decide(
                    "response", action, "unavailable", by=client, **_labels(server, one)
                )
                if action != "mark":
                    shown = policy.texts.unavailable_notice
            if action in WITHHELD:
                return GuardrailReply(action="BLOCKED", blocked_reason=shown)
            texts.append(shown)
        if texts == given.texts:
            return GuardrailReply(action="NONE")
        return GuardrailReply(action="GUARDRAIL_INTERVENED", texts=texts)


def _add_watching(app: FastAPI) -> None:
    @app.get("/healthz", tags=["watch"])
    async def healthz() -> dict[str, str]:
        """Alive."""
        return {"status": "alive"}

    @app.get("/readyz", tags=["watch"])
    async def readyz(server: Server) -> dict[str, str]:
        """Ready to judge: the reader is loaded, the audit log can be written, the upstream answers."""
        await server.ready()
        return {"status": "ready"}

    @app.get("/metrics", tags=["watch"], response_class=PlainTextResponse)
    async def prometheus(server: Server) -> PlainTextResponse:
        """Prometheus."""
        found = await server.metrics()
        return PlainTextResponse(metrics.exposition(found), media_type=metrics.CONTENT_TYPE)
