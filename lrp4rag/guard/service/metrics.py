"""The metrics of `/metrics`, which every stage of the server updates; labels have values of fixed sets only.

Decisions are counted as the audit log has them, so that both tell the same. No label holds text or an id.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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

from lrp4rag.guard.policy import ACTIONS, Reason
from lrp4rag.guard.service.problems import Problem
from lrp4rag.util.errors import InputError

CONTENT_TYPE = CONTENT_TYPE_LATEST
REGISTRY = CollectorRegistry()
ProcessCollector(namespace="lrp4rag", registry=REGISTRY)

Kind = Literal["response", "answer", "sentence", "retrieval"]
Note = Literal["review", "feedback", "opinion"]
Stage = Literal["reading", "verdict", "checks", "audit", "first token", "held", "whole"]
Part = Literal[
    "verdict", "upstream", "retrieval", "conflicts", "citations", "facts", "omissions", "outdated",
    "disguise", "planted",
]  # fmt: skip
Full = Literal["full", "late"]

OTHER = "other"
"""Of a label, in the place of a value that is in no set."""
FINDINGS: dict[str, tuple[str, ...]] = {
    "retrieval": (
        "null", "empty", "expired", "not yet effective", "superseded", "below minimum", "duplicate",
        "history", "no minimum", "middle", "unreadable date",
    ),
    "conflicts": ("conflict",),
    "citations": ("verified", "misattributed", "fabricated"),
    "facts": ("grounded", "ungrounded", "unjudged"),
    "omissions": ("omitted",),
    "outdated": ("outdated",),
    "disguise": ("disguised",),
    "planted": ("planted",),
}  # fmt: skip
"""Kinds of findings, by check."""
STAGES: dict[Stage, tuple[Kind | Note, ...]] = {
    "reading": ("answer",),
    "verdict": ("response", "sentence"),
    "checks": ("response", "answer", "sentence", "retrieval"),
    "audit": (*get_args(Kind), *get_args(Note)),
    "first token": ("answer",),
    "held": ("sentence",),
    "whole": ("response",),
}
"""Of what each stage is a part."""
LABELS: dict[str, tuple[str, ...]] = {
    "kind": (*get_args(Kind), *get_args(Note)),
    "action": ACTIONS,
    "reason": get_args(Reason),
    "check": tuple(FINDINGS),
    "finding": tuple(one for found in FINDINGS.values() for one in found),
    "part": get_args(Part),
    "stage": tuple(STAGES),
    "said": ("grounded", "hallucinated", "unclear"),
    "correction": ("yes", "no", "open"),
    "why": get_args(Full),
    "status": tuple(map(str, (400, 401, 403, 404, 405, 413, 415, 422, 429, 499, 500, 501, 502, 503, 504))),
}
"""The values that each label may have, beside "other"."""

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 30)
_SHARES = (0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1)
_OURS: dict[str, Any] = {"namespace": "lrp4rag", "registry": REGISTRY}

DECISIONS = Counter(
    "decisions",
    "Decisions. Withheld is what has the action withhold or escalate.",
    ("kind", "action", "reason"),
    **_OURS,
)
FAITHFULNESS = Histogram(
    "faithfulness",
    "Share of an answer's sentences that are grounded.",
    ("kind",),
    buckets=_SHARES,
    **_OURS,
)
FACT_SCORE = Histogram(
    "fact_score", "Share of an answer's facts that are grounded.", ("kind",), buckets=_SHARES, **_OURS
)
FOUND = Counter("findings", "What checks found.", ("kind", "check", "finding"), **_OURS)
ABSTAINED = Counter(
    "abstained", "What is unlike the training data, whatever the policy makes of it.", ("kind",), **_OURS
)
UNAVAILABLE = Counter(
    "unavailable",
    "Verdicts, checks and answers of the upstream that did not come.",
    ("kind", "part"),
    **_OURS,
)
SAID = Counter(
    "said",
    "What people said of answers. A correction says the opposite of the decision; it is open where one of "
    "the two leaves open whether the answer is grounded.",
    ("kind", "said", "correction"),
    **_OURS,
)
SECONDS = Histogram(
    "stage_seconds",
    "Seconds of a stage: reading (a streamed answer's prompt), verdict, checks, audit (a record is written), "
    "first token (the upstream's), held (a sentence that has ended), whole (a response, request to reply).",
    ("stage", "kind"),
    buckets=_SECONDS,
    **_OURS,
)
QUEUED = Histogram("queue_seconds", "Seconds that a job waits for the reader.", buckets=_SECONDS, **_OURS)
WAITING = Gauge("waiting", "Jobs that wait for the reader, and the one that runs.", **_OURS)
MOST_WAITING = Gauge("most_waiting", "How many may: the setting most_waiting.", **_OURS)
QUEUE_REFUSED = Counter(
    "queue_refused",
    "Jobs refused because the queue is full, or because they would be done too late.",
    ("why",),
    **_OURS,
)
REFUSED = Counter("refused", "Requests refused, by HTTP status.", ("status",), **_OURS)
AUDIT_FAILURES = Counter("audit_failures", "Records that could not be written to the audit log.", **_OURS)
REVIEWS_WAITING = Gauge("reviews_waiting", "Escalated answers that wait for a reviewer.", **_OURS)
REPLICAS = Gauge("replicas", "Replicas that are there; one where the server has no others.", **_OURS)
REPLICAS.set(1)

_TIMED = {(stage, kind): SECONDS.labels(stage, kind) for stage, kinds in STAGES.items() for kind in kinds}


def _begin_at_zero() -> None:
    """What alerts look at: a counter that begins with its first event shows no increase by it."""
    for kind in get_args(Kind):
        DECISIONS.labels(kind, "serve", "grounded")
        DECISIONS.labels(kind, "withhold", "unavailable")
        ABSTAINED.labels(kind)
        for part in get_args(Part):
            UNAVAILABLE.labels(kind, part)
        for check, findings in FINDINGS.items():
            for finding in findings:
                FOUND.labels(kind, check, finding)
    for kind, what, correction in product(("review", "feedback"), LABELS["said"][:2], ("yes", "no")):
        SAID.labels(kind, what, correction)
    for kind, shares in product(("response", "answer"), (FAITHFULNESS, FACT_SCORE)):
        shares.labels(kind)
    for why in get_args(Full):
        QUEUE_REFUSED.labels(why)
    for status in LABELS["status"]:
        REFUSED.labels(status)


_begin_at_zero()


def _known(label: str, value: object) -> str:
    text = str(value)
    return text if text in LABELS[label] else OTHER


def decided(record: Mapping[str, Any]) -> None:
    """A decision, by its record in the audit log."""
    kind = _known("kind", record["kind"])
    DECISIONS.labels(kind, _known("action", record["action"]), _known("reason", record["reason"])).inc()
    for name, shares in (("faithfulness", FAITHFULNESS), ("fact_score", FACT_SCORE)):
        if record.get(name) is not None:
            shares.labels(kind).observe(record[name])
    for name, number in record.get("findings", {}).items():
        check, _, finding = name.partition(": ")
        FOUND.labels(kind, _known("check", check), _known("finding", finding)).inc(number)
    for check in record.get("unavailable", ()):
        UNAVAILABLE.labels(kind, _known("part", check)).inc()
    if record.get("abstained"):
        ABSTAINED.labels(kind).inc()


def missed(kind: Kind, part: Part = "verdict") -> None:
    """Something that did not come, and that no record tells."""
    UNAVAILABLE.labels(kind, part).inc()


@contextmanager
def missing(kind: Kind, part: Part = "verdict") -> Iterator[None]:
    """Counts what raises within, unless it is the request's fault or is refused, which is counted there."""
    try:
        yield
    except (Problem, InputError):
        raise
    except Exception:
        missed(kind, part)
        raise


