"""The guardrail between real ends: clients that people have before it, servers that write behind it.

Each pair of ends has an outcome of its own. What a client shows is held against the audit log, so that a
reply in the right form which nobody judged does not pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import click
import httpx
import openai
import uvicorn
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionStreamOptionsParam

from benchmarks.command import Report, benchmark, table
from benchmarks.ports import free_port
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader.weights import _default_gguf
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.sentences import sentences_in
from tests.guard.service.scripted_upstream import Script, chunk, events, serving

TEXTS = Settings().policy.texts
GAP = TEXTS.gap.partition(" {")[0]
"""How the message begins that stands in the place of an answer that hardly anything supports."""
EXAMPLES = Path(__file__).parent.parent / "examples"
STARTS_IN = 180
"""Seconds."""
CLIENT_SECONDS = 120.0
MASTER = "sk-of-the-proxy"
LONGEST_SEEN = 200


@dataclass(frozen=True)
class Got:
    """What a client shows of an answer: its text, and what lrp4rag says of each part that is not white
    space. `error` is the client's own exception, or the status that it printed, with the message."""

    text: str = ""
    parts: tuple[dict[str, Any], ...] = ()
    finish: str | None = None
    usage: int = 0
    error: str = ""


@dataclass(frozen=True)
class Outcome:
    """Whether a case went as it must (`held`), and what was seen."""

    upstream: str
    client: str
    case: str
    held: bool
    seen: str


@dataclass(frozen=True)
class Guardrail:
    """A running server: its address (without /v1), and its client's token."""

    url: str
    token: str


Client = Callable[[str, str, dict[str, Any]], Got]
"""Sends a chat request to a base (…/v1) with a key."""


def body_of(example: Example, **more: Any) -> dict[str, Any]:
    """A chat request, whose passages come in the extra field."""
    messages = [{"role": "user", "content": example.question}]
    return {"model": "any", "messages": messages, "lrp4rag": {"passages": list(example.passages)}} | more


# --- clients


def _openai_arguments(body: dict[str, Any]) -> dict[str, Any]:
    """What the client does not know goes as `extra_body`."""
    known = {name: value for name, value in body.items() if name not in ("lrp4rag", "guardrails")}
    return {**known, "extra_body": {name: body[name] for name in body.keys() - known.keys()}}


def _of_reply(reply: Any) -> Got:
    choice, extra = reply.choices[0], (reply.model_extra or {}).get("lrp4rag") or {}
    usage = reply.usage.total_tokens if reply.usage is not None else 0
    parts = tuple(extra.get("sentences", ()))
    return Got(choice.message.content or "", parts, choice.finish_reason, usage)


def _with_chunk(got: Got, part: Any) -> Got:
    extra = (part.model_extra or {}).get("lrp4rag")
    got = replace(got, usage=part.usage.total_tokens) if part.usage is not None else got
    for choice in part.choices:
        text = choice.delta.content or ""
        parts = (*got.parts, extra) if extra is not None and choice.finish_reason is None else got.parts
        finish = choice.finish_reason or got.finish
        got = replace(got, text=got.text + text, parts=parts, finish=finish)
    return got


USAGE: ChatCompletionStreamOptionsParam = {"include_usage": True}


def openai_whole(base: str, key: str, body: dict[str, Any]) -> Got:
    with OpenAI(base_url=base, api_key=key, max_retries=0, timeout=CLIENT_SECONDS) as client:
        try:
            return _of_reply(client.chat.completions.create(**_openai_arguments(body)))
        except openai.APIError as error:
            return Got(error=_named(error))


def openai_stream(base: str, key: str, body: dict[str, Any]) -> Got:
    got = Got()
    with OpenAI(base_url=base, api_key=key, max_retries=0, timeout=CLIENT_SECONDS) as client:
        try:
            for part in client.chat.completions.create(
                **_openai_arguments(body), stream=True, stream_options=USAGE
            ):
                got = _with_chunk(got, part)
        except openai.APIError as error:
            return replace(got, error=_named(error))
    return got


def openai_async_whole(base: str, key: str, body: dict[str, Any]) -> Got:
    async def run() -> Got:
        async with AsyncOpenAI(base_url=base, api_key=key, max_retries=0, timeout=CLIENT_SECONDS) as client:
            try:
                return _of_reply(await client.chat.completions.create(**_openai_arguments(body)))
            except openai.APIError as error:
                return Got(error=_named(error))

    return asyncio.run(run())


