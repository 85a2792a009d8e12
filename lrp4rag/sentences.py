"""Sentences of a text, as character spans or as texts."""

from __future__ import annotations

import re


def split_sentences(text: str, language: str = "en") -> list[tuple[int, int]]:
    """(start, end) of each sentence, without the white space around it; a line break ends one too."""
    from sentencex import get_sentence_boundaries

    spans = []
    for boundary in get_sentence_boundaries(language, text):
        offset = boundary["start_index"]
        # Lists and headings have no full stop, but each line is a statement of its own.
        for line in re.finditer(r"[^\n]+", text[offset : boundary["end_index"]]):
            stripped = line.group().strip()
            if stripped:
                start = offset + line.start() + line.group().index(stripped)
                spans.append((start, start + len(stripped)))
    return spans


def sentences_of(text: str | None) -> list[str]:
    """The sentences themselves; none of what is missing."""
    return [(text or "")[start:end] for start, end in split_sentences(text or "")]
