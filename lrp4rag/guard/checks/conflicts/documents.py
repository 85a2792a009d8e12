"""What is known of the documents of two passages: whether they are versions of one, and which is newer."""

from __future__ import annotations

import re
from datetime import UTC

from lrp4rag.claims.names import find_names
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.guard.checks.gate.passage import read_passage
from lrp4rag.source import Source
from lrp4rag.util.text import WORD, normal, one_line, words_of

_VERSION = re.compile(r"v?\d+")


def are_versions(one: Source, other: Source) -> bool:
    """Say whether they are of two versions of one document."""
    return _same_document(one, other) and not _same_version(one, other)


def are_of_one_text(one: Source, other: Source) -> bool:
    """Say whether they are known to be of the same version of one document, which rarely contradicts
    itself."""
    return _same_document(one, other) and _same_version(one, other) and one.version is not None


def are_siblings(one: Source, other: Source) -> bool:
    """Say whether their titles tell two documents of one kind: "Drill X2 Manual" and "Drill X5 Manual", but
    not "Leave Policy v2" and "Leave Policy v3"."""
    first, second = (set(_words(source.title)) for source in (one, other))
    only = (first - second, second - first)
    differ = all(any(not _VERSION.fullmatch(word) for word in words) for words in only)
    return bool(first & second) and differ


def names_one(question: str, one: Source, other: Source) -> bool:
    """Say whether the question names something that only one of them names, where the other names something
    else: they are about different things, and do not contradict each other."""
    texts = [f"{source.title or ''} {source.text}" for source in (one, other)]
    known = [_folded(text) for text in texts]
    for name in find_names(question, Surroundings(" ".join(texts))):
        words = _folded(name.text)
        if (words <= known[0]) != (words <= known[1]):
            without = int(words <= known[0])
            others = (_folded(one.text) for one in find_names(texts[without]))
            return any(not other <= known[1 - without] for other in others)
    return False


def newer(one: Source, other: Source) -> int | None:
    """0 for the first, 1 for the second: the one that is effective later; without dates, the one with the
    higher version of the same document. None where neither is known to be."""
    passages = [read_passage(number, source, UTC) for number, source in enumerate((one, other))]
    starts = [passage.validity.period.start for passage in passages]
    if starts[0] and starts[1] and starts[0] != starts[1]:
        return int(starts[1] > starts[0])
    same = _same_document(one, other)
    return next((k for k in (0, 1) if same and passages[k].replaces(passages[1 - k])), None)


def named(number: int, source: Source) -> str:
    """'2 (Leave Policy 3.1, from 2024-01-01)'; the number counts from 0."""
    name = " ".join(one_line(part, 60) for part in (source.title, source.version) if part)
    known = [name, f"from {one_line(source.effective, 30)}" if source.effective else ""]
    about = ", ".join(part for part in known if part)
    return f"{number + 1} ({about})" if about else str(number + 1)


def _same_document(one: Source, other: Source) -> bool:
    first, second = (
        [word for word in _words(source.title) if not _VERSION.fullmatch(word)] for source in (one, other)
    )
    return bool(first) and first == second


def _same_version(one: Source, other: Source) -> bool:
    return (one.title, one.version, one.effective) == (other.title, other.version, other.effective)


def _words(text: str | None) -> list[str]:
    return words_of((text or "")[:500])


def _folded(text: str) -> set[str]:
    return {normal(word.casefold()) for word in WORD.findall(text)}
