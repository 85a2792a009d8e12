"""Hostile requests: what schemathesis makes of the server's own document, and texts that must not turn up."""

from __future__ import annotations

import re
import secrets
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from benchmarks.command import Result, benchmark, count
from benchmarks.service.client import TIMEOUT
from benchmarks.service.server import READ_ONLY, READER, Server, guarded, quick, started
from benchmarks.service.upstream import MISDEEDS, Upstream, Writer
from lrp4rag.guard.service.access import new_token

ROUND = 20
"""Requests of one kind to one route before the next one's turn."""
PASSAGES = {"type": "object", "properties": {"passages": {"type": "array", "items": {"type": "string"}}}}
ROLES = {"role": {"enum": ["system", "user", "assistant"]}, "content": {"type": "string"}}
CHAT: dict[str, Any] = {
    "type": "object",
    "required": ["messages", "lrp4rag"],
    "properties": {
        "model": {"type": "string"},
        "stream": {"type": "boolean"},
        "messages": {
            "type": "array",
            "items": {"type": "object", "required": ["role", "content"], "properties": ROLES},
        },
        "lrp4rag": PASSAGES,
    },
}
"""What chat completions take, where the document does not tell."""


# Generated requests


def documented(url: str) -> dict[str, Any]:
    """The server's OpenAPI document; chat completions have a body."""
    document: dict[str, Any] = httpx.get(f"{url}/openapi.json").raise_for_status().json()
    body = {"required": True, "content": {"application/json": {"schema": CHAT}}}
    document["paths"]["/v1/chat/completions"]["post"].setdefault("requestBody", body)
    return document