def openai_async_stream(base: str, key: str, body: dict[str, Any]) -> Got:
    async def run() -> Got:
        got = Got()
        async with AsyncOpenAI(base_url=base, api_key=key, max_retries=0, timeout=CLIENT_SECONDS) as client:
            try:
                async for part in await client.chat.completions.create(
                    **_openai_arguments(body), stream=True, stream_options=USAGE
                ):
                    got = _with_chunk(got, part)
            except openai.APIError as error:
                return replace(got, error=_named(error))
        return got

    return asyncio.run(run())


def _named(error: openai.APIError) -> str:
    return f"{type(error).__name__}: {error.message}"


def curl_whole(base: str, key: str, body: dict[str, Any]) -> Got:
    status, text = _curl(base, key, body)
    reply = json.loads(text)
    if status != "200":
        return Got(error=f"{status}: {text}")
    (choice,) = reply["choices"]
    parts = tuple(reply["lrp4rag"]["sentences"])
    total = reply.get("usage", {}).get("total_tokens", 0)
    return Got(choice["message"]["content"], parts, choice["finish_reason"], total)


def curl_stream(base: str, key: str, body: dict[str, Any]) -> Got:
    status, text = _curl(base, key, {**body, "stream": True, "stream_options": USAGE})
    if status != "200":
        return Got(error=f"{status}: {text}")
    got, ended = Got(), False
    for event in text.split("\n\n"):
        data = event.removeprefix("data: ")
        if data == "[DONE]":
            ended = True
        elif data.strip():
            found = json.loads(data)
            if "error" in found:
                return replace(got, error=f"event: {data}")
            reply = ChatCompletionChunk.model_validate(found)
            got = _with_chunk(got, reply)
    return got if ended else replace(got, error="no [DONE]")


def _curl(base: str, key: str, body: dict[str, Any]) -> tuple[str, str]:
    """The status, and the body."""
    command = ["curl", "-sN", "--max-time", str(CLIENT_SECONDS), "-w", "\n%{http_code}", "-d", "@-"]
    command += ["-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {key}"]
    run = subprocess.run(
        [*command, f"{base}/chat/completions"],
        input=json.dumps(body).encode(),
        capture_output=True,
        check=False,
    )
    text, _, status = run.stdout.decode().rpartition("\n")
    return status, text


CLIENTS: dict[str, Client] = {
    "openai": openai_whole,
    "openai, stream": openai_stream,
    "openai, async": openai_async_whole,
    "openai, async stream": openai_async_stream,
    "curl": curl_whole,
    "curl, stream": curl_stream,
}


# --- what is looked at


def faults(got: Got, server: Guardrail, *, usage: bool = True) -> list[str]:
    """What is wrong with an answer that must be whole and judged; not each upstream tells its `usage`."""
    found = [f"error: {got.error}"] if got.error else []
    expected = ("text", "finish", "usage") if usage else ("text", "finish")
    found += [f"no {name}" for name in expected if not getattr(got, name)]
    return found + unjudged(got, server)


def unjudged(got: Got, server: Guardrail) -> list[str]:
    """Parts that the audit log does not have as the client shows them."""
    headers = {"Authorization": f"Bearer {server.token}"}
    found = [] if got.parts or not got.text.strip() else ["text without decisions"]
    for part in got.parts:
        reply = httpx.get(f"{server.url}/v1/decisions/{part.get('id')}", headers=headers)
        record = reply.json().get("record", {})
        if record.get("action") != part.get("action"):
            found.append(
                f"{part.get('id')} is shown as {part.get('action')}, recorded as {record.get('action')}"
            )
    return found


def shown(sentences: Sequence[str], actions: Sequence[str]) -> str:
    """The text that a client must see of sentences whose decisions are known."""
    text, before = "", ""
    for sentence, action in zip(sentences, actions, strict=True):
        body, notice = sentence.rstrip(), ""
        gap = sentence[len(body) :]
        if action == "withhold":
            notice = TEXTS.notice
            text += "" if notice == before else notice + (gap or " ")
        else:
            text += body + (TEXTS.mark if action == "mark" else "") + gap
        before = notice
    return text


def is_shown(text: str, sentences: Sequence[str], actions: Sequence[str]) -> bool:
    """Whether a client sees what it must. An answer that is withheld as a whole is a message in its place, or
    under the sentences that were streamed before that was known."""
    expected = shown(sentences, actions[: len(sentences)])
    if text.startswith(GAP):
        return not any(sentence.strip() in text for sentence in sentences)
    before, _, message = text.partition("\n\n")
    return text == expected or (before.rstrip() == expected.rstrip() and message.startswith(GAP))


