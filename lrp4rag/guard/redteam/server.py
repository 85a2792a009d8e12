"""`ServerTarget`: a guardrail that runs as a server, and judges by `POST /v1/judge`."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

import httpx
from pydantic import BaseModel, Field, ValidationError

from lrp4rag.guard.policy import Action
from lrp4rag.guard.policy.assessment import UNREMARKABLE
from lrp4rag.guard.redteam.cases import Case
from lrp4rag.guard.redteam.targets import Answered, NotJudged
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.strict_json import parse
from lrp4rag.util.text import one_line
from lrp4rag.util.types import Probability, first_fault

SECONDS = 120.0
"""The most seconds for a case."""
TRIES = 5
LONGEST_WAIT = 60.0
"""The most seconds between tries, whatever a server asks for."""
LARGEST_REPLY = 16 * 2**20
"""In bytes."""
_TOKEN = re.compile("[!-~]+")
Text = Annotated[str, Field(max_length=20_000)]
"""A bounded text; pydantic also refuses half of a character in it."""
VERSIONS = ("package", "detector", "reader", "policy")


class _Decision(BaseModel):
    id: Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,200}$")]  # a part of an address
    action: Action
    reason: Text
    policy: Text
    rule: Text | None = None


class _Finding(BaseModel):
    kind: str
    words: Text


class _Verdict(BaseModel):
    probability: Probability | None = None


class _Reply(BaseModel):
    """The part of a server's reply that is read."""

    decision: _Decision
    shown: str
    faithfulness: Probability | None
    fact_score: Probability | None
    findings: list[_Finding] = Field(max_length=10_000)
    verdict: _Verdict


class _Decided(BaseModel):
    """The record of a decision."""

    record: dict[str, Any]


class _Reason(BaseModel):
    """The words of a problem document."""

    error: dict[str, Any] = Field(default_factory=dict)
    detail: str = ""


class ServerTarget:
    """The server at `url`, with or without `/v1`; `token` is a bearer token of it. Size and fields of its
    replies are checked as a stranger's."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        client: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raise `InputError` for an invalid address."""
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            raise InputError(f"no address: {first_line(error)}", field="--server") from None
        plain = not address.userinfo and "?" not in url and "#" not in url
        if address.scheme not in ("http", "https") or not address.host or not plain:
            raise InputError(
                "give 'local', or a server's address such as http://127.0.0.1:8000, without name, password, "
                "? and #; a token goes into LRP4RAG_TOKEN",
                field="--server",
            )
        if token is not None and not _TOKEN.fullmatch(token):
            raise InputError(
                "no token: it is of ASCII letters, digits and signs, without spaces and line breaks",
                field="LRP4RAG_TOKEN",
            )
        self.name = self._base = url.rstrip("/").removesuffix("/v1")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = client or httpx.Client(timeout=SECONDS)
        self._sleep = sleep
        self._versions: dict[str, str] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        return self._versions

    def judge(self, case: Case) -> Answered:
        body = {
            "question": case.question,
            "passages": case.model_dump(mode="json")["passages"],
            "response": case.response,
        }
        status, content = self._ask("POST", "/v1/judge", json=body)
        if status != 200:
            raise NotJudged(f"the server answers {status}: {_reason(content)}")
        try:
            reply = _Reply.model_validate(parse(content))
        except ValueError as error:
            message, field = (
                first_fault(error) if isinstance(error, ValidationError) else (first_line(error), "JSON")
            )
            raise NotJudged(f"the server's reply is not of lrp4rag: {field}: {message}") from None
        if not self._versions:
            self._versions = {"policy": reply.decision.policy}
            self._versions |= self._read_versions(reply.decision.id)
        return Answered(
            reply.decision.action,
            reply.decision.reason,
            reply.decision.rule,
            reply.verdict.probability,
            reply.faithfulness,
            reply.fact_score,
            tuple(finding.words for finding in reply.findings if finding.kind not in UNREMARKABLE),
            reply.shown,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _read_versions(self, id: str) -> dict[str, str]:
        """Read the versions from a decision in the server's audit log; none where it does not tell."""
        try:
            _, content = self._ask("GET", f"/v1/decisions/{id}")
            record = _Decided.model_validate(parse(content)).record
        except (NotJudged, ValueError):
            return {}
        return {name: one_line(str(record[name]), 100) for name in VERSIONS if name in record}

    def _ask(self, method: str, path: str, **options: Any) -> tuple[int, bytes]:
        """Return status and content; ask again where the server has no time. Raises `InputError` where no
        case can be judged so, `NotJudged` where this reply does not come."""
        for left in reversed(range(TRIES)):
            status, wait, content = self._send(method, path, **options)
            if status != 429 or not left:
                break
            self._sleep(wait)
        if method == "POST" and status in (401, 403):
            raise InputError(
                f"the server refuses the token ({status}): give one of its tokens in the variable "
                "LRP4RAG_TOKEN; 'lrp4rag serve --new-token NAME' makes one",
                field="LRP4RAG_TOKEN",
            )
        if method == "POST" and status in (404, 405):
            raise InputError(
                f"{self.name} has no /v1/judge ({status}): give the address of 'lrp4rag serve'",
                field="--server",
            )
        return status, content

    def _send(self, method: str, path: str, **options: Any) -> tuple[int, float, bytes]:
        """Return status, the seconds after which to ask again, and content."""
        content = b""
        try:
            url = f"{self._base}{path}"
            with self._client.stream(method, url, headers=self._headers, **options) as reply:
                for chunk in reply.iter_bytes():
                    content += chunk
                    if len(content) > LARGEST_REPLY:
                        raise NotJudged(f"the server's reply is larger than {LARGEST_REPLY:,} bytes")
                return reply.status_code, _seconds(reply.headers.get("retry-after")), content
        except (httpx.ConnectError, UnicodeError) as error:  # UnicodeError: of a name that no host can have
            if self._versions:  # the server was there: only this case is lost
                raise NotJudged(f"the server did not answer: {first_line(error)}") from None
            raise InputError(
                f"{self.name} does not answer ({first_line(error)}): is the server running there?",
                field="--server",
            ) from None
        except httpx.HTTPError as error:
            raise NotJudged(f"the server did not answer: {type(error).__name__}") from None


def _seconds(header: str | None) -> float:
    try:
        seconds = float(header or "1")
    except ValueError:
        seconds = 1.0
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else 1.0


def _reason(content: bytes) -> str:
    try:
        problem = _Reason.model_validate(parse(content))
    except ValueError:
        return "no problem document"
    return one_line(str(problem.error.get("message") or problem.detail or "no reason given"), 300)
