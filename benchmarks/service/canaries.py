"""Texts that occur once: does any of them turn up where no text of a request belongs?"""

from __future__ import annotations

import re
import secrets
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import TIMEOUT
from benchmarks.service.process import READ_ONLY, READER
from benchmarks.service.server import Server, quick, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import MISDEEDS, Upstream, Writer
from lrp4rag.guard.service.access import new_token

Asked = tuple[str, str, dict[str, Any]]
"""Method, path, and the other arguments of `httpx.request`."""


Told = list[tuple[set[str], str]]
"""The canaries of each request, and its reply."""


def c() -> str:
    """A canary: a text that occurs once."""
    return f"canary{secrets.token_hex(8)}"


def requests() -> Iterator[Asked]:
    """Every route, with a canary in every text that it takes, rightly and wrongly asked."""
    passage = {"text": f"It is {c()}.", "title": c(), "id": c(), "version": c(), "effective": c()}
    judged = {"question": c(), "passages": [passage, c()], "response": f"It is {c()}.", "generator": c()}
    yield "POST", "/v1/judge", {"json": judged, "headers": {"X-Request-Id": c(), "User-Agent": c()}}
    yield "POST", "/v1/judge", {"json": {**judged, c(): c()}, "params": {c(): c()}}
    yield "POST", "/v1/judge", {"json": {"question": [c()], "passages": c(), "response": {c(): c()}}}
    yield "POST", "/v1/judge", {"json": {**judged, "passages": [{**passage, "score": c()}]}}
    yield "POST", "/v1/judge", {"json": {**judged, "response": c() + " x" * 90_000}}  # exceeds the window
    yield "POST", "/v1/judge", {"content": f'{{"question": "{c()}'}
    yield "POST", "/v1/judge", {"content": c().encode() + b"\xff\xfe", "headers": {"Content-Type": c()}}
    yield "POST", "/v1/judge", {"content": c() * 200_000}
    yield (
        "POST",
        "/v1/judge/batch",
        {"json": {"requests": [judged, {**judged, "response": c() + " x" * 90_000}]}},
    )
    yield "POST", "/v1/judge/batch", {"json": {"requests": [{**judged, "passages": []}], c(): c()}}
    says = [{"role": "system", "content": c()}, {"role": "user", "name": c(), "content": c()}]
    asked = {
        "model": c(),
        "messages": says,
        "stop": [c()],
        "lrp4rag": {"passages": [passage], "question": c()},
    }
    ways: list[dict[str, Any]] = [{"user": one} for one in MISDEEDS]
    for more in ({}, {"stream": True}, *ways, {"user": "cut", "stream": True}):
        yield "POST", "/v1/chat/completions", {"json": {**asked, "metadata": {c(): c()}, **more}}
    for wrong in (
        {"tools": [c()]},
        {"messages": c()},
        {"lrp4rag": {c(): c()}},
        {"messages": [{"role": c()}]},
    ):
        yield "POST", "/v1/chat/completions", {"json": {**asked, **wrong}}
    yield "POST", "/v1/chat/completions", {"content": f'{{"{c()}": NaN, "{c()}'}
    told = {"passages": [c()], "question": c()}
    texts = {"texts": [c()], "input_type": "response", "additional_provider_specific_params": told, c(): c()}
    yield "POST", "/beta/litellm_basic_guardrail_api", {"json": texts}
    yield "POST", "/beta/litellm_basic_guardrail_api", {"json": {**texts, "input_type": c()}}
    yield "GET", f"/v1/decisions/{c()}", {}
    yield "GET", f"/{c()}/{c()}", {"params": {"q": c()}, "headers": {"Cookie": f"a={c()}"}}
    yield "PUT", "/v1/judge", {"json": {c(): c()}}
    yield "GET", "/v1/models", {"headers": {"Authorization": f"Bearer {c()}"}}
    yield "POST", "/v1/judge", {"json": judged, "headers": {"X-Api-Key": c(), "Authorization": c()}}


def send_no_http(url: str, canary: str) -> str:
    """What a server says to that."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as raw:
        raw.sendall(f"{canary} /{canary} {canary}\r\n{canary}\r\n\r\n".encode())
        return raw.recv(65536).decode(errors="replace")


def ask_everything(server: Server, token: str) -> tuple[Told, int]:
    """All requests with their replies, and how many were server errors that no fault explains."""
    told, errors = Told(), 0
    with httpx.Client(base_url=server.url, timeout=TIMEOUT) as client:
        for fault in ("", READER, READ_ONLY):
            (server.folder / "fault").write_text(fault)
            for method, path, more in requests():
                own = set(re.findall("canary[0-9a-f]{16}", f"{path} {more}"))
                headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
                reply = client.request(method, path, headers=headers, **more)
                errors += fault == "" and reply.status_code >= 500 and "user" not in more.get("json", {})
                told.append((own, f"{reply.headers} {reply.text}"))
            own = {c()}
            told.append((own, send_no_http(server.url, *own)))
    return told, errors


def found_in(canaries: set[str], content: str | bytes) -> int:
    """How many of them it holds."""
    text = content if isinstance(content, str) else content.decode("latin-1")
    return sum(canary in text for canary in canaries) if "canary" in text else 0


@benchmark
@count("--rounds", 5, "Of all requests.")
@quick(rounds=1)
def main(rounds: int, quick: bool) -> Report:
    """Ask for everything with texts that occur once, with a reader, a database and an upstream that fail too,
    and look for these texts in what the server prints, its metrics, its replies to others and its audit log.

    \b
    Examples:
      python -m benchmarks.service.canaries --quick
      python -m benchmarks.service.canaries --rounds 5
    """
    secret, answer = c(), c()
    token, hash = new_token()
    told, errors = Told(), 0
    settings: dict[str, Any] = {"open": False, "tokens": {"app": hash}, "keep_texts": False}
    with tempfile.TemporaryDirectory() as name:
        folder, writer = Path(name), Writer([f"It is {answer}. And old."], secret=secret)
        with Upstream(writer) as upstream, started(folder, upstream=upstream.url, **settings) as server:
            for _ in range(rounds):
                replies, more = ask_everything(server, token)
                told, errors = told + replies, errors + more
            canaries = {answer, secret, *(one for made, _ in told for one in made)}
            metrics = found_in(canaries, server.metrics())
            running = sum(found_in(canaries, path.read_bytes()) for path in folder.glob("audit.db*"))
        printed = found_in(canaries, server.log())
        ended = sum(found_in(canaries, path.read_bytes()) for path in folder.glob("audit.db*"))
    others = sum(found_in(canaries - made - {answer}, reply) for made, reply in told)
    result: dict[str, Any] = {
        "requests": len(told),
        "canaries": len(canaries),
        "in_the_log": printed,
        "in_metrics": metrics,
        "in_the_audit_database": running + ended,
        "in_replies_to_others": others,
        "server_errors": errors,
    }
    result["found"] = printed + metrics + running + ended + others
    return result | {"reader": "tiny"}, rows_of(result)


if __name__ == "__main__":
    main()
