"""Second opinions beside the path of the answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest

from lrp4rag.guard.second_opinion import LLMJudge, Opinion, SecondOpinions, running
from lrp4rag.guard.second_opinion.running import AT_ONCE
from lrp4rag.source import Source
from tests.guard.second_opinion.scripted_llm import Reply, Script, completion, serving, verdict

SOURCES = (Source("Partners get 2 weeks."),)
OPINION = Opinion({}, "m", 0.0, 1, "malformed")


class Scripted:
    """A judge that waits so many seconds, or until it may; one that is asked about BROKEN raises."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.may = seconds, asyncio.Event()
        self.at_once = self.most = 0
        self.asked: list[str] = []

    async def ask(self, question: str, sources: tuple[Source, ...], response: str) -> Opinion:
        self.asked.append(response)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            else:
                await self.may.wait()
            if "BROKEN" in response:
                raise RuntimeError(response)
            return OPINION
        finally:
            self.at_once -= 1


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> float:
    started = time.monotonic()
    asyncio.run(body())
    return time.monotonic() - started


def offer(opinions: SecondOpinions, name: str, response: str = "A.") -> bool:
    return opinions.offer(name, "Q?", SOURCES, response)


class Told(dict[str, Opinion]):
    """Collects opinions by id."""

    async def __call__(self, name: str, opinion: Opinion) -> None:
        assert name not in self
        self[name] = opinion


def test_an_opinion_is_told_with_the_id_of_its_answer() -> None:
    script, told = Script([Reply(completion(verdict(supported="no")))]), Told()

    async def body() -> None:
        async with httpx.AsyncClient() as client, SecondOpinions(LLMJudge(client, url), told) as opinions:
            assert offer(opinions, "d1")
            assert offer(opinions, "d2")

    with serving(script) as url:
        run(body)
    assert {name: one.grounded for name, one in told.items()} == {"d1": False, "d2": False}


def test_so_many_are_asked_at_once() -> None:
    told = Told()

    async def body() -> None:
        judge = Scripted(0.02)
        async with SecondOpinions(judge, told) as opinions:
            for k in range(12):
                offer(opinions, str(k))
        assert judge.most == AT_ONCE

    run(body)
    assert len(told) == 12


def test_the_newest_is_dropped_where_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_WAITING", 4)
    told = Told()

    async def body() -> None:
        judge = Scripted()
        async with SecondOpinions(judge, told) as opinions:
            accepted = [offer(opinions, str(k)) for k in range(10)]
            assert accepted == [True] * 6 + [False] * 4
            judge.may.set()

    run(body)
    assert set(told) == {"0", "1", "2", "3", "4", "5"}


def test_the_end_does_not_wait_for_ever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "CLOSING_SECONDS", 0.2)

    async def body() -> None:
        async with SecondOpinions(Scripted(), Told()) as opinions:
            for k in range(6):
                offer(opinions, str(k))

    assert run(body) < 4
    assert "6 are dropped" in caplog.text


def test_an_error_of_one_is_not_that_of_others(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()

    async def tell(name: str, opinion: Opinion) -> None:
        if name == "disk full":
            raise OSError("CANARY")
        await told(name, opinion)

    async def body() -> None:
        async with SecondOpinions(Scripted(0.01), tell) as opinions:
            offer(opinions, "1")
            offer(opinions, "2", "BROKEN CANARY")
            offer(opinions, "disk full")
            offer(opinions, "3")

    run(body)
    assert list(told) == ["1", "3"]
    assert "CANARY" not in caplog.text
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 2
    assert "second opinion on disk full: OSError" in caplog.text


@pytest.mark.parametrize("when", ["running", "closing"])
def test_a_server_that_is_cancelled_lets_go(when: str) -> None:
    judge_of: list[Scripted] = []

    async def server() -> None:
        judge = Scripted()
        judge_of.append(judge)
        async with SecondOpinions(judge, Told()) as opinions:
            offer(opinions, "d")
            if when == "running":
                await asyncio.sleep(30)

    async def body() -> None:
        task = asyncio.create_task(server())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert judge_of[0].at_once == 0

    assert run(body) < 4


def test_nothing_is_accepted_when_the_end_has_begun() -> None:
    async def body() -> None:
        async with SecondOpinions(Scripted(), Told()) as opinions:
            pass
        assert not offer(opinions, "late")

    run(body)
