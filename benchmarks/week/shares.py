"""`shares`: what the audit log has of each quarter of a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from lrp4rag.guard.monitoring.windows import Window

LENGTH = timedelta(hours=6)


def shares(window: Window) -> Iterator[dict[str, Any]]:
    """Quarter by quarter: how many answers, the shares that were withheld for what the passages lack and for
    anything else, the mean probability and faithfulness."""
    start = window.period.start
    while start < window.period.end:
        some = [one for one in window.answers if start <= one.time < start + LENGTH]
        expired = [one for one in some if one.rule == "rules.null"]
        withheld = [one for one in some if not one.served and one.rule != "rules.null"]
        yield {
            "start": start.isoformat(),
            "answers": len(some),
            "nothing_to_answer_from": len(expired) / len(some) if some else None,
            "withheld_otherwise": len(withheld) / len(some) if some else None,
            "probability": _mean([one.probability for one in some]),
            "faithfulness": _mean([one.faithfulness for one in some]),
        }
        start += LENGTH


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None
