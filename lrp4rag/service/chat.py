"""OpenAI's chat completions: what is asked, and how judged parts are told."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from pydantic import ValidationError

from lrp4rag.example import Example
from lrp4rag.service.answers import JudgedAnswer, Part
from lrp4rag.service.models import Extension, texts_of
from lrp4rag.service.problems import Problem, as_problem
from lrp4rag.types import first_fault

EXTENSION = "lrp4rag"
REFUSED: dict[str, str] = {
    "tools": "calls of tools are no text that can be judged",
    "functions": "calls of functions are no text that can be judged",
    "logprobs": "they would tell the words that are withheld",
    "top_logprobs": "they would tell the words that are withheld",
    "audio": "only text can be judged",
    "modalities": "only text can be judged",
    "prediction": "only what the upstream writes can be judged",
    "web_search_options": "what an answer is judged by comes with the request",
}
"""Fields that are refused where they are set, and why."""


def parse(body: Any) -> tuple[dict[str, Any], Extension, Example]:
    """What is sent to the upstream, what the request brings for us, and what the answer is judged by.

    Raises a problem for what cannot be judged.
    """
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise Problem(422, "Invalid request", "give a JSON object with messages, a list")
    for name, why in REFUSED.items():
        if body.get(name) not in (None, False, [], {}, ["text"]):
            raise Problem(400, "Not supported", f"{name}: {why}", field=name)
    if body.get("n") not in (None, 1):
        raise Problem(400, "Not supported", "n: ask for one answer at a time", field="n")
    if EXTENSION not in body:
        detail = f'without passages nothing can be judged: send "{EXTENSION}": {{"passages": ["…"]}}'
        raise Problem(422, "No passages", f"{detail}; with OpenAI's client as extra_body", field=EXTENSION)
    try:
        extension = Extension.model_validate(body[EXTENSION])
    except ValidationError as error:
        message, field = first_fault(error)
        raise Problem(422, "Invalid request", message, field=f"{EXTENSION}.{field}") from None
    question = _question(body["messages"]) if extension.question is None else extension.question
    sent = {name: value for name, value in body.items() if name != EXTENSION}
    try:
        json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Problem(400, "Invalid request", "it holds what is no JSON, or half of a character") from None
    generator = body.get("model")
    example = Example(
        question,
        texts_of(extension.passages),
        generator=generator if isinstance(generator, str) else None,
    )
    return sent, extension, example


def _question(messages: list[Any]) -> str:
    """The text of the user's last message; raises a problem where there is none."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            texts = [str(one.get("text", "")) for one in parts if isinstance(one, dict)]
            return "\n".join(text for text in texts if text)
    raise Problem(422, "Invalid request", "no message is of the user", field="messages")


def completion(answer: JudgedAnswer, parts: list[Part], model: str) -> dict[str, Any]:
    """The whole answer, with the decisions under "lrp4rag"."""
    text = "".join(part.text for part in parts)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "finish_reason": answer.finish_reason,
        "logprobs": None,
    }
    sentences = [part.extension() for part in parts if part.decision is not None]
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
    answer: JudgedAnswer, parts: AsyncGenerator[Part], model: str, *, usage: bool
) -> AsyncGenerator[str]:
    """Server-sent events: a chunk for each part, one for how the answer ended, and with `usage` another.

    An answer that fails ends with an error, and nothing that was not judged.
    """

    def chunk(delta: Mapping[str, Any], more: Mapping[str, Any], finish: str | None = None) -> str:
        found = {
            "id": f"chatcmpl-{answer.id}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}],
        }
        return _event({**found, **more})

    created, role = int(time.time()), {"role": "assistant"}
    try:
        async with aclosing(parts):
            async for part in parts:
                more = {} if part.decision is None else {EXTENSION: part.extension()}
                yield chunk({**role, "content": part.text}, more)
                role = {}
    except Exception as error:  # whatever it was, the client is told that the answer is not whole
        problem = as_problem(error)
        yield _event({"error": {"message": problem.detail, "type": problem.title, "code": problem.status}})
        return
    yield chunk(role, {EXTENSION: _decision(answer)}, answer.finish_reason)
    if usage and answer.usage is not None:
        yield chunk({}, {"usage": answer.usage, "choices": []})
    yield "data: [DONE]\n\n"


def _decision(answer: JudgedAnswer) -> dict[str, Any]:
    return {} if answer.decision is None else answer.decision.model_dump()


def _event(found: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(found, ensure_ascii=False, allow_nan=False)}\n\n"
