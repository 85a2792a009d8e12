"""What `/metrics` counts; labels have few values, and none holds text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 30)

DECISIONS = Counter(
    "lrp4rag_decisions",
    "Decisions by kind, action and reason.",
    ("kind", "action", "reason"),
    registry=REGISTRY,
)
HELD = Histogram(
    "lrp4rag_held_seconds",
    "For which a sentence is held until it is judged.",
    registry=REGISTRY,
    buckets=_SECONDS,
)
JUDGED = Histogram(
    "lrp4rag_judge_seconds", "In which a response is judged.", registry=REGISTRY, buckets=_SECONDS
)
WAITING = Gauge("lrp4rag_waiting", "Jobs that wait for the reader, and the one that runs.", registry=REGISTRY)
REFUSED = Counter("lrp4rag_refused", "Requests refused, by status.", ("status",), registry=REGISTRY)
