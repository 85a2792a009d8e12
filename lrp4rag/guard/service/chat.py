"""OpenAI's chat completions: requests are parsed, and judged parts become replies."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from lrp4rag.example import Example
from lrp4rag.guard.service.access import Client
from lrp4rag.guard.service.answers import JudgedAnswer, RecordedPart
from lrp4rag.guard.service.models import Extension
from lrp4rag.guard.service.passages import Retrieved, Template, passages_in, text_of
from lrp4rag.guard.service.problems import Problem, as_problem
from lrp4rag.guard.service.requests import StrictRoute, json_of, unless_gone
from lrp4rag.guard.service.state import Server
from lrp4rag.util.types import first_fault

ROUTES = APIRouter(route_class=StrictRoute)
EXTENSION = "lrp4rag"
DONE = "data: [DONE]\n\n"
"""The last event of a complete stream."""
REFUSED: dict[str, str] = {
    "functions": "calls of functions are no text that can be judged",
    "logprobs": "they would tell the words that are withheld",
    "top_logprobs": "they would tell the words that are withheld",
    "audio": "only text can be judged",
    "modalities": "only text can be judged",
    "prediction": "only what the upstream writes can be judged",
    "web_search_options": "what an answer is judged by comes with the request",
}
"""Fields that are refused where they are set, and why."""
REQUEST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["messages"],
                    "properties": {
                        "model": {"type": "string"},
                        "stream": {"type": "boolean"},
                        "messages": {"type": "array", "items": {"type": "object"}},
                        EXTENSION: Extension.model_json_schema(ref_template="#/components/schemas/{model}"),
                    },
                },
                "example": {
                    "model": "any",
                    "messages": [{"role": "user", "content": "How long is parental leave for partners?"}],
                    EXTENSION: {"passages": ["Partners are entitled to 2 weeks of paid parental leave."]},
                },
            }
        },
    }
}
"""For the page of routes."""
TOOLS = (
    "a call of a tool is no text that can be judged; let the model call tools elsewhere, and ask for the "
    'answer here, with their results among the messages and tool_choice "none"'
)


@ROUTES.post("/v1/chat/completions", tags=["chat"], response_model=None, openapi_extra=REQUEST)
async def completions(request: Request, server: Server, client: Client) -> dict[str, Any] | StreamingResponse:
    """OpenAI's chat completions, through the upstream: each sentence is held until it is judged.

    Passages come in the field `lrp4rag`: `{"passages": ["…"]}`, as `documents`, in a message where the
    server's template says, or as results of tools. Decisions are under `lrp4rag` in the reply; in a
    stream, in each chunk.
    """
    if server.upstream is None:
        raise Problem(501, "No upstream", "start the server with an upstream, or with --demo")
    body, extension, example = parse(await json_of(request), server.settings.written)
    answer = JudgedAnswer(server, example, client, extension.language, extension.topic)
    model = str(server.settings.model or body.get("model") or "lrp4rag")
    parts = answer.parts(server.upstream.answer(body, example))
    if not body.get("stream"):
        return completion(answer, await unless_gone(request, _all(parts)), model)
    # The first part is awaited: until then, an error has a status of its own.
    first = await unless_gone(request, _first(parts))

    async def every() -> AsyncGenerator[RecordedPart]:
        async with aclosing(parts):
            if first is not None:
                yield first
            async for part in parts:
                yield part

    options = body.get("stream_options") or {}
    usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return StreamingResponse(events(answer, every(), model, usage=usage), media_type="text/event-stream")


async def _all(parts: AsyncGenerator[RecordedPart]) -> list[RecordedPart]:
    async with aclosing(parts):
        return [part async for part in parts]


async def _first(parts: AsyncGenerator[RecordedPart]) -> RecordedPart | None:
    try:
        return await anext(parts, None)
    except BaseException:
        await parts.aclose()
        raise


@ROUTES.get("/v1/models", tags=["chat"])
async def models(server: Server, client: Client) -> dict[str, Any]:
    """The upstream's models."""
    names = [] if server.upstream is None else await server.upstream.models()
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


