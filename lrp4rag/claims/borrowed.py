"""What a sentence takes from a passage about something else than what was asked: the tariff's neighbour, the
other model. The values are all there, and are another's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from lrp4rag.claims.clauses import Span
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import COMPARED, Place, stems_of
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.verbs import finite_verbs
from lrp4rag.claims.words import content_words

SAID = 0.5
"""The share of a clause's words and values in the sentence of the other passage, at least."""
BEHIND = 0.1
"""By how much less the passage that was asked about has in any sentence."""
PARALLEL = 0.3
"""Two passages say the same of two things where a sentence of each has so much in common, of both's words."""
WEIGHT = 3.0
"""Of a value, beside the rarities of words."""
LEAST = 3
"""Words and values of a clause, at least."""
COMPARED_PLACES = 5
"""Sentences of a passage whose values are compared: those that have most of the words."""
TITLE_WORDS, FIRST_WORDS = 14, 4
"""A first sentence, or its head, is a title up to so many words; a longer one gives first words and names."""
MOST_SENTENCES = 50
"""Sentences of a passage that are compared with those of another."""
MOST_PASSAGES = 100
"""With more passages nothing is looked for: too many are about something else."""

_HEAD = re.compile(r"[^:\n]{3,80}:(?=\s|$)")
_NAME = re.compile(r"\b[A-Z][\w&-]+(?:\s\d+\b)?")
_CALLED = re.compile(r"\b(?:[A-Z][\w&-]+|\w*\d\w*)")
"""Words that are written as names are, and those with a digit: "v2"."""
_DATELINE = re.compile(r"\A(?:[A-Z][\w.-]*[, ]+){0,3}\d{1,2} [A-Z][a-z]{2,8}(?: \d{4})?(?:[.:,]\s*|\Z)")
_ENTRY = re.compile(r"(?:The|An?) ((?:[a-z][\w-]* ){0,2}[a-z][\w-]*) ?\(")
"""How an encyclopaedia begins: "The ridge newt (Tritalus montanus) lives …"."""
_OTHER = re.compile(
    r"\b(?:an?other|others?|instead|unlike|(?:by|in) contrast|whereas|formerly|previously|alternatively)\b",
    re.IGNORECASE,
)
"""By which an answer tells of something else itself."""
_EACH = re.compile(r"\b(?:both|all|either|same)\b", re.IGNORECASE)
"""What a passage says with these it says of others too."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Characters `start` to `end` of an answer rest on a sentence (`passage_start` to `passage_end`) of the
    passage `passage`, which is about `subject` ("" where it has no title), and not about what was asked."""

    start: int
    end: int
    passage: int
    passage_start: int
    passage_end: int
    subject: str


@dataclass(frozen=True, slots=True)
class _Clause:
    start: int
    end: int
    words: frozenset[str]
    values: tuple[Value, ...]


