"""Who waits for the reader, and who is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.worker import ModelWorker


class Idle:
    """A detector that only opens."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def __enter__(self) -> Idle:
        self.threads.append(threading.current_thread().name)
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.append(threading.current_thread().name)

    @contextmanager
    def interruptible(self, check: Callable[[], None]) -> Iterator[None]:
        self.check = check
        yield


@pytest.fixture
def worker():
    with ModelWorker(Idle(), most_waiting=3, seconds=0.1) as found:
        yield found


def test_one_thread_opens_uses_and_closes_the_reader() -> None:
    idle = Idle()
    with ModelWorker(idle, most_waiting=2) as worker:
        used = asyncio.run(worker.run(lambda _: threading.current_thread().name, 1))
    assert {used, *idle.threads} == {idle.threads[0]}
    assert len(idle.threads) == 2


def test_jobs_run_one_after_another_in_their_order(worker: ModelWorker) -> None:
    running, order = 0, []

    def job(number: int) -> None:
        nonlocal running
        running += 1
        assert running == 1
        time.sleep(0.01)
        running -= 1
        order.append(number)

    async def all_of_them() -> None:
        await asyncio.gather(*(worker.run(lambda _, k=k: job(k), 5) for k in range(3)))

    asyncio.run(all_of_them())
    assert order == [0, 1, 2]
    assert worker.waiting == 0


def test_what_belongs_to_an_answer_that_has_begun_goes_before_new_ones(worker: ModelWorker) -> None:
    order: list[str] = []

    async def all_of_them() -> None:
        first = asyncio.create_task(worker.run(lambda _: time.sleep(0.05), 5))
        await asyncio.sleep(0.01)
        new = asyncio.create_task(worker.run(lambda _: order.append("new"), 5))
        await asyncio.sleep(0.01)
        begun = asyncio.create_task(worker.run(lambda _: order.append("begun"), 5, admitted=True))
        await asyncio.gather(first, new, begun)

    asyncio.run(all_of_them())
    assert order == ["begun", "new"]


def test_too_many_are_refused_and_told_when_to_come_back(worker: ModelWorker) -> None:
    async def crowd() -> list[object]:
        jobs = (worker.run(lambda _: time.sleep(0.05), 5) for _ in range(6))
        return await asyncio.gather(*jobs, return_exceptions=True)

    found = asyncio.run(crowd())
    refused = [one for one in found if isinstance(one, Problem)]
    assert (found.count(None), len(refused)) == (3, 3)
    assert all(one.status == 429 and int(one.headers["Retry-After"]) >= 1 for one in refused)


def test_what_would_come_too_late_is_refused_at_once(worker: ModelWorker) -> None:
    worker.mean_seconds = 10.0

    async def two() -> None:
        first = asyncio.create_task(worker.run(lambda _: time.sleep(0.05), 5))
        await asyncio.sleep(0.01)
        started = time.monotonic()
        with pytest.raises(Problem):
            await worker.run(lambda _: None, 5)
        assert time.monotonic() - started < 0.04
        await worker.run(lambda _: None, 5, admitted=True)
        await first

    asyncio.run(two())


def test_jobs_that_differ_are_given_more_time_than_equal_ones() -> None:
    equal, unequal = (ModelWorker(Idle(), most_waiting=99, seconds=1.0) for _ in range(2))
    for _ in range(100):
        equal.learn(1.0)
        unequal.learn(0.5)
        unequal.learn(1.5)
    assert equal.seconds_for(9) == pytest.approx(9.0, abs=0.1)
    assert unequal.seconds_for(9) > 12.0
    unequal.waiting = equal.waiting = 8
    equal.admit(10.0)
    with pytest.raises(Problem):
        unequal.admit(10.0)


def test_an_idle_reader_takes_any_job(worker: ModelWorker) -> None:
    worker.learn(1000.0)
    worker.admit(1.0)


def test_one_who_has_gone_is_not_waited_for(worker: ModelWorker) -> None:
    ran = []

    async def vanish() -> None:
        busy = asyncio.create_task(worker.run(lambda _: time.sleep(0.1), 5))
        await asyncio.sleep(0.01)
        gone = asyncio.create_task(worker.run(lambda _: ran.append("gone"), 5))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0)
        assert worker.waiting == 1, "its slot is free"
        await busy
        await worker.run(lambda _: ran.append("next"), 5)

    asyncio.run(vanish())
    assert ran == ["next"]


def test_a_deadline_ends_the_waiting(worker: ModelWorker) -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(worker.run(lambda _: time.sleep(0.2), 0.05))
    assert worker.waiting == 1, "it takes the reader's time until it ends"
    asyncio.run(worker.run(lambda _: None, 5))
    assert worker.waiting == 0


def test_what_a_job_raises_is_raised(worker: ModelWorker) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(worker.run(lambda _: 1 / 0, 1))
    assert asyncio.run(worker.run(lambda _: 7, 1)) == 7


@pytest.mark.parametrize("seconds", [5.0, 0.05], ids=["its caller goes", "it is late"])
def test_a_job_that_nobody_waits_for_ends_at_the_next_layer(worker: ModelWorker, seconds: float) -> None:
    layers = 0

    def job(idle: Idle) -> None:
        nonlocal layers
        for _ in range(1000):
            idle.check()
            layers += 1
            time.sleep(0.005)

    async def vanish() -> None:
        task = asyncio.create_task(worker.run(job, seconds))
        await asyncio.sleep(0.02)
        if seconds > 1:
            task.cancel()
        with pytest.raises((asyncio.CancelledError, TimeoutError)):
            await task
        while worker.waiting:
            await asyncio.sleep(0.005)
        assert await worker.run(lambda idle: idle.check() or "next", 5) == "next"

    asyncio.run(vanish())
    assert 0 < layers < 100
