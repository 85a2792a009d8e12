"""Two weeks of requests: a quiet one, and one in which documents expire and a generator is swapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from lrp4rag.example import Example

BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
WEEK = timedelta(days=7)
WATCHED = BEGINS + WEEK
"""From when on things happen; the week before it is what alerts and drift compare with."""
EXPIRES = WATCHED + timedelta(days=3)
"""Day 4, 00:00."""
SWAPPED = WATCHED + timedelta(days=3, hours=12)
ENDS = WATCHED + WEEK

TOPICS = ("benefits", "leave", "products", "security", "travel")
EXPIRED = "travel"
STAYS, BEFORE, AFTER = "llama-2-13b-chat", "llama-2-70b-chat", "llama-2-7b-chat"
"""Generators: one writes a half of the answers throughout; another the other half, until it is swapped."""
BUSY = (1, 1, 1, 1, 1, 2, 4, 8, 12, 14, 14, 12, 10, 12, 14, 14, 12, 8, 6, 4, 3, 3, 2, 1)
"""Of the hours of a day, how many requests there are beside each other."""
SAYING = 0.04
"""The share of answers of which a user says whether it is right, by the labels."""


@dataclass(frozen=True, slots=True)
class Request:
    """An answer that is judged at a moment; `says` is what its user says of it, an hour later."""

    moment: datetime
    example: Example
    topic: str
    says: str | None

    @property
    def body(self) -> dict[str, Any]:
        """Of `POST /v1/judge`."""
        last = (EXPIRES - timedelta(days=1)).date()  # they are valid until it ends
        expires = {"expires": last.isoformat()} if self.topic == EXPIRED else {}
        passages = [{"text": text, "topic": self.topic, **expires} for text in self.example.passages]
        return {
            "question": self.example.question,
            "passages": passages,
            "response": self.example.response,
            "generator": self.example.generator,
        }


def requests(examples: Sequence[Example], count: int, seed: int) -> Iterator[Request]:
    """So many a week, in their order. Answers are drawn with replacement; a source has one topic."""
    random = Random(seed)
    sources = sorted({one.source for one in examples})
    topics = dict(zip(sources, random.choices(TOPICS, k=len(sources)), strict=True))
    by_generator = {
        name: [one for one in examples if one.generator == name] for name in (STAYS, BEFORE, AFTER)
    }
    moments = sorted(start + _offset(random) for start in (BEGINS, WATCHED) for _ in range(count))
    for moment in moments:
        other = BEFORE if moment < SWAPPED else AFTER
        example = random.choice(by_generator[random.choice((STAYS, other))])
        label = "hallucinated" if example.hallucinated else "grounded"
        says = label if random.random() < SAYING else None
        yield Request(moment, example, topics[example.source], says)


def _offset(random: Random) -> timedelta:
    """Into a week."""
    (hour,) = random.choices(range(24), BUSY)
    return timedelta(days=random.randrange(7), hours=hour, seconds=random.random() * 3600)
