"""`Upstream`: the writer of the answers that are judged. Any OpenAI-compatible server, or the reader."""

from __future__ import annotations

import codecs
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import httpx
from httpx_sse import EventSource, SSEError, aconnect_sse

from lrp4rag.example import Example
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.worker import ModelWorker
from lrp4rag.util.strict_json import parse

_LOG = logging.getLogger("uvicorn.error")
MOST_TOKENS = 256
"""Most tokens of an answer by the reader, unless the request names fewer."""
LONGEST_EVENT = 2**20
"""Bytes of an event, or of a reply that is no stream."""
FINISHED = ("stop", "length", "content_filter")
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
THINK, THOUGHT = "<think>", "</think>"
MOST_BEFORE = 100
"""Characters of white space that may stand before the reasoning."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A part of an answer: text, why it ended, and what it used (OpenAI's `usage`)."""

    content: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None


class Upstream(Protocol):
    """Writes an answer to an OpenAI request, in parts."""

    def answer(self, body: Mapping[str, Any], example: Example) -> AsyncGenerator[Delta]:
        """Yield the answer. Raises a problem (502) where it gives none, or ends before it is done."""
        ...

    async def models(self) -> list[str]:
        """Return the names of its models; raises a problem (502) where it does not answer."""
        ...


class HttpUpstream:
    """An OpenAI-compatible server: llama.cpp, vLLM, Ollama, TGI. The `client` has its address (…/v1)."""

    def __init__(self, client: httpx.AsyncClient, model: str | None) -> None:
        self._client, self._model = client, model
        self._failing = False

    async def answer(self, body: Mapping[str, Any], example: Example) -> AsyncGenerator[Delta]:
        """Yield the answer, always as a stream: so a sentence is judged while the next one is written."""
        sent = {**body, "stream": True}
        sent.pop("stream_options", None)
        if body.get("stream"):
            # Without being asked, OpenAI's server and vLLM's tell nothing of what a stream used.
            sent["stream_options"] = {"include_usage": True}
        sent |= {} if self._model is None else {"model": self._model}
        finished, thinking = False, Thinking()
        # A character may be cut into the halves of a surrogate pair; a half that stands alone is replaced.
        halves = codecs.getincrementaldecoder("utf-16-le")("replace")
        try:
            async with (
                aconnect_sse(self._client, "POST", "chat/completions", json=sent) as source,
                aclosing(_deltas(source)) as deltas,
            ):
                async for delta in deltas:
                    finished = finished or delta.finish_reason is not None
                    text = halves.decode(delta.content.encode("utf-16-le", "surrogatepass"))
                    yield replace(delta, content=thinking.answer_in(text))
        except (httpx.HTTPError, httpx.StreamError, SSEError, UnicodeDecodeError) as error:
            raise self._failed("the upstream failed", error) from None
        if not finished:
            raise _broken("the upstream's answer ended before it was finished")
        self._failing = False
        if rest := thinking.rest():
            yield Delta(rest)

    async def models(self) -> list[str]:
        try:
            reply = await self._client.get("models")
            reply.raise_for_status()
            names = [str(model["id"]) for model in reply.json()["data"]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise self._failed("the upstream does not answer", error) from None
        self._failing = False
        return names

    def _failed(self, failure: str, error: Exception) -> Problem:
        """Return the problem of a failure; warn the operator too, once until the upstream answers again."""
        words = f"{failure}: {type(error).__name__}"
        if not self._failing:
            _LOG.warning("%s (%s)", words, self._client.base_url)
        self._failing = True
        return _broken(words)


@asynccontextmanager
async def http_upstream(settings: Settings) -> AsyncIterator[HttpUpstream]:
    """Yield the upstream of the settings, with its key."""
    key, headers = settings.upstream_key, {"Accept-Encoding": "identity"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    timeout = httpx.Timeout(settings.upstream_seconds, connect=10, pool=5)
    base = str(settings.upstream)
    async with httpx.AsyncClient(
        base_url=base, headers=headers, timeout=timeout, transport=Bounded()
    ) as client:
        yield HttpUpstream(client, settings.model)


class ReaderUpstream:
    """The reader answers by itself, for a demonstration: it is small, and invents."""

    def __init__(self, worker: ModelWorker, seconds: float) -> None:
        self._worker, self._seconds = worker, seconds

    async def answer(self, body: Mapping[str, Any], example: Example) -> AsyncGenerator[Delta]:
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or MOST_TOKENS
        most = min(int(limit), MOST_TOKENS) if isinstance(limit, int) and limit > 0 else MOST_TOKENS
        encoded = await self._worker.run(
            lambda detector: detector.reader.generate(example, max_new_tokens=most), self._seconds
        )
        yield Delta(encoded.response)
        counts = len(encoded.prompt_ids), len(encoded.response_ids)
        usage = dict(zip(COUNTS, (*counts, sum(counts)), strict=True))
        yield Delta(finish_reason="length" if counts[1] >= most else "stop", usage=usage)

    async def models(self) -> list[str]:
        return [str(self._worker.detector.reader.identity.name)]


class Thinking:
    """Separates an answer from the reasoning before it, between <think> and </think>, where the model's
    server leaves that in the answer."""

    def __init__(self) -> None:
        self._buffer, self._within, self._thought, self._over = "", False, False, False

    def answer_in(self, text: str) -> str:
        """Take in one more text, and return what is the answer's; the tags may be cut anywhere."""
        if self._over:
            return text
        self._buffer += text
        while True:
            if self._within:
                _, ended, after = self._buffer.partition(THOUGHT)
                self._within = not ended
                self._buffer = after if ended else self._buffer[1 - len(THOUGHT) :]
                if self._within:
                    return ""
            begun = self._buffer.lstrip()
            if not begun.startswith(THINK):
                break
            self._buffer, self._within, self._thought = begun[len(THINK) :], True, True
        if THINK.startswith(begun) and len(self._buffer) < MOST_BEFORE:
            return ""  # it may still be one
        self._over = True
        return begun if self._thought else self._buffer

    def rest(self) -> str:
        """Return the text that is still held at the end, and is the answer's after all."""
        return "" if self._within or self._over else self._buffer


async def _deltas(source: EventSource) -> AsyncGenerator[Delta]:
    """Yield what the upstream writes, also where it does not stream though it was asked to."""
    response = source.response
    if response.status_code >= 400:
        await response.aread()
        raise _refused(response)
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        yield _delta((await response.aread()).decode(), "message")
        return
    if kind != "text/event-stream":
        raise _broken(
            "the upstream answers neither by a stream of events nor by JSON: is its address that of an "
            "OpenAI-compatible server (…/v1)?"
        )
    async with aclosing(source.aiter_sse()) as events:
        async for event in events:
            data = event.data.strip()
            if data == "[DONE]":
                return
            if data:  # an event without data, such as a time to reconnect in, is none
                yield _delta(event.data, "delta")


def _delta(data: str, field: Literal["delta", "message"]) -> Delta:
    """Read a chunk of an answer, or a whole answer; raises a problem (502) for what is neither."""
    try:
        if len(data) > LONGEST_EVENT:
            raise ValueError
        chunk = parse(data)
        if "error" in chunk:
            raise _broken("the upstream reports an error")
        choices = chunk.get("choices") or []
        choice = choices[0] if choices else {}
        if choice.get("index", 0) != 0 or len(choices) > 1:
            raise ValueError
        delta = choice.get(field) or {}
        if delta.get("tool_calls") or delta.get("function_call"):
            raise _broken("the upstream calls a tool, which was not asked for")
        content = (delta.get("content") or "") + (delta.get("refusal") or "")
        if not isinstance(content, str):
            raise ValueError
        finish = _finish(choice.get("finish_reason"))
        if field == "message" and choice:
            finish = finish or "stop"
        return Delta(content, finish, _usage(chunk.get("usage")))
    except (ValueError, AttributeError, TypeError, IndexError, RecursionError):
        raise _broken("the upstream sent what is no chunk of an answer") from None


def _finish(reason: Any) -> str | None:
    """Return one of the known reasons for an end: any other text is one that nobody judged."""
    if reason is None:
        return None
    if not isinstance(reason, str) or reason in ("tool_calls", "function_call"):
        raise ValueError
    return reason if reason in FINISHED else "stop"


def _usage(usage: Any) -> dict[str, int] | None:
    """Return the valid counts of a usage."""
    if not isinstance(usage, dict):
        return None
    counts = {name: usage.get(name) for name in COUNTS}
    return {name: value for name, value in counts.items() if type(value) is int and 0 <= value < 2**53}


REFUSALS = {
    400: "the upstream finds the request invalid",
    404: "the upstream has no such model",
    413: "the request is too large for the upstream",
    422: "the upstream finds the request invalid",
}


def _refused(response: httpx.Response) -> Problem:
    """Return the problem of a refusal: the client's to mend where the request is at fault. The upstream's
    words are not passed on."""
    status = response.status_code
    if status in REFUSALS:
        return Problem(status, "Refused by the upstream", REFUSALS[status])
    if status == 429:
        after = response.headers.get("Retry-After", "")
        headers = {"Retry-After": after if after.isascii() and after.isdigit() else "1"}
        return Problem(429, "Too many requests", "the upstream is busy", headers=headers)
    return _broken(f"the upstream answers with status {status}")


class Bounded(httpx.AsyncHTTPTransport):
    """Replies that are not compressed, and of which no event, and no whole body that is no stream of events,
    is too large."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").casefold() != "identity":
            await response.aclose()
            raise httpx.DecodingError("the reply is compressed")
        assert isinstance(response.stream, httpx.AsyncByteStream)
        streams = response.headers.get("Content-Type", "").startswith("text/event-stream")
        response.stream = _Counted(response.stream, events=streams and response.status_code < 400)
        return response


class _Counted(httpx.AsyncByteStream):
    """A stream that raises once more than `LONGEST_EVENT` bytes come in one event, or in all."""

    def __init__(self, stream: httpx.AsyncByteStream, *, events: bool) -> None:
        self._stream, self._events = stream, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count, last = 0, b""
        async for chunk in self._stream:
            # An event ends with an empty line, which may be cut.
            tail = (last + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            end = tail.rfind(b"\n\n") if self._events else -1
            count, last = (count + len(chunk) if end < 0 else len(tail) - end), chunk[-3:]
            if count > LONGEST_EVENT:
                raise httpx.ReadError("the reply is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _broken(detail: str) -> Problem:
    return Problem(502, "The upstream failed", detail)
