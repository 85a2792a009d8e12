"""`Judge`: a model behind an OpenAI-compatible endpoint, and its `Opinion` on an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpx
import stamina
from pydantic import BaseModel, ConfigDict, Field

from lrp4rag.guard.second_opinion.questions import QUESTIONS, Answer, Name, Word, messages, read_answers
from lrp4rag.source import Source
from lrp4rag.util.strict_json import parse

Failure = Literal["too long", "deadline", "unreachable", "busy", "server error", "refused", "malformed"]

LARGEST_REPLY = 2**18
"""Bytes."""
LONGEST_MATERIAL = 200_000
"""Characters of question, passages and answer, which are not cut: an answer may rest on what is cut off."""
_PASSING = (httpx.TimeoutException, httpx.NetworkError, httpx.ProxyError, httpx.RemoteProtocolError)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model answered about an answer: to each question that it answered, and how it came about.

    `failure` says why it answered none. `attempts` are requests sent, `seconds` what all of it took.
    """

    answers: Mapping[Name, Answer]
    model: str | None
    seconds: float
    attempts: int
    failure: Failure | None = None

    @property
    def unanswered(self) -> int:
        return len(QUESTIONS) - len(self.answers)

    @property
    def faults(self) -> list[Name]:
        """The questions whose answer finds a fault."""
        return [name for name, one in self.answers.items() if one.word == QUESTIONS[name].fault]

    @property
    def grounded(self) -> bool | None:
        """False where a claim is unsupported or contradicted, True where both are denied, None where that is
        unclear or unanswered. The other questions do not count: an answer that leaves out a condition may
        still be grounded."""
        words = self._word("supported"), self._word("contradicted")
        if words[0] == "no" or words[1] == "yes":
            return False
        return True if words == ("yes", "no") else None

    @property
    def record(self) -> dict[str, Any]:
        """JSON values that hold no text: for a log that nothing is erased from."""
        return {
            "answers": {name: self._word(name) for name in QUESTIONS},
            "grounded": self.grounded,
            "unanswered": self.unanswered,
            "failure": self.failure,
            "judge": self.model,
            "seconds": round(self.seconds, 3),
            "attempts": self.attempts,
        }

    @property
    def texts(self) -> dict[str, str]:
        """The reasons, which may quote passages and answer, by the names that they have in a log."""
        return {f"reason {name}": one.reason for name, one in self.answers.items()}

    def _word(self, name: Name) -> Word | None:
        return self.answers[name].word if name in self.answers else None


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks the model `model` of a server at `base` (…/v1), through a client that belongs to the caller.

    `seconds` are for everything, tries and waits together. A request is sent `tries` times at most: again
    where the connection fails, and at status 429 and 5xx, after `Retry-After` where the server gives it, else
    after `first_wait` seconds, doubled each time. `json_mode` asks the server for JSON only, which some do
    not know. Raises `ValueError` for a key that no header can hold.
    """

    client: httpx.AsyncClient
    base: str
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    seconds: float = 30.0
    tries: int = 3
    first_wait: float = 0.5
    most_tokens: int = 700
    json_mode: bool = True

    def __post_init__(self) -> None:
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise ValueError("key: give printable ASCII characters")

    async def ask(self, question: str, sources: Sequence[Source], response: str) -> Opinion:
        """Raises nothing but `asyncio.CancelledError`: what goes wrong is an opinion without answers."""
        started, sent = time.monotonic(), _Sent()
        answers: Mapping[Name, Answer] = {}
        failure: Failure | None = None
        try:
            if _length(question, sources, response) > LONGEST_MATERIAL:
                raise _Failed("too long")
            async with asyncio.timeout(self.seconds):
                answers = await self._answers(messages(question, sources, response), sent)
            failure = None if answers else "malformed"
        except TimeoutError:
            failure = "deadline"
        except _Failed as error:
            failure = error.failure
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL):
            failure = "unreachable"
        return Opinion(answers, self.model, time.monotonic() - started, sent.attempts, failure)

    async def _answers(self, chat: list[dict[str, str]], sent: _Sent) -> dict[Name, Answer]:
        body, ends = self._body(chat), time.monotonic() + self.seconds

        def again(error: Exception) -> bool | float:
            """Whether, or in how many seconds; what would be after the deadline is not waited for."""
            wait = error.wait if isinstance(error, _Failed) else None
            if wait is not None:
                return wait if wait < ends - time.monotonic() else False
            return isinstance(error, _PASSING) or (isinstance(error, _Failed) and error.passing)

        # Not the decorator: that would put what is asked into stamina's log.
        async for attempt in stamina.retry_context(
            again,
            attempts=self.tries,
            timeout=self.seconds,
            wait_initial=self.first_wait,
            wait_jitter=self.first_wait,
        ):
            with attempt:
                sent.attempts += 1
                return read_answers(_content(await self._reply(body)))
        raise AssertionError("stamina raises the last error")

    def _body(self, chat: list[dict[str, str]]) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": chat, "temperature": 0, "max_tokens": self.most_tokens}
        if self.model is not None:
            body["model"] = self.model
        if self.json_mode:
            body["response_format"] = {"type": "json_object"}
        return body

    async def _reply(self, body: Mapping[str, Any]) -> bytes:
        """Of one request. Raises `_Failed` for one that is none, or too large."""
        headers = {"Accept-Encoding": "identity"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        async with self.client.stream(
            "POST",
            f"{self.base.rstrip('/')}/chat/completions",
            json=body,
            headers=headers,
            timeout=httpx.Timeout(self.seconds, connect=min(self.seconds, 10)),
            follow_redirects=False,
        ) as reply:
            if reply.status_code != 200:
                raise _refused(reply)
            if reply.headers.get("Content-Encoding", "identity").casefold() != "identity":
                raise _Failed("malformed")  # a few bytes may unfold to gigabytes
            found = bytearray()
            async for chunk in reply.aiter_raw():
                found += chunk
                if len(found) > LARGEST_REPLY:
                    raise _Failed("malformed")
            return bytes(found)


@dataclass(slots=True)
class _Sent:
    """Counts requests, however it ends."""

    attempts: int = 0


class _Failed(Exception):  # noqa: N818 - it ends as a failure of an opinion
    """`passing`: the same request may succeed later, in `wait` seconds where that is known."""

    def __init__(self, failure: Failure, *, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(failure)
        self.failure, self.passing, self.wait = failure, passing, wait


class _Message(BaseModel):
    model_config = ConfigDict(strict=True)

    content: str


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1, max_length=1)


def _content(reply: bytes) -> str:
    """The text of a completion."""
    try:
        return _Completion.model_validate(parse(reply)).choices[0].message.content
    except ValueError:  # pydantic raises one too
        raise _Failed("malformed") from None


def _refused(reply: httpx.Response) -> _Failed:
    status = reply.status_code
    if status == 429 or status >= 500:
        failure: Failure = "busy" if status == 429 else "server error"
        return _Failed(failure, passing=True, wait=_retry_after(reply.headers.get("Retry-After", "")))
    return _Failed("refused")


def _retry_after(given: str) -> float | None:
    """Seconds: the header has a number of them or a date. None for neither."""
    try:
        if given.isascii() and given.isdigit():
            return float(given)
        then = parsedate_to_datetime(given)
        return max((then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _length(question: str, sources: Sequence[Source], response: str) -> int:
    read = sum(len(one.text) + sum(map(len, one.names.values())) for one in sources)
    return len(question) + read + len(response)
