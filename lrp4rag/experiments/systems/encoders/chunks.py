"""Windows of a text: consecutive sentences of about so many words."""

from __future__ import annotations

from collections.abc import Iterable

from lrp4rag.sentences import split_sentences


def chunk_spans(text: str, words: int) -> list[tuple[int, int]]:
    """Characters of runs of whole sentences with at most `words` words, or of a single longer sentence."""
    found: list[tuple[int, int]] = []
    count = 0
    for start, end in split_sentences(text):
        own = len(text[start:end].split())
        if found and count + own <= words:
            found[-1] = (found[-1][0], end)
            count += own
        else:
            found.append((start, end))
            count = own
    return found


def chunks_of(texts: Iterable[str], words: int) -> list[str]:
    """The chunks of each text, one text after the other."""
    return [text[start:end] for text in texts for start, end in chunk_spans(text, words)]
