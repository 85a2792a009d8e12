"""`ModelWorker`: the one thread that uses the reader, and who waits for it."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from queue import PriorityQueue
from typing import Any, TypeVar

from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.problems import busy
from lrp4rag.judge import Detector

T = TypeVar("T")
Job = Callable[[Detector], T]

_NEWEST = 0.1
"""The weight of the newest job in the mean of the jobs' seconds, and in their variance."""
_MARGIN = 3.0
"""Standard deviations by which jobs may take longer than expected and still be done in time."""


class _GoneError(Exception):
    """Nobody waits for the job that runs."""


class _Thread:
    """Runs what is submitted one after another: urgent jobs first, else in their order."""

    def __init__(self, name: str) -> None:
        self._jobs: PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any] | None]] = PriorityQueue()
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        future: Future[T] = Future()
        self._jobs.put((0 if urgent else 1, next(self._numbers), future, job))
        return future

    def shutdown(self) -> None:
        """Wait until all that was submitted has been done."""
        self._jobs.put((2, next(self._numbers), Future(), None))
        self._thread.join()

    def _work(self) -> None:
        while True:
            _, _, future, job = self._jobs.get()
            if job is None:
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except BaseException as error:  # whoever waits for it is told
                future.set_exception(error)


class ModelWorker:
    """Runs jobs on a detector one after another, in a thread of its own.

    A job of an answer that has begun goes before a job that would begin another. A job that would not be
    done in time is refused at once. A job whose caller has gone, or waits no longer, is not begun, or ends
    before the reader's next layer. Use it as a context manager: the detector is open while it runs.
    """

    def __init__(self, detector: Detector, *, most_waiting: int, seconds: float = 1.0) -> None:
        """Take a job to cost `seconds` before one was run."""
        self.detector, self.most_waiting = detector, most_waiting
        self.mean_seconds, self._variance = seconds, seconds**2
        self.waiting, self._lock = 0, threading.Lock()
        self._gone: threading.Event | None = None  # of the job that runs
        self._thread = _Thread("reader")
        self._open = ExitStack()

    def __enter__(self) -> ModelWorker:
        self._thread.submit(self._enter).result()
        return self

    def _enter(self) -> None:
        self._open.enter_context(self.detector)
        self._open.enter_context(self.detector.interruptible(self._check))

    def _check(self) -> None:
        if self._gone is not None and self._gone.is_set():
            raise _GoneError

    def __exit__(self, *_: object) -> None:
        """Wait for the job that runs, and let go of the reader."""
        self._thread.submit(self._open.close)
        self._thread.shutdown()

    def admit(self, seconds: float) -> None:
        """Raise a problem (429) where a job would not be done in `seconds`, or too many wait."""
        full = self.waiting >= self.most_waiting
        if full or (self.waiting and self.seconds_for(self.waiting + 1) > seconds):
            metrics.QUEUE_REFUSED.labels("full" if full else "late").inc()
            raise busy(self.waiting * self.mean_seconds)

    def seconds_for(self, jobs: int) -> float:
        """Return the seconds in which so many jobs are done, even where they take longer than most."""
        # Jobs differ from their mean each on its own, and all alike by as much as the mean is unsure.
        spread = jobs + jobs**2 * _NEWEST / (2 - _NEWEST)
        return jobs * self.mean_seconds + _MARGIN * math.sqrt(spread * self._variance)

    def learn(self, seconds: float) -> None:
        """Learn from the seconds of a job: moving mean and variance (West 1979)."""
        difference = seconds - self.mean_seconds
        self.mean_seconds += _NEWEST * difference
        self._variance = (1 - _NEWEST) * (self._variance + _NEWEST * difference**2)

    async def run(self, job: Job[T], seconds: float, *, admitted: bool = False) -> T:
        """Run a job; return or raise what it does. An `admitted` job belongs to an answer that has begun: it
        goes before the others, and is not refused.

        Raises a problem (429) as `admit` does, and `TimeoutError` where it is not done in `seconds`.
        """
        if not admitted:
            self.admit(seconds)
        with self._lock:
            self.waiting += 1
        submitted, gone = time.monotonic(), threading.Event()
        future = self._thread.submit(lambda: self._timed(job, submitted, gone), urgent=admitted)
        # Not when the caller goes: until the job ends it takes the reader's time.
        future.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        finally:
            gone.set()

    def _ended(self, _: object) -> None:
        with self._lock:
            self.waiting -= 1

    def _timed(self, job: Job[T], submitted: float, gone: threading.Event) -> T:
        started, self._gone = time.monotonic(), gone
        metrics.QUEUED.observe(started - submitted)
        try:
            return job(self.detector)
        finally:
            self._gone = None
            took = time.monotonic() - started
            if not gone.is_set() or took > self.mean_seconds:  # what was cut short tells the least it takes
                self.learn(took)
