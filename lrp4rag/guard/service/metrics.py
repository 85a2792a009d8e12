"""The metrics of `/metrics`, which every stage of the server updates; labels have values of fixed sets only.

Decisions are counted as the audit log has them, so that both tell the same. No label holds text or an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.registry import Collector

from lrp4rag.guard.checks.registry import CHECKS
from lrp4rag.guard.policy import WITHHELD
from lrp4rag.guard.policy.reasons import CHECK_OF
from lrp4rag.guard.service.problems import Problem
from lrp4rag.util.errors import InputError

CONTENT_TYPE = CONTENT_TYPE_LATEST
REGISTRY = CollectorRegistry()
ProcessCollector(namespace="lrp4rag", registry=REGISTRY)

Kind = Literal["response", "answer", "sentence", "retrieval"]
Note = Literal["review", "feedback", "opinion"]
Stage = Literal["reading", "verdict", "checks", "audit", "first token", "held", "whole"]

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 30)
_SHARES = (0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1)
_counter = partial(Counter, namespace="lrp4rag", registry=REGISTRY)
_gauge = partial(Gauge, namespace="lrp4rag", registry=REGISTRY)
_histogram = partial(Histogram, namespace="lrp4rag", registry=REGISTRY)

DECISIONS = _counter(
    "decisions",
    f"Decisions. Withheld is what has the action {' or '.join(WITHHELD)}.",
    ("kind", "action", "reason"),
)
FAITHFULNESS = _histogram(
    "faithfulness", "Share of an answer's sentences that are grounded.", ("kind",), buckets=_SHARES
)
FACT_SCORE = _histogram(
    "fact_score", "Share of an answer's facts that are grounded.", ("kind",), buckets=_SHARES
)
FINDINGS = _counter("findings", "What checks found.", ("kind", "check", "finding"))
ABSTAINED = _counter(
    "abstained", "What is unlike the training data, whatever the policy makes of it.", ("kind",)
)
UNAVAILABLE = _counter(
    "unavailable", "Verdicts, checks and answers of the upstream that did not come.", ("kind", "part")
)
SAID = _counter(
    "said",
    "What people said of answers. A correction says the opposite of the decision; it is open where one of "
    "the two leaves open whether the answer is grounded.",
    ("kind", "said", "correction"),
)
SECONDS = _histogram(
    "stage_seconds",
    "Seconds of a stage: reading (a streamed answer's prompt), verdict, checks, audit (a record is written), "
    "first token (the upstream's), held (a sentence that has ended), whole (a response, request to reply).",
    ("stage", "kind"),
    buckets=_SECONDS,
)
QUEUED = _histogram("queue_seconds", "Seconds that a job waits for the reader.", buckets=_SECONDS)
WAITING = _gauge("waiting", "Jobs that wait for the reader, and the one that runs.")
MOST_WAITING = _gauge("most_waiting", "How many may: the setting most_waiting.")
QUEUE_REFUSED = _counter(
    "queue_refused",
    "Jobs refused because the queue is full, or because they would be done too late.",
    ("why",),
)
REFUSED = _counter("refused", "Requests refused, by HTTP status.", ("status",))
AUDIT_FAILURES = _counter("audit_failures", "Records that could not be written to the audit log.")
REVIEWS_WAITING = _gauge("reviews_waiting", "Escalated answers that wait for a reviewer.")
REPLICAS = _gauge("replicas", "Replicas that are there; one where the server has no others.")
REPLICAS.set(1)


def _begin_at_zero() -> None:
    """Start at zero the series that alerts look at: a counter that begins with its first event shows no
    increase by it."""
    for kind in get_args(Kind):
        DECISIONS.labels(kind, "serve", "grounded")
        DECISIONS.labels(kind, "withhold", "unavailable")
        ABSTAINED.labels(kind)
        for finding, check in CHECK_OF.items():
            FINDINGS.labels(kind, check, finding)
        for part in ("verdict", "upstream", *CHECKS):
            UNAVAILABLE.labels(kind, part)
    for kind, word, correction in product(
        ("review", "feedback"), ("grounded", "hallucinated"), ("yes", "no")
    ):
        SAID.labels(kind, word, correction)
    for kind, shares in product(("response", "answer"), (FAITHFULNESS, FACT_SCORE)):
        shares.labels(kind)
    for why in ("full", "late"):
        QUEUE_REFUSED.labels(why)
    for status in (401, 422, 429, 502, 503):
        REFUSED.labels(status)


_begin_at_zero()


def decided(record: Mapping[str, Any]) -> None:
    """Count a decision, by its record in the audit log."""
    kind = record["kind"]
    DECISIONS.labels(kind, record["action"], record["reason"]).inc()
    for name, shares in (("faithfulness", FAITHFULNESS), ("fact_score", FACT_SCORE)):
        if record.get(name) is not None:
            shares.labels(kind).observe(record[name])
    for name, number in record.get("findings", {}).items():
        check, _, finding = name.partition(": ")
        FINDINGS.labels(kind, check, finding).inc(number)
    for check in record.get("unavailable", ()):
        UNAVAILABLE.labels(kind, check).inc()
    if record.get("abstained"):
        ABSTAINED.labels(kind).inc()


def missed(kind: Kind, part: str = "verdict") -> None:
    """Count a verdict, a check or an answer that did not come, and that no record tells of."""
    UNAVAILABLE.labels(kind, part).inc()


@contextmanager
def missing(kind: Kind) -> Iterator[None]:
    """Count a missing verdict where the block raises, unless the request is at fault or is refused, which is
    counted elsewhere."""
    try:
        yield
    except (Problem, InputError):
        raise
    except Exception:
        missed(kind)
        raise


def took(stage: Stage, kind: Kind | Note, seconds: float) -> None:
    SECONDS.labels(stage, kind).observe(seconds)


def timed(stage: Stage, kind: Kind | Note) -> AbstractContextManager[object]:
    """Take the time of the block, whether it succeeds or not."""
    return SECONDS.labels(stage, kind).time()


def refused(status: int) -> None:
    """Count a request that was answered with an HTTP status from 400 on."""
    REFUSED.labels(status).inc()


def said(kind: Note, word: str, correction: bool | None) -> None:
    """Count what a person said of an answer, and whether that corrects the decision (None: it is open)."""
    SAID.labels(kind, word, {None: "open", True: "yes", False: "no"}[correction]).inc()


def collected(*, waiting: int, most_waiting: int, reviews: int) -> list[Metric]:
    """Return all metrics, with what the server holds now."""
    WAITING.set(waiting)
    MOST_WAITING.set(most_waiting)
    REVIEWS_WAITING.set(reviews)
    return list(REGISTRY.collect())


class _Collected(Collector):
    """Metrics that were collected before, as `generate_latest` asks for them."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def exposition(metrics: Iterable[Metric]) -> bytes:
    """Write metrics as Prometheus reads them."""
    return generate_latest(_Collected(metrics))


DOOR = "door"
_DOORS = ("lrp4rag_refused", "lrp4rag_replicas")
"""Metrics that are counted at the door: each request passes there, whether a replica refuses it or not."""
_OF_THE_PROCESS = "lrp4rag_process_"


def joined(replicas: Mapping[str, Iterable[Metric]]) -> bytes:
    """Write the metrics of several processes as Prometheus reads them, each sample with the name of its
    `replica`, and those of this process, which is the door before them."""
    REPLICAS.set(len(replicas))
    families: dict[str, Metric] = {}
    for replica, metrics in ((DOOR, REGISTRY.collect()), *sorted(replicas.items())):
        for metric in metrics:
            if (metric.name in _DOORS) != (replica == DOOR) and not metric.name.startswith(_OF_THE_PROCESS):
                continue
            family = families.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
            family.samples += [
                sample._replace(labels={**sample.labels, "replica": replica}) for sample in metric.samples
            ]
    return exposition(families.values())
