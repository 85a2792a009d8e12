"""Sentences of a text, as texts."""

from __future__ import annotations

from lrp4rag.sentence_stream import sentences_in


def split_sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Their places: `sentences_in`."""
    return sentences_in(text)


def sentences_of(text: str | None) -> list[str]:
    """The sentences themselves; none of what is missing."""
    return [(text or "")[start:end] for start, end in sentences_in(text or "")]
