"""Answers as the server records them, at any time, and logs and windows of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lrp4rag.guard.audit import AuditLog, entry
from lrp4rag.guard.monitoring.windows import Answer, Period, Window

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
EARLY = Period(NOW - timedelta(days=35), NOW - timedelta(days=7))
LATE = Period(NOW - timedelta(days=7), NOW)
TOPICS, GENERATORS = ("leave", "travel", "it"), ("llama", "qwen")
TEXTS = {"question": "How many days?\x1b[31m", "passage 1": "Ten days.", "response": "=1+1 It is ten\ndays."}


def records(
    count: int,
    seed: int,
    *,
    worse: float = 0.0,
    only: str | None = None,
    retrieval: float = 0.0,
    **fixed: Any,
) -> list[dict[str, Any]]:
    """Of answers whose probabilities are `worse` and retrieval scores lower, of the topic or the generator
    `only` where one is named."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        topic, generator = str(rng.choice(TOPICS)), str(rng.choice(GENERATORS))
        hit = only in (None, topic, generator)
        probability = float(np.clip(rng.beta(0.5, 2.5) + (worse if hit else 0), 0, 1))
        faithfulness = float(np.clip(1 - probability + rng.normal(0, 0.05), 0, 1))
        action, reason = (
            ("serve", "grounded")
            if faithfulness > 0.85
            else ("mark", "suspect")
            if faithfulness > 0.6
            else ("withhold", "insufficient evidence")
        )
        found.append(
            {
                "id": f"{seed}-{number}",
                "kind": "response",
                "action": action,
                "reason": reason,
                "probability": probability,
                "threshold": 0.9,
                "faithfulness": faithfulness,
                "fact_score": faithfulness,
                "abstained": False,
                "characters": int(rng.lognormal(6, 0.4)),
                "sentence_count": 5,
                "passages": 5,
                "retrieval_score": float(rng.beta(14, 6)) - (retrieval if hit else 0),
                "topic": topic,
                "generator": generator,
                "detector": "d1",
                "policy": "p1",
            }
            | fixed
        )
    return found


def window(period: Period, some: list[dict[str, Any]]) -> Window:
    """The window of these records, spread over its period."""
    answers = tuple(
        Answer(**one, time=period.start + (k + 0.5) / len(some) * period.length) for k, one in enumerate(some)
    )
    return Window(period, answers)


def pair(**more: Any) -> tuple[Window, Window]:
    """A baseline of 450 answers and a window of 400, in which something is as given: each topic has more than
    a hundred, so that nothing is permuted."""
    return window(EARLY, records(450, 1)), window(LATE, records(400, 2, **more))


def write(
    path: Path, some: Iterable[tuple[datetime, dict[str, Any]]], *, texts: dict[str, str] | None = None
) -> None:
    """A log with records as if they had been written at these times."""
    stamp = entry.stamp
    with AuditLog.open(path, texts=True) as log:
        for time, record in some:
            with patch.object(entry, "stamp", lambda time=time: stamp(time)):
                log.append(record, texts if record["kind"] in ("response", "answer") else None)


def spread(period: Period, some: list[dict[str, Any]]) -> list[tuple[datetime, dict[str, Any]]]:
    return [(period.start + (k + 0.5) / len(some) * period.length, one) for k, one in enumerate(some)]