def parse(body: Any, template: Template | None = None) -> tuple[dict[str, Any], Extension, Example]:
    """Split a request into the upstream's body, our extension, and the passages and question to judge by.

    Raises a problem for what cannot be judged.
    """
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise Problem(422, "Invalid request", "give a JSON object with messages, a list")
    _refuse(body)
    try:
        extension = Extension.model_validate(body.get(EXTENSION, {}))
    except ValidationError as error:
        message, field = first_fault(error)
        raise Problem(422, "Invalid request", message, field=f"{EXTENSION}.{field}") from None
    retrieved = passages_in(body, template) if extension.passages is None else Retrieved(extension.passages)
    if retrieved is None:
        detail = f'without passages nothing can be judged: send "{EXTENSION}": {{"passages": ["…"]}}'
        also = "with OpenAI's client as extra_body; documents, results of tools and a template do as well"
        raise Problem(422, "No passages", f"{detail}, {also}", field=EXTENSION)
    question = extension.question or retrieved.question or _question(body["messages"])
    sent = {name: value for name, value in body.items() if name != EXTENSION}
    try:
        json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Problem(400, "Invalid request", "it holds what is no JSON, or half of a character") from None
    generator = body.get("model")
    named = generator if isinstance(generator, str) else None
    sources = (row.source for row in retrieved.passages)
    return sent, extension, Example.of_sources(question, sources, generator=named)


def _refuse(body: Mapping[str, Any]) -> None:
    """Raise a problem (400) for fields that would let out text that nobody judged."""
    for name, why in REFUSED.items():
        if body.get(name) not in (None, False, [], {}, ["text"]):
            raise Problem(400, "Not supported", f"{name}: {why}", field=name)
    if body.get("tools") and body.get("tool_choice") != "none":
        raise Problem(400, "Not supported", f"tools: {TOOLS}", field="tools")
    if body.get("n") not in (None, 1):
        raise Problem(400, "Not supported", "n: ask for one answer at a time", field="n")


def _question(messages: list[Any]) -> str:
    """Return the text of the user's last message; raises a problem where there is none."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            return text_of(message)
    raise Problem(422, "Invalid request", "no message is of the user", field="messages")


def completion(answer: JudgedAnswer, parts: list[RecordedPart], model: str) -> dict[str, Any]:
    """Return the reply with the whole answer, and the decisions under "lrp4rag"."""
    text = "".join(part.text for part in parts)
    if answer.assessment is not None and answer.assessment.withheld:
        text = answer.assessment.message
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "finish_reason": answer.finish_reason,
        "logprobs": None,
    }
    sentences = [part.extension() for part in parts if part.decision not in (None, answer.decision)]
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        **({} if answer.usage is None else {"usage": answer.usage}),
        EXTENSION: {**_decision(answer), "sentences": sentences},
    }


async def events(
    answer: JudgedAnswer, parts: AsyncGenerator[RecordedPart], model: str, *, usage: bool
) -> AsyncGenerator[str]:
    """Yield server-sent events: a chunk for each part, one for the end of the answer, and with `usage` one
    more.

    An answer that fails ends with an error, and without text that was not judged.
    """

    def chunk(delta: Mapping[str, Any], more: Mapping[str, Any], finish: str | None = None) -> str:
        content = {
            "id": f"chatcmpl-{answer.id}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}],
        }
        return _event({**content, **more})

    created, role = int(time.time()), {"role": "assistant"}
    try:
        async with aclosing(parts):
            async for part in parts:
                more = {} if part.decision is None else {EXTENSION: part.extension()}
                yield chunk({**role, "content": part.text}, more)
                role = {}
    except Exception as error:  # whatever it was, the client is told that the answer is not whole
        yield failed(as_problem(error))
        return
    yield chunk(role, {EXTENSION: _decision(answer)}, answer.finish_reason)
    if usage and answer.usage is not None:
        yield chunk({}, {"usage": answer.usage, "choices": []})
    yield DONE


def failed(problem: Problem) -> str:
    """Return the event that ends a stream of which a part is missing."""
    return _event({"error": problem.error()})


def _decision(answer: JudgedAnswer) -> dict[str, Any]:
    """Return the decision on the answer as a whole; it does not quote what is withheld."""
    decision = {} if answer.decision is None else answer.decision.model_dump()
    if answer.assessment is None:
        return decision
    record = answer.assessment.redacted()
    return decision | {
        name: record[name] for name in ("faithfulness", "fact_score", "closest", "findings", "unavailable")
    }


def _event(content: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False, allow_nan=False)}\n\n"
