"""A week in which a generator is swapped and documents expire: do alerts, drift and the review list tell?"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from fastapi.testclient import TestClient

from benchmarks.command import Report, benchmark, count
from benchmarks.service.server import audit_of, quick
from benchmarks.week.prometheus import Firing, Scrapes, firings
from benchmarks.week.simulation import Clock, Remembered, judged, serving, shares
from benchmarks.week.traffic import (
    AFTER,
    BEFORE,
    BEGINS,
    ENDS,
    EXPIRED,
    EXPIRES,
    STAYS,
    SWAPPED,
    WATCHED,
    Request,
    requests,
)
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.monitoring import report, review
from lrp4rag.guard.monitoring.drift import compare
from lrp4rag.guard.monitoring.review import review_list
from lrp4rag.guard.monitoring.windows import Period, read_window
from lrp4rag.training.folds import ONCE
from lrp4rag.util.progress import track

SCRAPED = timedelta(minutes=5)
LATER = timedelta(hours=1)
"""After an answer, a user says what it is."""
LISTED = 10
"""Of the list for reviewers, so many are kept."""


def serve(
    client: TestClient,
    clock: Clock,
    asked: Iterable[Request],
    scrapes: Scrapes,
    every: timedelta = SCRAPED,
) -> None:
    """Send each request at its time, and what users say; metrics are read between, so often."""
    said: list[tuple[datetime, str, str]] = []
    next_scrape = BEGINS

    def until(moment: datetime) -> None:
        nonlocal next_scrape
        while True:
            due = min(next_scrape, said[0][0]) if said else next_scrape
            if due > moment:
                break
            clock.now = due
            if due == next_scrape:
                scrapes.add(due)
                next_scrape += every
            else:
                _, decision, says = heapq.heappop(said)
                _sent(client, "/v1/feedback", {"decision": decision, "said": says})
        clock.now = moment

    for one in asked:
        until(one.moment)
        reply = _sent(client, "/v1/judge", one.body)
        if one.says is not None:
            heapq.heappush(said, (one.moment + LATER, reply["decision"]["id"], one.says))
    until(ENDS)


def _sent(client: TestClient, route: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = client.post(route, json=body)
    reply.raise_for_status()
    return dict(reply.json())


def told(found: Iterable[Firing]) -> Iterator[dict[str, Any]]:
    """JSON values."""
    for one in found:
        yield {
            "alert": one.alert,
            "start": one.start.isoformat(),
            "end": one.end.isoformat(),
            "value": one.value,
            "hours_after_expiry": (one.start - EXPIRES) / timedelta(hours=1),
            "hours_after_swap": (one.start - SWAPPED) / timedelta(hours=1),
        }


@benchmark
@click.argument("store", type=click.Path(exists=True, file_okay=False))
@count("--answers", 5000, "Of a week.")
@click.option("--sources", type=click.IntRange(10), help="Of the store, so many only.")
@click.option("--seed", default=0, show_default=True, help="Of the traffic.")
@quick(answers=60, sources=20)
def main(store: str, answers: int, sources: int | None, seed: int, quick: bool) -> Report:
    """Two weeks of labelled answers through the server: a quiet one, then one in which documents of a topic
    expire on day 4 and the generator of half of the answers is swapped at noon of that day.

    Verdicts are of a detector that did not learn from the answer's source; they are remembered, and
    everything after them (policy, checks, audit log, metrics) is the server's. Prometheus evaluates the
    alerts on what /metrics had every five minutes.

    \b
    Examples:
      lrp4rag extract RAGTRUTH --parts reading --store STORE --workers 2
      python -m benchmarks.week STORE --out docs/results/week/week.json
      python -m benchmarks.week.page
    """
    known = list(judged(store, sources))
    asked = list(requests([example for example, _ in known], answers, seed))
    clock, scrapes = Clock(BEGINS), Scrapes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with clock.told(), serving(Remembered(known), folder) as client:
            serve(client, clock, track(asked, len(asked), "judging"), scrapes)
        with AuditLog.open(audit_of(folder), read_only=True) as log:
            windows = [read_window(log, Period(*one)) for one in ((BEGINS, WATCHED), (WATCHED, ENDS))]
            drift = compare(*windows)
            listed = review_list(log, Period(WATCHED, ENDS))
            verified = log.verify()
        fired = firings(scrapes, BEGINS, ENDS, folder)
    reviews = review.record(listed)
    result: dict[str, Any] = {
        "answers_each_week": answers,
        "distinct_answers": len(known),
        "sources_in_all": len({example.source for example, _ in known}),
        "protocol": ONCE.words,
        "begins": BEGINS.isoformat(),
        "watched": WATCHED.isoformat(),
        "ends": ENDS.isoformat(),
        "expires": EXPIRES.isoformat(),
        "expired_topic": EXPIRED,
        "swapped": SWAPPED.isoformat(),
        "generators": {"stays": STAYS, "before": BEFORE, "after": AFTER},
        "audit_problems": len(verified.problems),
        "alerts": list(told(fired)),
        "drift": report.record(drift),
        "review": {**reviews, "items": reviews["items"][:LISTED]},
        "shares": [one for window in windows for one in shares(window)],
    }
    lines = [f"{one.start} to {one.end}: {one.alert} ({one.value:.3g})" for one in fired]
    return result, [*lines, "", result["drift"]["headline"], *result["drift"]["next"], "", str(reviews["of"])]


if __name__ == "__main__":
    main()
