"""The simulated week, on a few answers with verdicts that are made up."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.service.server import audit_of
from benchmarks.week.__main__ import serve
from benchmarks.week.prometheus import Scrapes, firings
from benchmarks.week.simulation import Clock, Remembered, serving, shares
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
    requests,
)
from lrp4rag.classifiers.verdict import Sentence, Verdict
from lrp4rag.example import Example
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.monitoring.windows import Period, read_window
from lrp4rag.guard.service import metrics


def judged(number: int, generator: str) -> tuple[Example, Verdict]:
    """The worse generator's answers are hallucinated."""
    response = f"The tower of {generator} is {number + 10} metres tall."
    wrong = generator == AFTER
    example = Example(
        "How tall is the tower?",
        [response],
        response,
        labels=[],
        source=f"source {number}",
        generator=generator,
    )
    probability = 0.9 if wrong else 0.1
    sentence = Sentence(
        0, len(response), response, None, (), 0, "unsupported" if wrong else "supported", probability
    )
    return example, Verdict(probability, 0.5, None, None, (), (sentence,))


@pytest.fixture(scope="module")
def known() -> list[tuple[Example, Verdict]]:
    return [judged(number, name) for number in range(20) for name in (STAYS, BEFORE, AFTER)]


def test_traffic_is_in_order_and_its_events_have_their_times(known) -> None:
    examples = [example for example, _ in known]
    found = list(requests(examples, 300, seed=1))
    assert found == sorted(found, key=lambda one: one.moment)
    assert [one.body for one in found] == [one.body for one in requests(examples, 300, seed=1)]
    assert sum(one.moment < WATCHED for one in found) == sum(one.moment >= WATCHED for one in found) == 300
    assert all(BEGINS <= one.moment < ENDS for one in found)
    for one in found:
        assert one.example.generator in ((STAYS, BEFORE) if one.moment < SWAPPED else (STAYS, AFTER))
        assert ("expires" in one.body["passages"][0]) == (one.topic == EXPIRED)


def test_what_happens_is_in_the_log_at_its_time(known, tmp_path: Path) -> None:
    asked = list(requests([example for example, _ in known], 60, seed=2))
    clock, scrapes = Clock(BEGINS), Scrapes()
    with clock.told(), serving(Remembered(known), tmp_path) as client:
        serve(client, clock, asked, scrapes, every=timedelta(days=1))
    with AuditLog.open(audit_of(tmp_path), read_only=True) as log:
        assert log.verify().whole
        kinds = Counter(entry.kind for entry in log.entries())
        window = read_window(log, Period(WATCHED, ENDS))
        answers = read_window(log, Period(BEGINS, WATCHED)).answers + window.answers
    assert kinds == {"response": 120, "feedback": sum(one.says is not None for one in asked)}
    assert [one.time for one in answers] == [one.moment for one in asked]
    for one, given in zip(answers, asked, strict=True):
        expired = given.topic == EXPIRED and given.moment >= EXPIRES
        assert one.generator == given.example.generator
        wrong = one.generator == AFTER
        assert one.rule == ("rules.null" if expired else "claims.most" if wrong else "verdict")
        assert one.served != (expired or wrong)
    quarters = list(shares(window))
    assert len(quarters) == 28
    assert sum(one["answers"] for one in quarters) == 60
    assert {one["nothing_to_answer_from"] for one in quarters[:12]} <= {0, None}


@pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="Prometheus is not installed: apt-get install prometheus",
)
def test_alerts_are_those_of_prometheus(tmp_path: Path) -> None:
    """Half a day, in which the audit log cannot be written once."""
    scrapes, failed = Scrapes(), BEGINS + timedelta(hours=6)
    for step in range(145):
        moment = BEGINS + timedelta(minutes=5 * step)
        if moment == failed:
            metrics.audit_failed()
        scrapes.add(moment)
    (found,) = firings(scrapes, BEGINS, moment, tmp_path)
    assert found.alert == "LRP4RAGAuditFails"
    assert timedelta(0) <= found.start - failed <= timedelta(minutes=5)
    assert found.end - failed <= timedelta(minutes=15)
