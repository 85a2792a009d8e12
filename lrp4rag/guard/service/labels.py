"""What is recorded of an answer beside its scores: sizes, retrieval, and names that the settings list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lrp4rag.guard.service.settings import Settings
from lrp4rag.source import Source

OTHER = "other"
"""What a topic or a generator is called that the settings do not list."""


def labels(
    settings: Settings,
    sources: Sequence[Source],
    response: str | None = None,
    *,
    sentences: int | None = None,
    topic: str | None = None,
    generator: str | None = None,
) -> dict[str, Any]:
    """Fields of a decision's record; what is not known is left out.

    No words of a request are among them: a topic or a generator is one of those that the settings list, or
    "other". Without a topic, it is that of the passages, where they agree.
    """
    scores = [one.score for one in sources if one.score is not None]
    models = settings.generators if settings.model is None else (*settings.generators, settings.model)
    found = {
        "topic": _listed(_topic_of(sources) if topic is None else topic, settings.topics),
        "generator": _listed(generator, models),
        "passages": len(sources),
        "retrieval_score": max(scores, default=None),
        "characters": None if response is None else len(response),
        "sentence_count": sentences,
    }
    return {name: value for name, value in found.items() if value is not None}


def _listed(name: str | None, known: Sequence[str]) -> str | None:
    if name is None or not known:
        return None
    return name if name in known else OTHER


def _topic_of(sources: Sequence[Source]) -> str | None:
    named = {one.topic for one in sources}
    return named.pop() if len(named) == 1 else None