def told(words: Sequence[str], got: Got) -> tuple[bool, str]:
    """Does the client raise its own error, with these words in the message?"""
    return all(word in got.error for word in words), got.error or "no error"


@dataclass
class Cases:
    """Outcomes, in order; a case that raises did not hold."""

    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, upstream: str, client: str, case: str, run: Callable[[], tuple[bool, str]]) -> None:
        try:
            held, seen = run()
        except Exception as error:
            held, seen = False, f"{type(error).__name__}: {error}"
        clipped = " ".join(seen.split())[:LONGEST_SEEN]
        self.outcomes.append(Outcome(upstream, client, case, held, clipped))
        click.echo(f"{'held  ' if held else 'FAILED'} {upstream} | {client} | {case} | {clipped}", err=True)


def whole_answer(
    client: Client, server: Guardrail, body: dict[str, Any], *, usage: bool = True
) -> tuple[bool, str]:
    got = client(f"{server.url}/v1", server.token, body)
    found = faults(got, server, usage=usage)
    actions = " ".join(str(part["action"]) for part in got.parts)
    return not found, "; ".join(found) or f"{actions}; {got.finish}, {got.usage} tokens"


def answers(
    cases: Cases, upstream: str, server: Guardrail, example: Example, *, usage: bool = True, **more: Any
) -> None:
    """Every client gets the upstream's answer."""
    for name, client in CLIENTS.items():
        if "curl" not in name or shutil.which("curl"):
            body = body_of(example, **more)
            cases.add(upstream, name, "an answer", partial(whole_answer, client, server, body, usage=usage))


# --- a scripted upstream: known answers, and misdeeds


def scripted(
    cases: Cases, server: Guardrail, script: Script, example: Example, sentences: Sequence[str]
) -> None:
    """Known sentences, so that every character that comes out is known; refusals; an upstream that fails."""
    body = body_of(example)
    script.stream = events(*sentences)

    def exact(client: Client) -> tuple[bool, str]:
        got = client(f"{server.url}/v1", server.token, body)
        found = faults(got, server)
        actions = [str(part["action"]) for part in got.parts]
        if not found and not is_shown(got.text, sentences, actions):
            found = [f"another text: {got.text!r}"]
        if not found and "withhold" not in actions:
            found = ["what is hallucinated is not withheld"]
        return not found, "; ".join(found) or " ".join(actions)

    def refusal(client: Client, token: str, sent: dict[str, Any], words: tuple[str, ...]) -> tuple[bool, str]:
        return told(words, client(f"{server.url}/v1", token, sent))

    refused = {
        "a wrong token": (body, "wrong", ("AuthenticationError", "Authorization: Bearer"), "401"),
        "no passages": (
            {name: value for name, value in body.items() if name != "lrp4rag"},
            server.token,
            ("UnprocessableEntityError", "without passages"),
            "422",
        ),
        "several answers": ({**body, "n": 2}, server.token, ("BadRequestError", "one answer"), "400"),
    }
    for name, client in CLIENTS.items():
        cases.add("scripted", name, "every character", partial(exact, client))
        for case, (sent, token, (kind, words), status) in refused.items():
            expected = (status, words) if name.startswith("curl") else (kind, words)
            cases.add(
                "scripted",
                name,
                f"refused: {case}",
                partial(refusal, client, token, sent, expected),
            )
    misdeeds(cases, server, script, body, sentences)


