"""Sentences that rest on a passage about something else than what was asked: another tariff, another model.
The passages have all of their values, but of the other thing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product, zip_longest

from lrp4rag.claims.clauses import Span
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import COMPARED, Place, stems_of
from lrp4rag.claims.subjects import beginnings
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.verbs import finite_verbs
from lrp4rag.claims.words import content_words

SHARED = 0.5
"""The share of a clause's words and values that a sentence of the other passage has, at least."""
BEHIND = 0.1
"""How much less of them any sentence of the passage that was asked about has, at least."""
PARALLEL = 0.3
"""The share of the words of two sentences that both have, at least, where two passages say the same of two
things."""
WEIGHT = 3.0
"""The weight of a value, beside the rarities of words."""
LEAST = 3
"""Words and values of a clause, at least."""
COMPARED_PLACES = 5
"""Sentences of a passage whose values are compared: those that have most of the words."""
TITLE_WORDS, FIRST_WORDS = 14, 4
"""A first sentence, or its head, is a title up to so many words; a longer one gives first words and names."""
MOST_SENTENCES = 50
"""Sentences of a passage that are compared with those of another."""
MOST_PASSAGES = 100
"""Passages of a question, at most: of more, too many are about something else."""

_HEAD = re.compile(r"[^:\n]{3,80}:(?=\s|$)")
_NAME = re.compile(r"\b[A-Z][\w&-]+(?:\s\d+\b)?")
_CALLED = re.compile(r"\b(?:[A-Z][\w&-]+|\w*\d\w*)")
"""Words that are written as names are, and those with a digit: "v2"."""
_NUMBERED = re.compile(r"\b[A-Za-z]+ ([A-HJ-Z]|\d)\b")
"""A digit or a letter behind a word: "Year 7", "zone B"."""
_ARTICLE = re.compile(r"\A(?:The|An?) ")
_TOPIC = re.compile(r"[,:;(]| [\u2013\u2014-]")
"""What stands in a title before what is said of the thing that it names."""
_JOINT = re.compile(r"[,;:] (?:and |or )?| (?:and|or|while|but) ")
"""What stands between the items of a list."""
_DATELINE = re.compile(r"\A(?:[A-Z][\w.-]*[, ]+){0,3}\d{1,2} [A-Z][a-z]{2,8}(?: \d{4})?(?:[.:,]\s*|\Z)")
_QUESTION = re.compile(r"(?:How|What|When|Where|Why|Who|Which)\b")
"""How a heading begins that tells of a thing, and is not its name: "How the Hallam Fund decides"."""
_ENTRY = re.compile(r"(?:The|An?) ((?:[a-z][\w-]* ){0,2}[a-z][\w-]*) ?\(")
"""How an encyclopaedia begins: "The ridge newt (Tritalus montanus) lives …"."""
_ONE_OF = re.compile(r"\b([A-Z]\w*[a-z])[ -]?(\d+)\b")
"""One of several things of a name: "Corsair-2"."""
_DECLINED = re.compile(
    r"\b(?:not|rather than|instead of|unlike)(?: (?:for|the|an?))*(?: (?:[A-Z]|\w*\d)[\w&-]*)+"
)
"""What a question names as what it does not ask about: "not Roamer Gold"."""
_OTHER = re.compile(
    r"\b(?:an?other|others?|instead|unlike|(?:by|in) contrast|whereas|formerly|previously|alternatively)\b",
    re.IGNORECASE,
)
"""Words by which an answer itself tells of something else."""
_EACH = re.compile(r"\b(?:both|all|either|same)\b", re.IGNORECASE)
"""Words by which a passage speaks of several things."""


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
    """The subjects of a question's passages, by their titles, and the passage that was asked about."""

    def __init__(self, question: str, index: Index) -> None:
        question = _DECLINED.sub("", question)
        self._index, self._question = index, _words(question)
        self._numbered = set(_ONE_OF.findall(question))
        self._names = stems_of(" ".join(_NAME.findall(question, 1)))
        self._parallel: dict[int, bool] = {}
        self._places: list[list[int]] = [[] for _ in index.texts]
        for number, place in enumerate(index.places):
            self._places[place.passage].append(number)

    @cached_property
    def _titles(self) -> list[tuple[str, frozenset[str]]]:
        """The title of each passage, and the stems of what it names."""
        return [_title([self._index.places[number] for number in numbers[:2]]) for numbers in self._places]

    @cached_property
    def _called(self) -> list[frozenset[str]]:
        """The stems of the words that are written as names in the first sentence of each passage: of a
        title's words they tell best what it is about."""
        firsts = (self._index.places[numbers[0]].text if numbers else "" for numbers in self._places)
        return list(map(_called_in, firsts))

    @cached_property
    def _named_there(self) -> frozenset[str]:
        """What the passage that was asked about names itself, and so tells nothing apart: "by Tom Hart"."""
        return _called_in(self._index.texts[self.asked_passage])

    @cached_property
    def asked_passage(self) -> int:
        """The passage whose title, or else whose text, has most of the question's words, by rarity. A title
        has a word of the same beginning, too: "Adoption leave" of "I'm adopting"."""
        places = self._index.places
        texts = [frozenset[str]().union(*(places[k].stems for k in numbers)) for numbers in self._places]
        titles = [beginnings(stems) for _, stems in self._titles]
        question, names = beginnings(self._question), beginnings(self._names)

        def score(words: frozenset[str], among: list[frozenset[str]]) -> float:
            return sum(math.log((len(among) + 1) / sum(word in each for each in among)) for word in words)

        scores = [
            2 * score(question & title, titles)
            + score(names & title, titles)
            + 0.5 * score(self._question & text, texts)
            for title, text in zip(titles, texts, strict=True)
        ]
        numbered = [set(_ONE_OF.findall(text)) for text in self._index.texts]

        def is_of_number(k: int) -> bool:
            """Say whether a passage has what the question names with its number, or nothing of that name."""
            names = {name for name, _ in self._numbered}
            return bool(self._numbered & numbered[k]) or not any(name in names for name, _ in numbered[k])

        return max(range(len(scores)), key=lambda k: (is_of_number(k), scores[k], -len(titles[k]), -k))

    def borrowed(self, answer: str, sentences: Iterable[Span]) -> Iterator[Borrowed | None]:
        """Yield for each sentence of an answer, in their order, what it borrows."""
        answer_stems, before = self._question, 0
        for start, end in sentences:
            answer_stems, before = answer_stems | _words(answer[before:end]), end
            is_compared = 1 < len(self._places) <= MOST_PASSAGES
            yield self._borrowed(Place(0, start, end, answer), answer_stems) if is_compared else None

    def is_of_another(self, place: Place, statement: str) -> bool:
        """Say whether a sentence of the passages is about something else than the question and a statement
        are."""
        if not 1 < len(self._places) <= MOST_PASSAGES or place.passage == self.asked_passage:
            return False
        return self._is_of_another(place.passage, self._question | _words(statement), place)

    def _borrowed(self, sentence: Place, answer_stems: frozenset[str]) -> Borrowed | None:
        """Return what a sentence borrows; `answer_stems` are those of the question, of the sentences before,
        and of it."""
        target = self.asked_passage
        for clause in _clauses(sentence):
            support = self._support(clause)
            passage = max(support, key=lambda k: (support[k][0], k == target), default=target)
            share, number = support.get(passage, (0.0, -1))
            if passage == target or share < SHARED or share - support.get(target, (0.0, -1))[0] < BEHIND:
                continue
            place = self._index.places[number]
            signs = {word.lower() for word in _OTHER.findall(sentence.source, clause.start, clause.end)}
            if signs - {word.lower() for word in _OTHER.findall(place.text)}:
                continue
            if self._is_of_another(passage, answer_stems, place) and self._are_parallel(passage):
                return Borrowed(
                    clause.start,
                    clause.end,
                    passage,
                    place.start,
                    place.end,
                    self._titles[passage][0],
                )
        return None

    def _support(self, clause: _Clause) -> dict[int, tuple[float, int]]:
        """Return for each passage the highest share of a clause in a sentence of it, and the sentence."""
        similarities = self._index.similarities(clause.words)
        total = math.fsum(self._index.weights(clause.words).values())
        maximum = total + WEIGHT * len(clause.values)
        support: dict[int, tuple[float, int]] = {}
        for passage, places in enumerate(self._places):
            best = sorted(places, key=lambda number: -similarities[number])
            for number in best[:COMPARED_PLACES]:
                agreed = self._agreed(clause.values, number) if clause.values else 0.0
                share = (similarities[number] * total + WEIGHT * agreed) / maximum
                if share > support.get(passage, (0.0, -1))[0]:
                    support[passage] = share, number
        return support

    def _agreed(self, values: Iterable[Value], number: int) -> float:
        """Return how many values a sentence has; its neighbours' count a third."""
        candidates = self._index.places[number].values
        near = [value for k in self._index.beside(number) for value in self._index.places[k].values]
        return math.fsum(
            1.0
            if any(agree(value, candidate) for candidate in candidates)
            else 1 / 3
            if any(agree(value, candidate) for candidate in near)
            else 0.0
            for value in values
        )

    def _is_of_another(self, passage: int, answer_stems: frozenset[str], place: Place) -> bool:
        """Say whether a passage's subject differs from the one that was asked about: the answer (with the
        question, `answer_stems`) names only the latter, and the passage's sentence not both."""
        asked_title, asked_stems = self._titles[self.asked_passage]
        title, stems = self._titles[passage]
        asked_names, names = (answer_stems & asked_stems) - stems, stems - asked_stems
        if not (asked_title and title):
            asked_names &= self._names
        # "Wander" and "Wander Plus"
        is_variant = asked_stems < stems and len(names) == 1 and bool(asked_stems & answer_stems)
        if not asked_names and not is_variant:
            return False
        asked_called = asked_names & self._called[self.asked_passage]
        if asked_title and title and asked_called and not names & self._called[passage]:
            return False  # of no other thing: "Brackwater Congress: timetable" beside "…: Open section"
        names = frozenset(word for word in names if not word.isdigit()) or names
        if asked_title and title:
            asked_names = asked_called or asked_names
            names = names & self._called[passage] or names
        names -= self._named_there
        said_of_both = asked_names & (place.stems | _numbers(place.text)) or _EACH.search(place.text)
        return bool(names) and not (names & answer_stems or said_of_both or self._is_of_all(passage))

    def _is_of_all(self, passage: int) -> bool:
        """Say whether a passage begins with words by which it speaks of all: "Safeguards, all sections"."""
        first = self._index.places[self._places[passage][0]].text
        return len(first.split()) <= TITLE_WORDS and _EACH.search(first) is not None

    def _are_parallel(self, passage: int) -> bool:
        """Say whether a passage says the same of its subject as the passage that was asked about says of its
        own. Equal sentences do not count: they are of one text that was cut into passages."""
        if passage not in self._parallel:
            rarity = self._index.rarity
            pairs = product(self._sides(self.asked_passage), self._sides(passage))
            self._parallel[passage] = self._are_siblings(passage) or any(
                math.fsum(map(rarity, first & second)) >= PARALLEL * math.fsum(map(rarity, first | second))
                for (first_text, first), (second_text, second) in pairs
                if min(len(first), len(second)) > 2 and first_text != second_text
            )
        return self._parallel[passage]

    def _are_siblings(self, passage: int) -> bool:
        """Say whether the titles of a passage and of the one that was asked about begin with one word, and go
        on with other names: "Corvane Desk", "Corvane Chat"."""
        titles = (_ARTICLE.sub("", self._titles[k][0]) for k in (self.asked_passage, passage))
        mine, theirs = (_TOPIC.split(title)[0].split() for title in titles)
        if not mine or mine[:1] != theirs[:1] or not mine[0][0].isupper():
            return False
        pairs = zip_longest(mine, theirs, fillvalue="")
        differing = next((pair for pair in pairs if pair[0] != pair[1]), None)
        return differing is not None and all(word and not word[0].islower() for word in differing)

    def _sides(self, passage: int) -> list[tuple[str, frozenset[str]]]:
        """Return a passage's sentences, with their words that are no numbers."""
        places = (self._index.places[number] for number in self._places[passage][:MOST_SENTENCES])
        return [(place.text, frozenset(filter(str.isalpha, place.words))) for place in places]