def took(stage: Stage, kind: Kind | Note, seconds: float) -> None:
    """The time of a stage; `STAGES` has what there is."""
    _TIMED[stage, kind].observe(seconds)


@contextmanager
def timed(stage: Stage, kind: Kind | Note) -> Iterator[None]:
    """Takes the time of what is done within, whether it succeeds or not."""
    started = time.monotonic()
    try:
        yield
    finally:
        took(stage, kind, time.monotonic() - started)


def queued(seconds: float) -> None:
    """A job has waited for so long."""
    QUEUED.observe(seconds)


def queue_refused(why: Full) -> None:
    QUEUE_REFUSED.labels(why).inc()


def refused(status: int) -> None:
    """A request that was answered with an HTTP status from 400 on."""
    REFUSED.labels(_known("status", status)).inc()


def audit_failed() -> None:
    AUDIT_FAILURES.inc()


def said(kind: Note, what: str, correction: bool | None) -> None:
    """What a person said of an answer, and whether that corrects the decision (None: it is open)."""
    corrects = "open" if correction is None else "yes" if correction else "no"
    SAID.labels(kind, _known("said", what), corrects).inc()


def collected(*, waiting: int, most_waiting: int, reviews: int) -> list[Metric]:
    """All metrics, with what the server holds now."""
    WAITING.set(waiting)
    MOST_WAITING.set(most_waiting)
    REVIEWS_WAITING.set(reviews)
    return list(REGISTRY.collect())


class _Collected:
    """Metrics that were collected before, as `generate_latest` asks for them."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


def exposition(found: Iterable[Metric]) -> bytes:
    """Metrics as Prometheus reads them."""
    return generate_latest(_Collected(found))


DOOR = "door"
_DOORS = ("lrp4rag_refused", "lrp4rag_replicas")
"""What is counted where requests come in: each passes there, whether a replica refuses it or not."""
_OF_THE_PROCESS = "lrp4rag_process_"


def joined(replicas: Mapping[str, Iterable[Metric]]) -> bytes:
    """The metrics of several processes as Prometheus reads them, each sample with the name of its `replica`,
    and those of the process itself, which is the door before them."""
    REPLICAS.set(len(replicas))
    own = [one for one in REGISTRY.collect() if one.name in _DOORS or one.name.startswith(_OF_THE_PROCESS)]
    found: dict[str, Metric] = {}
    for replica, counted in ((DOOR, own), *sorted(replicas.items())):
        for one in counted:
            if replica != DOOR and one.name in _DOORS:
                continue
            all_of_it = found.setdefault(one.name, Metric(one.name, one.documentation, one.type))
            all_of_it.samples += [
                sample._replace(labels={**sample.labels, "replica": replica}) for sample in one.samples
            ]
    return exposition(found.values())
