"""What counting costs: the time of all updates of metrics for an answer, over that of its judgement."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from fastapi.testclient import TestClient

from benchmarks.command import Result, benchmark, count
from benchmarks.service.client import chat_body, examples, judge_body, responses
from benchmarks.service.server import audit_of, quick, reader, tiny_detector
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.guard.service import metrics as counted
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.judge import Detector

UPDATES = ("decided", "took", "missed", "queued", "queue_refused", "refused", "audit_failed", "said")
"""The functions that count."""
REPEATS = 200
Call = tuple[str, tuple[Any, ...]]


class Cost(NamedTuple):
    """Of an answer: how many updates, their seconds, and those in which the reader judged it."""

    updates: int
    seconds: float
    verdict: float


@contextmanager
def noted() -> Iterator[list[Call]]:
    """The updates that are made within."""
    calls: list[Call] = []

    def noting(name: str, function: Callable[..., None], *given: Any) -> None:
        calls.append((name, given))
        function(*given)

    noting_all: Any = {name: partial(noting, name, getattr(counted, name)) for name in UPDATES}
    with patch.multiple(counted, **noting_all):
        yield calls


def repeat(calls: Sequence[Call]) -> float:
    """Seconds of these updates, on average; the clocks of stages are read too."""
    started = time.perf_counter()
    for _ in range(REPEATS):
        for name, given in calls:
            if name == "took":
                with counted.timed(*given[:2]):
                    pass
            else:
                getattr(counted, name)(*given)
    return (time.perf_counter() - started) / REPEATS


def cost_of(ask: Callable[[int], object], number: int) -> Cost:
    """Of an answer, which is judged while this waits."""
    with noted() as calls:
        ask(number)
    verdicts = [given[2] for name, given in calls if name == "took" and given[0] == "verdict"]
    return Cost(len(calls), repeat(calls), sum(verdicts))


def summary(kind: str, costs: Sequence[Cost]) -> dict[str, float]:
    """The medians over the answers, and the highest ratio."""
    ratios = [one.seconds / one.verdict for one in costs]
    return {
        f"{kind}_updates": statistics.median(one.updates for one in costs),
        f"{kind}_updates_seconds": statistics.median(one.seconds for one in costs),
        f"{kind}_verdict_seconds": statistics.median(one.verdict for one in costs),
        f"{kind}_updates_over_verdict": statistics.median(ratios),
        f"{kind}_updates_over_verdict_max": max(ratios),
    }


@benchmark
@count("--answers", 20, "Answers that are judged whole, and as many that are streamed.")
@reader("default")
@quick(answers=3, reader="tiny")
def metrics(answers: int, reader: str, quick: bool) -> Result:
    """Judge answers in this process, note each update of a metric, and make the same updates again alone.

    \b
    Examples:
      python -m benchmarks.service metrics --quick
      python -m benchmarks.service metrics --answers 50
    """
    some = examples(answers + 1)
    with tempfile.TemporaryDirectory() as name, Upstream(Writer(responses(some))) as upstream:
        folder = Path(name)
        settings = Settings.load(None, audit=audit_of(folder), open=True, upstream=upstream.url)
        detector = tiny_detector(folder, "float32", 0.0) if reader == "tiny" else Detector.load()
        with TestClient(create_app(settings, detector)) as client:

            def judge(number: int) -> None:
                client.post("/v1/judge", json=judge_body(some[number])).raise_for_status()

            def chat(number: int) -> None:
                body = chat_body(number, some[number])
                client.post("/v1/chat/completions", json=body).raise_for_status()

            judge(answers)  # the first pass is slower
            costs = {
                kind: [cost_of(ask, number) for number in range(answers)]
                for kind, ask in (("response", judge), ("streamed", chat))
            }
            began = time.perf_counter()
            page = client.get("/metrics").text
            scraped = time.perf_counter() - began
    series = sum(line[:1] != "#" for line in page.splitlines())
    return {
        **summary("response", costs["response"]),
        **summary("streamed", costs["streamed"]),
        "scrape_seconds": scraped,
        "series": series,
    }
