"""`Excerpt`: of a long prompt, the sentences that a response is compared with, and the way back from them.

A detector learned from short prompts, and a reader's window ends. So of a long prompt it reads the sentences
of the passages that are most like those of the response and like the question, with their neighbours. They
are found among all passages: what no passage has is found missing in all of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.surroundings import Surroundings, written_before
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words
from lrp4rag.example import Example, Span
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded
from lrp4rag.util.sentences import sentences_in

Numbers = NDArray[np.intp]

ASKED = 0.25
"""Weight of a place's similarity with the question, beside that with a sentence."""
NEAR, COMPARED = 50, 10
"""Of the places most like a sentence: so many are searched for its values, and for other values."""
CLOSE = 0.7
"""Further places of a sentence are at least so similar, compared with its best one."""
FILLED = 0.6
"""Up to here, as a share of an excerpt's tokens, the rest of its passages is read too."""
FURTHER = 6
"""Further places of a sentence, at most."""
RELATED = 0.2
"""Passages about what was asked and answered have at least so much of its words, compared with the one that
has most."""
MOST_RELATED = 4
"""Of so many of them the rest is read: prompts that were learned from have about as many passages."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A long prompt cut down to `places`, the numbers of sentences of its passages.

    `example` is the same prompt without the others: its passages keep their numbers, and those of which
    nothing is read have no text. `pieces` are the characters (start, end) of each passage that are read; one
    character separates two.
    """

    example: Example
    places: frozenset[int]
    pieces: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def read(self) -> tuple[int, ...]:
        """The passages of which something is read (counted from 0)."""
        return tuple(number for number, pieces in enumerate(self.pieces) if pieces)

    def reads(self, passage: int, start: int) -> bool:
        """Say whether a character of a passage as it was given is read."""
        return any(first <= start < last for first, last in self.pieces[passage])

    def original(self, passage: int, start: int, end: int) -> tuple[int, int]:
        """Return characters of a passage as it was given, of those of the excerpt's passage."""
        return self._moved(passage, start, end, back=True)

    def within(self, passage: int, start: int, end: int) -> tuple[int, int]:
        """Return characters of the excerpt's passage, of those of a passage as it was given that are read."""
        return self._moved(passage, start, end, back=False)

    def _moved(self, passage: int, start: int, end: int, *, back: bool) -> tuple[int, int]:
        at = 0
        for first, last in self.pieces[passage]:
            source, target = (at, first) if back else (first, at)
            if source <= start < source + last - first:
                stop = min(end, source + last - first)
                return start - source + target, stop - source + target
            at += last - first + 1
        raise ValueError(f"characters {start} to {end} of passage {passage} (from 0) are not read")

    def computed(self, values: Iterable[Computed]) -> tuple[Computed, ...]:
        """Return values computed in the excerpt's passages, with their places in those that were given."""
        return tuple(
            replace(value, parts=tuple(self.original(value.passage, *part) for part in value.parts))
            for value in values
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Places of a sentence or a question: those that it cannot be judged without, and further ones, the most
    similar first, each with its similarity."""

    needed: tuple[tuple[int, float], ...]
    further: tuple[tuple[int, float], ...]


class LongPrompt:
    """A prompt that is read in excerpts: its passages, indexed once."""

    def __init__(self, example: Example, encoded: Encoded) -> None:
        """`encoded` is the prompt whole."""
        self.example, self.passages = example, tuple(example.passages)
        self.index = Index(self.passages)
        self._asked = np.array(self.index.similarities(content_words(example.question)))
        self._words = list(map(content_words, self.passages))
        self._passages_with = Counter(itertools.chain.from_iterable(self._words))
        self._topic = self._proportions(content_words(example.question))
        self._around = Surroundings(" ".join(self.passages))
        self._passage = np.array([place.passage for place in self.index.places], dtype=np.intp)
        self._lengths, self._headings, self._frame = self._tokens(encoded)

    def excerpt(self, response: str, *, tokens: float, passages: float, most: float) -> Excerpt:
        """Return the prompt cut down for a response (perhaps ""), to about so many tokens and at most so many
        passages. What its sentences cannot be judged without may take up to `most` tokens, of more passages;
        at least one sentence is read."""
        wanted, related = self._wanted(response), self._related(response)
        return self._cut(self._choose(wanted, related, tokens, passages, most))

    def suffices(self, excerpt: Excerpt, response: str, since: int = 0) -> bool:
        """Say whether an excerpt has what the sentences of a response that end after character `since` cannot
        be judged without."""
        new = (span for span in sentences_in(response) if span[1] > since)
        wanted = (self._wanted_by(response, span) for span in new)
        return all(place in excerpt.places for places in wanted for place, _ in places.needed)

    def _tokens(self, encoded: Encoded) -> tuple[Numbers, Numbers, int]:
        """Return the tokens of each place, those that go with each passage (its heading), and all others."""
        starts = np.array([start for start, _ in encoded.prompt_offsets])
        spans = encoded.spans[FIRST_PASSAGE:]

        def count(first: int, last: int) -> int:
            return int(np.searchsorted(starts, last) - np.searchsorted(starts, first))

        lengths = [
            count(spans[place.passage][0] + place.start, spans[place.passage][0] + place.end)
            for place in self.index.places
        ]
        headings, before = np.zeros(len(spans), dtype=np.intp), None
        question = encoded.spans[1]
        for number, (start, end) in sorted(enumerate(spans), key=lambda pair: pair[1]):
            if start < end:
                if before is not None and not before <= question[0] < start:
                    headings[number] = count(before, start)
                before = end
        inside = sum(count(*span) for span in spans) + int(headings.sum())
        return np.array(lengths, dtype=np.intp), headings, len(encoded.prompt_ids) - inside

    def _wanted(self, response: str) -> list[_Wanted]:
        """Return those of the response's sentences, and last those of the question."""
        sentences = [self._wanted_by(response, span) for span in sentences_in(response)]
        order = [int(number) for number in np.argsort(-self._asked, kind="stable") if self._asked[number] > 0]
        ranked = tuple((number, float(self._asked[number])) for number in order[: FURTHER + 1])
        return [*sentences, _Wanted(ranked[:1], _close(ranked))]

    def _related(self, response: str) -> list[int]:
        """Return the passages about what was asked and answered, first the one that has most words of the
        question, the response, and the passage that has most of these."""
        scores = self._topic + self._proportions(content_words(response))
        scores = scores + self._proportions(self._words[int(scores.argmax())])
        order = np.argsort(-scores, kind="stable")[:MOST_RELATED]
        return [int(number) for number in order if scores[number] >= RELATED * scores.max()]

    def _proportions(self, words: Iterable[str]) -> NDArray[np.float64]:
        """Return the proportion of words, weighted by their rarity among passages, that each passage has."""
        rarity = {
            word: math.log((len(self._words) + 1) / count)
            for word in words
            if (count := self._passages_with[word])
        }
        total = math.fsum(rarity.values()) or 1.0
        return np.array(
            [math.fsum(rarity[word] for word in words & rarity.keys()) / total for words in self._words]
        )

    def _wanted_by(self, response: str, span: tuple[int, int]) -> _Wanted:
        start, end = span
        text = response[start:end]
        likeness = np.array(self.index.similarities(content_words(text)))
        scores = likeness + ASKED * self._asked
        scores[likeness == 0] *= ASKED  # no word of its own
        order = [int(number) for number in np.argsort(-scores, kind="stable") if scores[number] > 0]
        needed = [*order[:1], int(likeness.argmax())] if order else []
        for value in find_values(text, written_before(response, start, self._around)):
            needed += self._places_of(value, order, scores)
        ranked = tuple((number, float(scores[number])) for number in order[: FURTHER + 1])
        return _Wanted(
            tuple((number, float(scores[number])) for number in dict.fromkeys(needed)), _close(ranked)
        )

    def _places_of(self, value: Value, order: Sequence[int], scores: NDArray[np.float64]) -> list[int]:
        """Return the best place that has a value, else one of another such value; of a passage's number, the
        best place there."""
        places = self.index.places
        if value.kind == "reference":
            passages = [int(number) - 1 for number in value.key if number is not None]
            inside = [np.flatnonzero(self._passage == passage) for passage in passages]
            return [int(numbers[scores[numbers].argmax()]) for numbers in inside if len(numbers)]
        if value.kind in ("absence", "polarity"):
            return []
        written = re.compile(rf"(?<!\w){re.escape(value.text)}(?!\w)", re.IGNORECASE)
        same = [number for number, place in enumerate(places) if written.search(place.text)]
        same.sort(key=lambda number: -scores[number])
        near = sorted({*order[:NEAR], *same[:NEAR]}, key=lambda number: -scores[number])
        for number in near:
            if any(agree(value, each) for each in places[number].values if comparable(value, each)):
                return [number]
        return [
            number
            for number in order[:COMPARED]
            if any(comparable(value, candidate) for candidate in places[number].values)
        ][:1]

    def _choose(
        self,
        wanted: Sequence[_Wanted],
        related: Sequence[int],
        tokens: float,
        most_passages: float,
        most: float,
    ) -> frozenset[int]:
        """Return the places that are read, those first that a sentence cannot do without, and last the rest
        of the passages that are read and of `related` ones."""
        chosen, passages, length = dict[int, None](), set[int](), self._frame

        def add(number: int, needed: bool = False) -> bool:
            nonlocal length
            passage = int(self._passage[number])
            begun = passage in passages
            cost = int(self._lengths[number]) + (0 if begun else int(self._headings[passage]))
            fits = length + cost <= (most if needed else tokens)
            fits = fits and (needed or begun or len(passages) + 1 <= most_passages)
            if number in chosen or (chosen and not fits):
                return False
            chosen[number] = None
            passages.add(passage)
            length += cost
            return True

        for number in _in_turns(places.needed for places in wanted):
            add(number, needed=True)
        for number in [*chosen]:
            for neighbour in self.index.beside(number):
                add(neighbour)
        first = {passage: number for number, passage in reversed(list(enumerate(self._passage.tolist())))}
        for passage in sorted(passages):
            add(first[passage])
        for number in _in_turns(places.further for places in wanted):
            if add(number):
                for neighbour in self.index.beside(number):
                    add(neighbour)
        if not chosen:
            add(0)  # no passage has a word of the response or the question
        for passage in dict.fromkeys([*(int(self._passage[number]) for number in chosen), *related]):
            for same in np.flatnonzero(self._passage == passage).tolist():
                if length < FILLED * tokens:
                    add(same)
        return frozenset(chosen)

    def _cut(self, places: frozenset[int]) -> Excerpt:
        """Cut the prompt down to these places."""
        pieces: list[list[tuple[int, int]]] = [[] for _ in self.passages]
        for number in sorted(places):
            place = self.index.places[number]
            runs = pieces[place.passage]
            if runs and number - 1 in places:
                runs[-1] = runs[-1][0], place.end
            else:
                runs.append((place.start, place.end))
        texts = [_joined(text, runs) for text, runs in zip(self.passages, pieces, strict=True)]
        return Excerpt(with_passages(self.example, texts), places, tuple(map(tuple, pieces)))


def _close(ranked: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    return tuple(pair for pair in ranked[1:] if pair[1] >= CLOSE * ranked[0][1])


def _in_turns(lists: Iterable[Sequence[tuple[int, float]]]) -> Iterator[int]:
    """Yield the first of each list, then the second of each, and so on; of each turn the most similar
    first."""
    for turn in itertools.zip_longest(*lists):
        for number, _ in sorted((pair for pair in turn if pair is not None), key=lambda pair: -pair[1]):
            yield number


def _joined(text: str, runs: Sequence[tuple[int, int]]) -> str:
    """Join what is read of a passage: by a space behind a full stop, else by a line break, without which two
    sentences might be one."""
    joined = ""
    for start, end in runs:
        if joined:
            joined += " " if joined.endswith((".", "!", "?")) else "\n"
        joined += text[start:end]
    return joined


def with_passages(example: Example, texts: Sequence[str]) -> Example:
    """Return an example's question with these texts for its passages, without a response. Its prompt is
    without those that are empty, and what stands before them, such as "passage 2:"."""
    prompt, spans, cursor = "", list[Span](), 0
    ordered = sorted(example.spans, key=lambda span: span.start)
    in_row = opened = False  # whether the part before is a passage, and one was written
    for number, span in enumerate(ordered):
        before, cursor = example.prompt[cursor : span.start], span.end
        text = example.prompt[span.start : span.end] if span.kind == "question" else texts[span.index]
        if not in_row and span.kind == "passage":
            following = ordered[number + 1 : number + 2]
            heads = [example.prompt[span.end : each.start] for each in following if each.kind == "passage"]
            heading = _common_end(before, heads[0]) if heads else ""
            prompt += before[: len(before) - len(heading)]
            before, opened = heading, False
        in_row = span.kind == "passage"
        if not text:
            continue
        strips = in_row and not opened and (not prompt or prompt[-1].isspace())
        prompt += before.lstrip() if strips else before
        opened = in_row
        spans.append(replace(span, start=len(prompt), end=len(prompt) + len(text)))
        prompt += text
    prompt += example.prompt[cursor:]
    return replace(
        example,
        passages=texts,
        sources=(),
        prompt=prompt,
        spans=tuple(spans),
        response=None,
        labels=None,
    )


def _common_end(text: str, other_text: str) -> str:
    """Return the longest end of a text that another one ends with, whatever the numbers in it, without white
    space before it."""
    signs, other_signs = (re.findall(r"\d+|\D", each) for each in (text, other_text))
    count = 0
    for sign, same in zip(reversed(signs), reversed(other_signs), strict=False):
        if sign != same and not (sign.isdigit() and same.isdigit()):
            break
        count += 1
    return "".join(signs[len(signs) - count :]).lstrip()
