"""A judge behind a server that answers well, badly, late or not at all."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import httpx
import pytest

from lrp4rag.guard.second_opinion import Answer, LLMJudge, Opinion
from lrp4rag.guard.second_opinion.llm_judge import LARGEST_REPLY, LONGEST_MATERIAL
from lrp4rag.source import Source
from tests.guard.second_opinion.scripted_llm import GOOD, Reply, Script, completion, serving, verdict

QUESTION = "How long is parental leave?"
SOURCES = (Source("Partners get 2 weeks of leave."),)
RESPONSE = "Partners get 2 weeks [1]."

Ask = Callable[..., Opinion]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def ask(script: Script) -> Ask:
    """Ask once, through a judge with these settings."""

    def run(response: str = RESPONSE, sources: tuple[Source, ...] = SOURCES, **settings: Any) -> Opinion:
        async def asked() -> Opinion:
            async with httpx.AsyncClient() as client:
                defaults: dict[str, Any] = {"model": "m", "first_wait": 0.01, "seconds": 10}
                judge = LLMJudge(client, url, **defaults | settings)
                return await judge.ask(QUESTION, sources, response)

        with serving(script) as url:
            return asyncio.run(asked())

    return run


def test_a_good_reply_is_an_opinion(ask: Ask, script: Script) -> None:
    opinion = ask()
    assert {name: one.word for name, one in opinion.answers.items()} == GOOD
    assert (opinion.grounded, opinion.unanswered, opinion.attempts, opinion.failure) == (True, 0, 1, None)
    assert opinion.model == "m"
    assert 0 < opinion.seconds < 10
    assert script.paths == ["/v1/chat/completions"]
    (sent,) = script.asked
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0, 700)
    assert sent["response_format"] == {"type": "json_object"}
    assert "stream" not in sent


def test_what_a_server_need_not_know_is_left_out(ask: Ask, script: Script) -> None:
    ask(model=None)
    assert sorted(script.asked[0]) == ["max_tokens", "messages", "response_format", "temperature"]
    assert "Authorization" not in script.headers[0]


def test_the_key_is_sent_and_not_shown(ask: Ask, script: Script) -> None:
    ask(key="s3cret")
    assert script.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(LLMJudge(httpx.AsyncClient(), "http://x", key="s3cret"))


@pytest.mark.parametrize("key", ["näh", "a\nb", "\ud800"])
def test_a_key_that_no_header_holds_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        LLMJudge(httpx.AsyncClient(), "http://x", key=key)


NO_COMPLETION = {
    "empty": b"",
    "a web page": b"<html>hello</html>",
    "no object": b"[]",
    "null": b"null",
    "no choices": b'{"choices": []}',
    "an error": b'{"error": {"message": "no"}}',
    "two choices": json.dumps({"choices": [{"message": {"content": json.dumps(verdict())}}] * 2}).encode(),
    "no content": b'{"choices": [{"message": {"content": null, "refusal": "I cannot."}}]}',
    "parts": b'{"choices": [{"message": {"content": [{"type": "text", "text": "{}"}]}}]}',
    "content that is an object": b'{"choices": [{"message": {"content": {"supported": "yes"}}}]}',
    "another encoding": completion(verdict()).decode().encode("utf-16")[:-1],
    "no UTF-8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "too deep": b'{"choices":' + b"[" * 100_000,
    "events": b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    "prose": completion("Yes."),
    "cut content": completion(json.dumps(verdict())[:-9]),
}


@pytest.mark.parametrize("body", NO_COMPLETION.values(), ids=NO_COMPLETION.keys())
def test_a_malformed_reply_is_unanswered_and_not_asked_for_again(
    ask: Ask, script: Script, body: bytes
) -> None:
    script.replies = [Reply(body), Reply(completion(verdict()))]
    opinion = ask()
    assert (opinion.unanswered, opinion.grounded, opinion.failure) == (5, None, "malformed")
    assert len(script.asked) == opinion.attempts == 1


def test_a_giant_reply_is_given_up(ask: Ask, script: Script) -> None:
    script.replies = [Reply(completion("x" * (40 * LARGEST_REPLY)))]
    opinion = ask()
    assert (opinion.failure, opinion.attempts) == ("malformed", 1)


def test_a_reply_that_unfolds_is_given_up(ask: Ask, script: Script) -> None:
    script.replies = [Reply(gzip.compress(b" " * 2**24), headers={"Content-Encoding": "gzip"})]
    assert ask().failure == "malformed"
    assert script.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("reply", [None, Reply(completion(verdict()), drip=True)], ids=["none", "endless"])
def test_a_slow_reply_ends_at_the_deadline(ask: Ask, script: Script, reply: Reply | None) -> None:
    script.replies = [reply]
    opinion = ask(seconds=0.4)
    assert (opinion.failure, opinion.unanswered, opinion.attempts) == ("deadline", 5, 1)
    assert 0.25 < opinion.seconds < 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(ask: Ask, script: Script, status: int) -> None:
    script.replies = [Reply(status=status), Reply(completion(verdict()))]
    opinion = ask()
    assert (opinion.grounded, opinion.attempts, opinion.failure) == (True, 2, None)


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(status=500), "server error"),
        (Reply(status=529), "server error"),
        (Reply(completion(verdict()), cut=True), "unreachable"),
    ],
)
def test_a_server_that_fails_is_asked_so_many_times(
    ask: Ask, script: Script, reply: Reply, failure: str
) -> None:
    script.replies = [reply]
    opinion = ask(tries=4)
    assert (opinion.failure, opinion.unanswered, opinion.grounded) == (failure, 5, None)
    assert len(script.asked) == opinion.attempts == 4


@pytest.mark.parametrize("status", [201, 204, 301, 307, 400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not_asked_again(ask: Ask, script: Script, status: int) -> None:
    body = b"" if status == 204 else completion(verdict())
    script.replies = [Reply(body, status=status, headers={"Location": "/v1/chat/completions"})]
    opinion = ask()
    assert (opinion.failure, opinion.answers, opinion.attempts) == ("refused", {}, 1)


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:9/v1", "no address", "ftp://x/v1", "http://[", "http://x:99999"]
)
def test_a_server_that_is_not_there_is_an_opinion_without_answers(base: str) -> None:
    async def asked() -> Opinion:
        async with httpx.AsyncClient() as client:
            return await LLMJudge(client, base, first_wait=0.01).ask(QUESTION, SOURCES, RESPONSE)

    opinion = asyncio.run(asked())
    assert (opinion.failure, opinion.unanswered) == ("unreachable", 5)


def test_what_is_too_long_is_not_sent(ask: Ask, script: Script) -> None:
    opinion = ask(response="x" * LONGEST_MATERIAL)
    assert (opinion.failure, opinion.attempts, opinion.unanswered) == ("too long", 0, 5)
    assert script.asked == []


def test_what_is_just_not_too_long_is_sent_whole(ask: Ask, script: Script) -> None:
    room = LONGEST_MATERIAL - len(QUESTION) - len(SOURCES[0].text)
    assert ask(response="\U0001f600" * room).grounded is True
    assert script.asked[0]["messages"][1]["content"].count("\U0001f600") == room


def test_who_cancels_lets_go_of_the_connection(script: Script) -> None:
    script.replies = [None]

    async def cancelled(url: str) -> None:
        async with httpx.AsyncClient() as client:
            asking = asyncio.create_task(LLMJudge(client, url, seconds=30).ask(QUESTION, SOURCES, RESPONSE))
            while not script.asked:
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(script.gone.wait, 5)

    with serving(script) as url:
        asyncio.run(cancelled(url))


def test_who_cancels_while_it_waits_to_ask_again_is_not_kept(script: Script) -> None:
    script.replies = [Reply(status=503)]

    async def cancelled(url: str) -> None:
        async with httpx.AsyncClient() as client:
            asking = LLMJudge(client, url, first_wait=20).ask(QUESTION, SOURCES, RESPONSE)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asking, 0.5)

    started = time.monotonic()
    with serving(script) as url:
        asyncio.run(cancelled(url))
    assert time.monotonic() - started < 5
    assert len(script.asked) == 1


def test_no_text_is_logged(ask: Ask, script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.replies = [Reply(status=500, body=b"CANARY"), Reply(completion("CANARY"))]
    with caplog.at_level(logging.DEBUG):
        ask(response="CANARY", sources=(Source("CANARY", title="CANARY"),), key="KEY-CANARY")
    seen = [record for record in caplog.records if not record.name.startswith(("httpcore", "asyncio"))]
    assert seen
    assert not any("CANARY" in str(vars(record)) for record in seen)


def opinion_of(**words: Any) -> Opinion:
    answers: dict[Any, Answer] = {name: Answer(word, "R.") for name, word in words.items()}
    return Opinion(answers, "m", 1.0, 1)


def test_grounded_follows_from_what_is_said_of_the_claims() -> None:
    for supported, contradicted in product(("yes", "no", "unclear", None), repeat=2):
        words = {"supported": supported, "contradicted": contradicted}
        known = {name: word for name, word in words.items() if word is not None}
        clear = (supported, contradicted) == ("yes", "no") or None
        want = False if supported == "no" or contradicted == "yes" else clear
        assert opinion_of(**known, cited="no", omitted="yes", insufficient="yes").grounded is want


def test_a_record_holds_no_text() -> None:
    opinion = Opinion({"supported": Answer("no", "It quotes CANARY.")}, "m", 1.23456, 2)
    record = opinion.record
    assert record["answers"] == {"supported": "no"} | dict.fromkeys(list(GOOD)[1:])
    assert (record["grounded"], record["unanswered"], record["seconds"]) == (False, 4, 1.235)
    assert "CANARY" not in json.dumps(record)
    assert opinion.texts == {"reason supported": "It quotes CANARY."}
