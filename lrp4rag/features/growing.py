"""`Growing`: what was computed of the sentences of a response that is being written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reading import common_length

T = TypeVar("T")
Make = Callable[[Sequence[T]], Iterable[T]]
"""Is given the results of a response's first sentences, and makes those of the sentences after them."""


class Growing:
    """Results of a response's sentences, by name: each is made once, as long as the text and the tokens up to
    its sentence's end stay. What follows a sentence changes nothing of it."""

    def __init__(self) -> None:
        self._encoded: Encoded | None = None
        self._context: object = None
        self._results: dict[str, list[Any]] = {}
        self._after: dict[str, Growing] = {}

    def after(self, prompt: str) -> Growing:
        """Return the same of the response after another prompt, by what is other in it."""
        return self._after.setdefault(prompt, Growing())

    def copied(self) -> Growing:
        """Return the same response, which goes on otherwise."""
        same = Growing()
        same._encoded, same._context = self._encoded, self._context
        same._results = {name: [*results] for name, results in self._results.items()}
        return same

    def go_on(self, encoded: Encoded, context: object) -> None:
        """Go on with a response, and forget what it does not share with the one before: its last sentences,
        or all where it is compared with another `context`."""
        before, same = self._encoded, context is self._context
        shared = _shared(before, encoded) if before is not None and same else 0
        for results in self._results.values():
            del results[shared:]
        self._encoded, self._context = encoded, context

    def known(self, encoded: Encoded, name: str) -> int:
        """Count the sentences of a response whose results of this name are known."""
        return len(self._results.get(name, ())) if encoded is self._encoded else 0

    def of_each(self, encoded: Encoded, name: str, make: Make[T]) -> list[T]:
        """Return the results of all sentences of a response; of the last one that it went on with, only those
        that are not known are made."""
        if encoded is not self._encoded:
            return list(make(()))
        results = self._results.setdefault(name, [])
        results += list(make(results))
        return [*results]


def of_each(growing: Growing | None, encoded: Encoded, name: str, make: Make[T]) -> list[T]:
    """Return the results of all sentences of a response, which may not grow."""
    return list(make(())) if growing is None else growing.of_each(encoded, name, make)


def _shared(before: Encoded, after: Encoded) -> int:
    """Return how many sentences two responses begin with alike, in text and in tokens."""
    encodings = before, after
    tokens = (list(zip(each.response_ids, each.response_offsets, strict=True)) for each in encodings)
    same = common_length(*tokens)
    starts = [[start for start, _ in each.response_offsets] for each in encodings]
    count = 0
    for span, span_after in zip(before.sentences, after.sentences, strict=False):
        end = span[1]
        needed = max(bisect_left(each, end) for each in starts)
        if span != span_after or needed > same or before.response[:end] != after.response[:end]:
            break
        count += 1
    return count
