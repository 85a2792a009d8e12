"""Generated requests by the server's own OpenAPI document: does any of them make it fail?"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from benchmarks.command import Report, benchmark, count
from benchmarks.service.server import Server, quick, recorded, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer

ROUND = 20
"""Requests of one kind to one route before the next one's turn."""
PASSAGES = {"type": "object", "properties": {"passages": {"type": "array", "items": {"type": "string"}}}}
CHAT: dict[str, Any] = {
    "type": "object",
    "required": ["messages", "lrp4rag"],
    "properties": {
        "model": {"type": "string"},
        "stream": {"type": "boolean"},
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": {"enum": ["system", "user", "assistant"]},
                    "content": {"type": "string"},
                },
            },
        },
        "lrp4rag": PASSAGES,
    },
}
"""What chat completions take, where the document does not tell."""


def documented(url: str) -> dict[str, Any]:
    """The server's OpenAPI document; chat completions have a body."""
    found: dict[str, Any] = httpx.get(f"{url}/openapi.json").raise_for_status().json()
    body = {"required": True, "content": {"application/json": {"schema": CHAT}}}
    found["paths"]["/v1/chat/completions"]["post"].setdefault("requestBody", body)
    return found


class Fuzzer:
    """Counts replies by route and status, and what schemathesis says of them; the first of each is kept."""

    def __init__(self, server: Server) -> None:
        schema = schemathesis.openapi.from_dict(documented(server.url))
        self._url = server.url
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
                for one in group.exceptions:
                    self._found(f"{operation.label}: {getattr(one, 'title', type(one).__name__)}", one)

        before = self.statuses.total()
        try:
            run()
        except Unsatisfiable:
            return False
        return self.statuses.total() - before == ROUND

    def _found(self, what: str, error: BaseException) -> None:
        self.findings[what] += 1
        self.first.setdefault(what, str(error)[:1000])


@benchmark
@count("--requests", 2000, "At least.")
@quick(requests=120)
def main(requests: int, quick: bool) -> Report:
    """Requests that schemathesis generates, valid and not, from the server's OpenAPI document: server errors,
    and replies that the document does not tell of.

    \b
    Examples:
      python -m benchmarks.service.fuzz --quick
      python -m benchmarks.service.fuzz --requests 2000
    """
    with tempfile.TemporaryDirectory() as name:
        folder, round = Path(name), 0
        writer = Writer(["The lighthouse is tall. It is old."])
        with Upstream(writer) as upstream, started(folder, upstream=upstream.url) as server:
            fuzzer = Fuzzer(server)
            while fuzzer.kinds and fuzzer.statuses.total() < requests:
                kind = fuzzer.kinds.pop(0)
                if fuzzer.ask(*kind, round):
                    fuzzer.kinds.append(kind)
                round += 1
        problems = recorded(folder)[1]
    errors = {what: n for what, n in fuzzer.statuses.items() if int(what.split()[-1]) >= 500}
    result: dict[str, Any] = {
        "requests": fuzzer.statuses.total(),
        "server_errors": sum(errors.values()),
        "errors": errors,
        "undocumented": sum(n for what, n in fuzzer.findings.items() if "Undocumented" in what),
        "findings": dict(fuzzer.findings),
        "statuses": dict(fuzzer.statuses),
        "audit_problems": len(problems),
    }
    return result | {"first": fuzzer.first, "reader": "tiny"}, rows_of(result)


if __name__ == "__main__":
    main()