def _numbers(text: str) -> set[str]:
    return {number.lower() for number in _NUMBERED.findall(text)}


def _called_in(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that are written as names are."""
    return stems_of(" ".join(_CALLED.findall(text))) | _numbers(text)


def _words(text: str) -> frozenset[str]:
    """Return the stems of a text, and the digits and letters behind its words."""
    return stems_of(text) | _numbers(text)


def _title(places: Sequence[Place]) -> tuple[str, frozenset[str]]:
    """Return the title in the first sentence of a passage, "" where there is none, and the stems of what it
    names. The place and date at the beginning of news are no title."""
    texts = [(_DATELINE.sub("", place.text), place.is_heading) for place in places]
    text, is_heading = next(((text, is_heading) for text, is_heading in texts if text), ("", False))
    if entry := _ENTRY.match(text):
        return entry[1], _words(entry[1])
    match = None if is_heading or len(text.split()) <= TITLE_WORDS else _HEAD.match(text)
    head = match[0] if match else text
    if not is_heading and len(head.split()) > TITLE_WORDS:
        return "", stems_of(" ".join([*text.split()[:FIRST_WORDS], *_NAME.findall(text)]))
    is_sentence = not is_heading and any(finite_verbs(re.findall(r"[\w'\u2019-]+", head.lower())))
    is_name = not is_sentence and _QUESTION.match(head) is None
    return head.rstrip(".: ") if is_name else "", _words(head)


def _clauses(sentence: Place) -> Iterator[_Clause]:
    """Yield a sentence whole, its clauses, and the items of its lists."""
    values = tuple(value for value in sentence.own_values if value.kind in COMPARED and value.kind != "name")
    spans = [(0, len(sentence.text)), *((clause.start, clause.end) for clause in sentence.parts)]
    joints = [(0, 0), *(match.span() for match in _JOINT.finditer(sentence.text)), (len(sentence.text),) * 2]
    spans += [(start, end) for (_, start), (end, _) in pairwise(joints)]
    for start, end in dict.fromkeys(spans):
        words = content_words(sentence.text[start:end])
        clause_values = tuple(value for value in values if start <= value.start < end)
        if len(words) + len(clause_values) >= LEAST:
            yield _Clause(sentence.start + start, sentence.start + end, words, clause_values)
