"""The server at a given time: remembered verdicts go their way through policy, audit log and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self, cast
from unittest.mock import patch

from fastapi.testclient import TestClient

from benchmarks.service.server import audit_of
from benchmarks.week.traffic import AFTER, BEFORE, STAYS, TOPICS
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.operating import FEW_ALARMS
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import Example
from lrp4rag.features.blocks import PLAIN_BLOCKS, blocks_named
from lrp4rag.guard.monitoring.windows import Window
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.judge import Detector
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.progress import track

CLOCKS = ("lrp4rag.guard.audit.entry.datetime", "lrp4rag.guard.policy.assess.datetime")
"""Who asks what time it is: the audit log, and the checks of dates."""
QUARTER = timedelta(hours=6)


def judged(store: str | Path, sources: int | None = None) -> Iterator[tuple[Example, Verdict]]:
    """The answers of a store, each judged by a detector that did not learn from its source; of the first
    `sources` only, where that is given. The store needs the part `reading`."""
    rows, blocks = Rows.open(store).select_sources(sources), blocks_named(PLAIN_BLOCKS)
    tokens = tokens_of(rows, blocks)
    folds = folds_of(tokens, ONCE)
    for split in track(folds, len(folds), "learning"):
        detector = fit_detector(rows.select(split.train), tokens.take(split.train), blocks, point=FEW_ALARMS)
        kept = rows.select(split.test)
        for example, record in zip(kept.examples, kept.readings(), strict=True):
            yield example, detector.predict(record)


class Clock:
    """Set `now` (UTC)."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @contextmanager
    def told(self) -> Iterator[None]:
        """The server's clock is this one."""
        clock = self

        class Told(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return cast(Self, clock.now.astimezone(tz or UTC))

        with ExitStack() as stack:
            for name in CLOCKS:
                stack.enter_context(patch(name, Told))
            yield


@dataclass(frozen=True, slots=True, eq=False)
class RememberedVerdict(Verdict):
    """A verdict without the analysis that it was made of."""

    def to_dict(self) -> dict[str, Any]:
        return {}


class Remembered:
    """Judges what was judged before, as a detector does."""

    def __init__(self, judged: Iterable[tuple[Example, Verdict]]) -> None:
        self.card = FittedDetector.load("default").card
        self.versions = {"package": "simulated", "detector": "out of fold", "reader": "remembered"}
        self._known = {
            (one.question, one.response): RememberedVerdict(
                **{field.name: getattr(verdict, field.name) for field in fields(Verdict)}
            )
            for one, verdict in judged
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @contextmanager
    def interruptible(self, _: object) -> Iterator[None]:
        yield

    def judge(self, example: Example) -> RememberedVerdict:
        return self._known[example.question, example.response]


@contextmanager
def serving(detector: Remembered, folder: Path) -> Iterator[TestClient]:
    """The application in this process, with the default policy and an audit log in a folder."""
    settings = Settings.load(
        None,
        audit=audit_of(folder),
        open=True,
        per_minute=10**9,
        topics=list(TOPICS),
        generators=[STAYS, BEFORE, AFTER],
    )
    with TestClient(create_app(settings, cast(Detector, detector))) as client:
        yield client


def shares(window: Window) -> Iterator[dict[str, Any]]:
    """Of each quarter of a day: how many answers, the shares that were withheld for what the passages lack
    and for anything else, the mean probability and faithfulness."""
    start = window.period.start
    while start < window.period.end:
        some = [one for one in window.answers if start <= one.time < start + QUARTER]
        expired = [one.rule == "rules.null" for one in some]
        withheld = [not one.served and one.rule != "rules.null" for one in some]
        yield {
            "start": start.isoformat(),
            "answers": len(some),
            "nothing_to_answer_from": _mean(expired),
            "withheld_otherwise": _mean(withheld),
            "probability": _mean([one.probability for one in some]),
            "faithfulness": _mean([one.faithfulness for one in some]),
        }
        start += QUARTER


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None