class Fuzzer:
    """Counts replies by route and status, and schemathesis's findings; the first of each is kept."""

    def __init__(self, url: str) -> None:
        schema = schemathesis.openapi.from_dict(documented(url))
        self._url = url
        operations: list[Any] = [one.ok() for one in schema.get_all_operations()]  # type: ignore[union-attr]
        self.kinds = [(one, mode) for one in operations for mode in GenerationMode]
        self.statuses, self.findings = Counter[str](), Counter[str]()
        self.first: dict[str, str] = {}

    def ask(self, operation: Any, mode: GenerationMode, round: int) -> bool:
        """Requests of one kind to one route, other ones in each round. Whether there are more of them: a
        route that takes nothing has one that is valid, and none that is not."""

        @seed(round)
        @settings(
            max_examples=ROUND, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck), verbosity=Verbosity.quiet,
        )  # fmt: skip
        @given(operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            reply = case.call(base_url=self._url, timeout=60)
            self.statuses[f"{operation.label} {reply.status_code}"] += 1
            try:
                case.validate_response(reply)
            except FailureGroup as group:
                for error in group.exceptions:
                    finding = f"{operation.label}: {getattr(error, 'title', type(error).__name__)}"
                    self.findings[finding] += 1
                    self.first.setdefault(finding, str(error)[:1000])

        before = self.statuses.total()
        try:
            run()
        except Unsatisfiable:
            return False
        return self.statuses.total() - before == ROUND


@benchmark
@count("--requests", 2000, "At least.")
@quick(requests=120)
def fuzz(requests: int, quick: bool) -> Result:
    """Requests that schemathesis generates, valid and not, from the server's OpenAPI document: server errors,
    and replies that the document does not tell of.

    \b
    Examples:
      python -m benchmarks.service fuzz --quick
      python -m benchmarks.service fuzz --requests 2000
    """
    with guarded(["The lighthouse is tall. It is old."]) as run:
        fuzzer, round = Fuzzer(run.url), 0
        while fuzzer.kinds and fuzzer.statuses.total() < requests:
            kind = fuzzer.kinds.pop(0)
            if fuzzer.ask(*kind, round):
                fuzzer.kinds.append(kind)
            round += 1
    errors = {reply: n for reply, n in fuzzer.statuses.items() if int(reply.split()[-1]) >= 500}
    return {
        "server_errors": sum(errors.values()),
        "errors": errors,
        "undocumented": sum(n for finding, n in fuzzer.findings.items() if "Undocumented" in finding),
        "findings": dict(fuzzer.findings),
        "statuses": dict(fuzzer.statuses),
        "audit_problems": len(run.problems),
        "first": fuzzer.first,
        "reader": "tiny",
    }


# Texts that occur once

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
    too_long = {**judged, "response": c() + " x" * 90_000}  # exceeds the window
    for more in (
        {"json": judged, "headers": {"X-Request-Id": c(), "User-Agent": c()}},
        {"json": judged, "headers": {"X-Api-Key": c(), "Authorization": c()}},
        {"json": {**judged, c(): c()}, "params": {c(): c()}},
        {"json": {"question": [c()], "passages": c(), "response": {c(): c()}}},
        {"json": {**judged, "passages": [{**passage, "score": c()}]}},
        {"json": too_long},
        {"content": f'{{"question": "{c()}'},
        {"content": c().encode() + b"\xff\xfe", "headers": {"Content-Type": c()}},
        {"content": c() * 200_000},
    ):
        yield "POST", "/v1/judge", more
    for batch in ({"requests": [judged, too_long]}, {"requests": [{**judged, "passages": []}], c(): c()}):
        yield "POST", "/v1/judge/batch", {"json": batch}
    says = [{"role": "system", "content": c()}, {"role": "user", "name": c(), "content": c()}]
    own = {"passages": [passage], "question": c()}
    asked = {"model": c(), "messages": says, "stop": [c()], "lrp4rag": own}
    misdeeds: list[dict[str, Any]] = [{"user": misdeed} for misdeed in MISDEEDS]
    for way in ({}, {"stream": True}, *misdeeds, {"user": "cut", "stream": True}):
        yield "POST", "/v1/chat/completions", {"json": {**asked, "metadata": {c(): c()}, **way}}
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
    for litellm in (texts, {**texts, "input_type": c()}):
        yield "POST", "/beta/litellm_basic_guardrail_api", {"json": litellm}
    yield "GET", f"/v1/decisions/{c()}", {}
    yield "GET", f"/{c()}/{c()}", {"params": {"q": c()}, "headers": {"Cookie": f"a={c()}"}}
    yield "PUT", "/v1/judge", {"json": {c(): c()}}
    yield "GET", "/v1/models", {"headers": {"Authorization": f"Bearer {c()}"}}


def send_no_http(url: str, canary: str) -> str:
    """The server's reply to what is no HTTP."""
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
def canaries(rounds: int, quick: bool) -> Result:
    """Ask for everything with texts that occur once, with a reader, a database and an upstream that fail too,
    and look for these texts in what the server prints, its metrics, its replies to others and its audit log.

    \b
    Examples:
      python -m benchmarks.service canaries --quick
      python -m benchmarks.service canaries --rounds 5
    """
    secret, answer = c(), c()
    token, hash = new_token()
    told, errors = Told(), 0
    private: dict[str, Any] = {"open": False, "tokens": {"app": hash}, "keep_texts": False}
    with tempfile.TemporaryDirectory() as name:
        folder, writer = Path(name), Writer([f"It is {answer}. And old."], secret=secret)

        def in_database() -> int:
            return sum(found_in(sent, path.read_bytes()) for path in folder.glob("audit.db*"))

        with Upstream(writer) as upstream, started(folder, upstream=upstream.url, **private) as server:
            for _ in range(rounds):
                replies, more = ask_everything(server, token)
                told, errors = told + replies, errors + more
            sent = {answer, secret, *(canary for own, _ in told for canary in own)}
            metrics, database = found_in(sent, server.metrics()), in_database()
        printed, database = found_in(sent, server.log()), database + in_database()
    others = sum(found_in(sent - own - {answer}, reply) for own, reply in told)
    return {
        "requests": len(told),
        "canaries": len(sent),
        "in_the_log": printed,
        "in_metrics": metrics,
        "in_the_audit_database": database,
        "in_replies_to_others": others,
        "server_errors": errors,
        "found": printed + metrics + database + others,
        "reader": "tiny",
    }