def misdeeds(
    cases: Cases, server: Guardrail, script: Script, body: dict[str, Any], sentences: Sequence[str]
) -> None:
    """What the client gets until the upstream fails is judged, and then it is told."""
    good, error = events(*sentences), chunk(error={"message": "out of memory", "code": 500}, choices=[])
    first = good[: good.index(b"data: [DONE]") // 2]
    streams = {
        "the connection ends": (first, 200),
        "an error in the stream": (first[: first.rindex(b"data:")] + error.encode(), 200),
        "no stream of events": (b"<html>", 200),
        "half a character at the end": (first + "塔".encode()[:2], 200),
        "status 500": (good, 500),
        "status 429": (good, 429),
    }

    def failing(client: Client, words: tuple[str, ...]) -> tuple[bool, str]:
        got = client(f"{server.url}/v1", server.token, body)
        held, seen = told(words, got)
        found = unjudged(got, server) if got.text else []
        leaked = "out of memory" in seen or "out of memory" in got.text
        return held and not found and not leaked, "; ".join(found) or seen

    for case, (stream, status) in streams.items():
        script.stream, script.status = stream, status
        words = ("busy",) if status == 429 else ("upstream",)
        for name, client in CLIENTS.items():
            cases.add("scripted", name, f"fails: {case}", partial(failing, client, words))
    script.stream, script.status = good, 200


def usage_on_demand(cases: Cases, folder: Path, example: Example) -> None:
    """OpenAI's server and vLLM's tell what a stream used where they are asked to, and only there."""
    with (
        speaking(Spoken(str(example.response))) as upstream,
        guardrail(folder, "asked", upstream=upstream) as one,
    ):
        answers(cases, "usage on demand", one, example)


# --- LiteLLM's proxy


def litellm(cases: Cases, binary: str, server: Guardrail, folder: Path) -> None:
    """The proxy with our guardrail behind its own model, and the proxy as our client."""
    grounded = load_examples(EXAMPLES / "grounded.json")[0]
    invented = load_examples(EXAMPLES / "hallucinated.json")[0]
    parameters, spoken = _parameters(grounded), Spoken()
    with speaking(spoken) as upstream:
        config = {
            "model_list": [
                _model("plain", upstream, "none"),
                _model("judged", f"{server.url}/v1", server.token),
                _model("unknown", f"{server.url}/v1", "wrong"),
            ],
            "guardrails": [
                _guardrail("lrp4rag", server.url, server.token, parameters),
                _guardrail("lrp4rag-buffered", server.url, server.token, parameters, **BUFFERED),
                _guardrail("lrp4rag-bare", server.url, server.token, {}, extra_headers=list(HEADERS)),
                _guardrail("lrp4rag-unknown", server.url, "wrong", parameters),
            ],
            "general_settings": {"master_key": MASTER},
            "litellm_settings": {"num_retries": 0, "telemetry": False},
            "router_settings": {"disable_cooldowns": True},
        }
        path, port = folder / "litellm.yaml", free_port()
        path.write_text(json.dumps(config))  # JSON is YAML
        command = [binary, "--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
        with process("litellm", command, folder, f"http://127.0.0.1:{port}/health/liveliness"):
            base = f"http://127.0.0.1:{port}/v1"
            _guarded(cases, base, spoken, grounded, invented)
            _as_client(cases, base, server, grounded)


BUFFERED = {"streaming_buffer_until_moderated": True, "streaming_end_of_stream_only": True}
"""Nothing of a stream leaves before the whole of it is judged."""
SPOKEN = "LiteLLM's own"
HEADERS = ("x-lrp4rag-passages", "x-lrp4rag-question")
"""Of a request: LiteLLM hands the named ones on to the guardrail."""


def _model(name: str, base: str, key: str) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": "openai/m", "api_base": base, "api_key": key}}


def _guardrail(name: str, base: str, key: str, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {
        "guardrail": "generic_guardrail_api",
        "mode": "post_call",
        "api_base": base,
        "api_key": key,
        "additional_provider_specific_params": parameters,
        "default_on": False,
    }
    return {"guardrail_name": name, "litellm_params": {**given, **more}}


def _guarded(cases: Cases, base: str, spoken: Spoken, grounded: Example, invented: Example) -> None:
    """A response of the proxy's own model, which the guardrail lets through or not."""

    def ask(client: Client, example: Example, guardrails: Sequence[Any], **more: Any) -> Got:
        spoken.response = str(example.response)
        body = {"model": "plain", "messages": [{"role": "user", "content": example.question}]}
        return client(base, MASTER, {**body, "guardrails": guardrails, **more})

    def passes(client: Client, guardrails: Sequence[Any], **more: Any) -> tuple[bool, str]:
        got = ask(client, grounded, guardrails, **more)
        return got.text == grounded.response and not got.error, got.error or got.text

    def blocks(client: Client, guardrails: Sequence[Any], words: str = GAP) -> tuple[bool, str]:
        got = ask(client, invented, guardrails)
        leaked = f"LEAKED {len(got.text)} characters: " if str(invented.response)[:40] in got.text else ""
        return words in got.error + got.text and not leaked, leaked + (got.error or got.text)

    whole, stream, buffered = (f"LiteLLM's guardrail{way}" for way in ("", ", stream", ", stream, buffered"))
    for name, client, guardrail in (
        (whole, openai_whole, "lrp4rag"),
        (buffered, openai_stream, "lrp4rag-buffered"),
        (stream, openai_stream, "lrp4rag"),
    ):
        cases.add(SPOKEN, name, "a grounded answer passes", partial(passes, client, [guardrail]))
        cases.add(SPOKEN, name, "a hallucinated one is blocked", partial(blocks, client, [guardrail]))
    dynamic = [{"lrp4rag-bare": {"extra_body": _parameters(grounded)}}]
    cases.add(SPOKEN, whole, "passages of the request", partial(passes, openai_whole, dynamic))
    texts = (json.dumps(list(grounded.passages)), json.dumps(grounded.question))  # ASCII, as headers are
    headers = dict(zip(HEADERS, texts, strict=True))
    in_headers = partial(passes, openai_whole, ["lrp4rag-bare"], extra_headers=headers)
    cases.add(SPOKEN, whole, "passages in a header", in_headers)
    cases.add(
        SPOKEN, whole, "no passages: blocked", partial(blocks, openai_whole, ["lrp4rag-bare"], "no passages")
    )
    cases.add(
        SPOKEN, whole, "a wrong key: blocked", partial(blocks, openai_whole, ["lrp4rag-unknown"], "401")
    )


def _parameters(example: Example) -> dict[str, Any]:
    return {"question": example.question, "passages": list(example.passages)}


def _as_client(cases: Cases, base: str, server: Guardrail, grounded: Example) -> None:
    """The proxy asks our chat route, and passes the passages and the decisions on."""
    asked = body_of(grounded, model="judged")

    def same_text(client: Client) -> tuple[bool, str]:
        got, direct = client(base, MASTER, asked), openai_whole(f"{server.url}/v1", server.token, asked)
        held = bool(got.text) and (got.text, got.finish, got.usage) == (
            direct.text,
            direct.finish,
            direct.usage,
        )
        return held, got.error or got.text

    def decided(client: Client) -> tuple[bool, str]:
        found = unjudged(client(base, MASTER, asked), server)
        return not found, "; ".join(found) or "as recorded"

    def refused(client: Client, body: dict[str, Any], words: tuple[str, ...]) -> tuple[bool, str]:
        return told(words, client(base, MASTER, body))

    bare = {name: value for name, value in asked.items() if name != "lrp4rag"}
    invalid, wrong = ("Error", "without passages"), ("AuthenticationError", "Authorization: Bearer")
    for name, client in (("LiteLLM as client", openai_whole), ("LiteLLM as client, stream", openai_stream)):
        cases.add("scripted", name, "text, finish, usage as without it", partial(same_text, client))
        cases.add("scripted", name, "decisions beside the text", partial(decided, client))
        cases.add("scripted", name, "refused: no passages", partial(refused, client, bare, invalid))
        sent = {**asked, "model": "unknown"}
        cases.add("scripted", name, "refused: a wrong token", partial(refused, client, sent, wrong))


@dataclass
class Spoken:
    """An upstream that says `response`, whole or word by word, as it is asked, and what it used."""

    response: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        asked = json.loads(body or b"{}")
        streams = bool(asked.get("stream"))
        kind = b"text/event-stream" if streams else b"application/json"
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        words = re.findall(r"\s*\S+", self.response)
        parts = _events(words, usage=bool(asked.get("stream_options"))) if streams else _whole(self.response)
        await send({"type": "http.response.body", "body": parts})


def _events(words: Sequence[str], *, usage: bool) -> bytes:
    parts = events(*words).split(b"\n\n")
    return b"\n\n".join(part for part in parts if usage or b'"usage"' not in part)


def _whole(response: str) -> bytes:
    """A reply that is not streamed."""
    message = {"role": "assistant", "content": response}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps({**reply, "usage": usage}).encode()


@contextmanager
def speaking(spoken: Spoken) -> Iterator[str]:
    """Its address; it runs in a thread of its own."""
    server = uvicorn.Server(uvicorn.Config(spoken, port=0, log_level="error", lifespan="off"))
    socket = server.config.bind_socket()
    thread = Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10)


# --- processes


@contextmanager
def process(
    name: str, command: Sequence[str], folder: Path, ready: str, seconds: float = STARTS_IN
) -> Iterator[None]:
    """A server that runs, and answers at the address `ready`."""
    log = folder / f"{name}.log"
    with log.open("w") as output:
        running = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        try:
            until = time.monotonic() + seconds
            while not _answers(ready):
                if running.poll() is not None or time.monotonic() > until:
                    raise LRP4RAGError(f"{name} did not start: {log.read_text()[-500:]}")
                time.sleep(0.5)
            yield
        finally:
            running.terminate()
            try:
                running.wait(60)
            except subprocess.TimeoutExpired:
                running.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def guardrail(folder: Path, name: str, **settings: Any) -> Iterator[Guardrail]:
    """A server process with the real reader, and a token."""
    token, hash = new_token()
    port = free_port()
    given = {
        "port": port, "tokens": {"ends": hash}, "audit": f"sqlite:///{folder}/{name}.db", "per_minute": 10**6,
        "seconds": 120, **settings,
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(given))
    command = [sys.executable, "-m", "lrp4rag", "serve", "--config", str(path)]
    url = f"http://127.0.0.1:{port}"
    with process(name, command, folder, f"{url}/healthz"):
        yield Guardrail(url, token)


@contextmanager
def llama(python: str, folder: Path) -> Iterator[str]:
    """The address of llama.cpp's server with the default reader's own weights."""
    port = free_port()
    command = [python, "-m", "llama_cpp.server", "--model", str(_default_gguf()), "--n_ctx", "2048"]
    base = f"http://127.0.0.1:{port}/v1"
    with process("llama", [*command, "--port", str(port)], folder, f"{base}/models"):
        yield base


def sentences_of(response: str) -> list[str]:
    """Each with the space after it."""
    starts = [start for start, _ in sentences_in(response)]
    return [response[a:b] for a, b in zip(starts, [*starts[1:], len(response)], strict=True)]


@benchmark
@click.option("--litellm", "binary", metavar="BIN", help="LiteLLM's command, of its own environment.")
@click.option("--llama", "python", metavar="PYTHON", help="A Python that has llama-cpp-python[server].")
def main(binary: str | None, python: str | None) -> Report:
    """Real clients before the guardrail, and real upstreams behind it: what each shows of an answer.

    \b
    Examples:
      python -m benchmarks.service_ends
      python -m benchmarks.service_ends --litellm ~/litellm/bin/litellm --llama ~/llama/bin/python
    """
    binary, python = _found(binary), _found(python)
    cases = Cases()
    grounded = load_examples(EXAMPLES / "grounded.json")[0]
    invented = load_examples(EXAMPLES / "hallucinated.json")[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with guardrail(folder, "demo", demo=True) as server:
            answers(cases, "--demo", server, grounded, max_tokens=60)
        script = Script(longest=40)
        with serving(script) as upstream, guardrail(folder, "scripted", upstream=upstream) as server:
            scripted(cases, server, script, invented, sentences_of(str(invented.response)))
            usage_on_demand(cases, folder, grounded)
            if binary is not None:
                litellm(cases, binary, server, folder)
        if python is not None:
            with llama(python, folder) as base, guardrail(folder, "llama", upstream=base) as server:
                more = {"max_tokens": 60, "temperature": 0}
                # It tells of no usage in a stream.
                itself = openai_stream(base, "none", body_of(grounded, **more))
                answers(cases, "llama.cpp", server, grounded, usage=itself.usage > 0, **more)
    return _report(cases.outcomes, binary, python)


def _found(command: str | None) -> str | None:
    """Its absolute path; servers run in a folder of their own."""
    path = None if command is None else shutil.which(command)
    if command is not None and path is None:
        raise InputError(f"there is no command {command}")
    return None if path is None else str(Path(path).absolute())


def _report(outcomes: Sequence[Outcome], binary: str | None, python: str | None) -> Report:
    held = sum(one.held for one in outcomes)
    versions = {"lrp4rag": version("lrp4rag"), "openai": version("openai")}
    for name, beside in (("litellm", binary), ("llama_cpp_python", python)):
        if beside is not None:
            versions[name] = _version_beside(beside, name)
    values = {
        "held": held,
        "cases": len(outcomes),
        "versions": versions,
        "ends": [asdict(one) for one in outcomes],
    }
    rows = [
        (one.upstream, one.client, one.case, "held" if one.held else f"FAILED: {one.seen}")
        for one in outcomes
    ]
    return values, [
        f"{held} of {len(outcomes)} cases held",
        "",
        *table(("upstream", "client", "case", ""), rows),
    ]


def _version_beside(command: str, name: str) -> str:
    """Of a package in the environment that a command is of."""
    python = Path(command).parent / "python"
    code = f"from importlib.metadata import version; print(version('{name}'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