class Subjects:
    """What the passages of a question are about."""

    def __init__(self, question: str, index: Index) -> None:
        self._index, self._question = index, stems_of(question)
        self._names = stems_of(" ".join(_NAME.findall(question, 1)))
        self._parallel: dict[int, bool] = {}
        self._places: list[list[int]] = [[] for _ in index.texts]
        for number, place in enumerate(index.places):
            self._places[place.passage].append(number)

    @cached_property
    def _titles(self) -> list[tuple[str, frozenset[str]]]:
        """The title of each passage, and the stems of what it names."""
        return [_title([self._index.places[number] for number in some[:2]]) for some in self._places]

    @cached_property
    def _called(self) -> list[frozenset[str]]:
        """The stems of what is written as names are in the first sentences of each passage: of the words of a
        title they tell best what it is about."""
        firsts = (self._index.places[some[0]].text if some else "" for some in self._places)
        return [stems_of(" ".join(_CALLED.findall(first))) for first in firsts]

    @cached_property
    def asked(self) -> int:
        """The passage whose title, or else whose text, has most of the question's words, by rarity."""
        texts = [self._stems(passage) for passage in range(len(self._places))]
        titles = [stems for _, stems in self._titles]

        def score(words: frozenset[str], among: list[frozenset[str]]) -> float:
            return sum(math.log((len(among) + 1) / sum(word in each for each in among)) for word in words)

        scores = [
            2 * score(self._question & title, titles) + 0.5 * score(self._question & text, texts)
            for title, text in zip(titles, texts, strict=True)
        ]
        return max(range(len(scores)), key=lambda k: (scores[k], -len(titles[k]), -k))

    def borrowed(self, answer: str, sentences: Iterable[Span]) -> Iterator[Borrowed | None]:
        """Yield for each of some sentences of an answer, in their order, what it borrows."""
        said, before = self._question, 0
        for start, end in sentences:
            said, before = said | stems_of(answer[before:end]), end
            is_compared = 1 < len(self._places) <= MOST_PASSAGES
            yield self._borrowed(Place(0, start, end, answer), said) if is_compared else None

    def is_of_another(self, place: Place, statement: str) -> bool:
        """Say whether a sentence of the passages is about something else than the question and a statement
        are."""
        if not 1 < len(self._places) <= MOST_PASSAGES or place.passage == self.asked:
            return False
        return self._is_of_another(place.passage, self._question | stems_of(statement), place)

    def _borrowed(self, sentence: Place, said: frozenset[str]) -> Borrowed | None:
        """Return what a sentence borrows, where the question, it and those before it have `said` so much."""
        for clause in _clauses(sentence):
            found = self._support(clause)
            other = max(found, key=lambda k: (found[k][0], k == self.asked), default=self.asked)
            share, number = found.get(other, (0.0, -1))
            if other == self.asked or share < SAID or share - found.get(self.asked, (0.0, -1))[0] < BEHIND:
                continue
            place = self._index.places[number]
            tells = {word.lower() for word in _OTHER.findall(sentence.source, clause.start, clause.end)}
            if tells - {word.lower() for word in _OTHER.findall(place.text)}:
                continue
            if self._is_of_another(other, said, place) and self._are_parallel(other):
                return Borrowed(
                    clause.start,
                    clause.end,
                    other,
                    place.start,
                    place.end,
                    self._titles[other][0],
                )
        return None

    def _support(self, clause: _Clause) -> dict[int, tuple[float, int]]:
        """Return for each passage the highest share of a clause in a sentence of it, and the sentence."""
        similarities = self._index.similarities(clause.words)
        total = math.fsum(self._index.weights(clause.words).values())
        whole = total + WEIGHT * len(clause.values)
        found: dict[int, tuple[float, int]] = {}
        for passage, places in enumerate(self._places):
            best = sorted(places, key=lambda number: -similarities[number])
            for number in best[:COMPARED_PLACES]:
                agreed = self._agreed(clause.values, number) if clause.values else 0.0
                share = (similarities[number] * total + WEIGHT * agreed) / whole
                if share > found.get(passage, (0.0, -1))[0]:
                    found[passage] = share, number
        return found

    def _agreed(self, values: Iterable[Value], number: int) -> float:
        """Return how many values a sentence has; its neighbours' count a third."""
        own, *near = ([*self._index.places[k].values] for k in (number, *self._index.beside(number)))
        return math.fsum(
            1.0
            if any(agree(value, one) for one in own)
            else 1 / 3
            if any(agree(value, one) for some in near for one in some)
            else 0.0
            for value in values
        )

    def _is_of_another(self, other: int, said: frozenset[str], place: Place) -> bool:
        """Say whether a passage's subject differs from the one that was asked about, which `said` has, and
        its own is not in it; and its sentence is not about both."""
        (title, asked), (other_title, own) = self._titles[self.asked], self._titles[other]
        named, others = (said & asked) - own, own - asked
        if not (title and other_title):
            named &= self._names
        is_variant = asked < own and len(others) == 1 and bool(asked & said)  # "Wander" and "Wander Plus"
        if not named and not is_variant:
            return False
        others = frozenset(word for word in others if not word.isdigit()) or others
        if title and other_title:
            named, others = named & self._called[self.asked] or named, others & self._called[other] or others
        if not others or others & said or named & place.stems or _EACH.search(place.text):
            return False
        # Of that the passage which was asked about tells itself: "the director Tom Hart".
        return not others <= stems_of(" ".join(_NAME.findall(self._index.texts[self.asked])))

    def _stems(self, passage: int) -> frozenset[str]:
        return frozenset[str]().union(*(self._index.places[k].stems for k in self._places[passage]))

    def _are_parallel(self, other: int) -> bool:
        """Say whether a passage says of its subject what the one that was asked about says of its own. Equal
        sentences are of one text that was cut into passages."""
        if other not in self._parallel:
            rarity = self._index.rarity
            self._parallel[other] = any(
                math.fsum(map(rarity, first & second)) >= PARALLEL * math.fsum(map(rarity, first | second))
                for (text, first), (same, second) in product(self._sides(self.asked), self._sides(other))
                if min(len(first), len(second)) > 2 and text != same
            )
        return self._parallel[other]

    def _sides(self, passage: int) -> list[tuple[str, frozenset[str]]]:
        """Return a passage's sentences, with their words that are no numbers."""
        places = (self._index.places[number] for number in self._places[passage][:MOST_SENTENCES])
        return [(place.text, frozenset(filter(str.isalpha, place.words))) for place in places]


def _title(places: Sequence[Place]) -> tuple[str, frozenset[str]]:
    """Return the title in the first sentence of a passage, "" where there is none, and the stems of what it
    names. The place and date of news are none."""
    texts = [(_DATELINE.sub("", place.text), place.is_heading) for place in places]
    text, is_heading = next(((text, is_heading) for text, is_heading in texts if text), ("", False))
    if entry := _ENTRY.match(text):
        return entry[1], stems_of(entry[1])
    match = None if is_heading or len(text.split()) <= TITLE_WORDS else _HEAD.match(text)
    head = match[0] if match else text
    if not is_heading and len(head.split()) > TITLE_WORDS:
        return "", stems_of(" ".join([*text.split()[:FIRST_WORDS], *_NAME.findall(text)]))
    is_sentence = not is_heading and any(finite_verbs(re.findall(r"[\w'\u2019-]+", head.lower())))
    return "" if is_sentence else head.rstrip(".: "), stems_of(head)


def _clauses(sentence: Place) -> Iterator[_Clause]:
    """Yield a sentence whole, and its clauses."""
    values = tuple(value for value in sentence.own_values if value.kind in COMPARED and value.kind != "name")
    spans = [(0, len(sentence.text)), *((part.start, part.end) for part in sentence.parts)]
    for start, end in dict.fromkeys(spans):
        words = content_words(sentence.text[start:end])
        own = tuple(value for value in values if start <= value.start < end)
        if len(words) + len(own) >= LEAST:
            yield _Clause(sentence.start + start, sentence.start + end, words, own)
