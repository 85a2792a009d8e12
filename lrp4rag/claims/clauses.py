"""Sentences split into what each states: clauses, items of a list, and amounts with a phrase of their own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from lrp4rag.claims.value import Value
from lrp4rag.claims.verbs import ADVERBS, CONJUNCTIONS, finite_verbs
from lrp4rag.claims.words import word_set

Span = tuple[int, int]

ITEM = 6
"""Words of an item of a list in a sentence, at most; what is longer is a clause."""

_LETTERS = r"(?:[^\W_]|\p{N})+"
_TOKEN: re.Pattern[str] = regex.compile(
    rf"(?:[^\W\d_]{{1,3}}\.){{2,}}(?!\w)|{_LETTERS}(?:['\u2019.-]{_LETTERS})*|[^\w\s]"
)
"""Words with their accents, acronyms with all of their full stops, and signs."""
_RELATIVE = frozenset(["which", "who", "whose", "whom", "where"])
_STRONG = word_set(
    """
    unless except because although though whereas while provided excluding including
    """
)
"""Words that begin a clause with a statement of its own."""
_WEAK = word_set("if when once until after before as since")
"""Words that begin a clause which belongs to the statement, unless it has an amount."""
_PHRASES = {
    ("subject", "to"), ("as", "long"), ("only", "if"), ("so", "that"), ("on", "condition"), ("only", "when"),
}  # fmt: skip
_NEEDS_VERB = frozenset(["because", "although", "though", "whereas", "while"])
_CONDITIONS = frozenset(["if", "when", "once", "unless"])
_PREPOSITIONS = word_set(
    """
    at within after before by for with from in on to over under until since above below per plus during
    between through into
    """
)
_APPROXIMATE = word_set(
    """
    up at least most about approximately around roughly only more less than no later earlier another further
    the a an first last next maximum minimum not
    """
)
_BEFORE_AMOUNT = _PREPOSITIONS | _APPROXIMATE
_INTERJECTIONS = word_set(
    """
    yes no however also additionally furthermore moreover therefore finally first second third then overall
    sure note according based to
    """
)
_RANGES = re.compile(r"(?i)\.?\s*(?:to|-|\u2013|until|till|through|or|of|out of|in|/|x|\u00d7|per|by)?\s*")
_MORE = re.compile(r"(?i)\s*[,.]?\s*(?:and|or|to|[-\u2013])?\s*")
_DATED = re.compile(r"(?i)\s*[,.]?\s*(?:at|on|in|of|from)?\s*")


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start` to `end` (exclusive) of a sentence that state one thing, and the characters `head`
    of their subject where that stands apart from them."""

    start: int
    end: int
    head: Span | None = None


class _Words:
    """The words and signs of a sentence: what they are, and what comes after them before the next sign."""

    def __init__(self, text: str, values: Sequence[Value]) -> None:
        matches = list(_TOKEN.finditer(text))
        self.spans = [match.span() for match in matches]
        self.words = [match[0].lower().replace("\u2019", "'") for match in matches]
        count = len(matches)
        self.starts_value, self.inside = [False] * count, [False] * count
        self.amounts: list[tuple[Value, int]] = []
        """Each value with its first word."""
        k = 0
        for value in values:
            while k < count and self.spans[k][1] <= value.start:
                k += 1
            first = k
            while k < count and self.spans[k][0] < value.end:
                self.inside[k] = k > first
                k += 1
            if first < k:
                self.starts_value[first] = True
                self.amounts.append((value, first))
        finite = finite_verbs(self.words)
        self.verb = [is_verb and not inside for is_verb, inside in zip(finite, self.inside, strict=True)]
        self.stops = [self._stops(k) for k in range(count)]
        self.verb_ahead, self.value_ahead = [False] * (count + 1), [False] * (count + 1)
        for k in reversed(range(count)):
            self.verb_ahead[k] = not self.stops[k] and (self.verb[k] or self.verb_ahead[k + 1])
            self.value_ahead[k] = not self.stops[k] and (self.starts_value[k] or self.value_ahead[k + 1])

    def __len__(self) -> int:
        return len(self.words)

    def at(self, k: int) -> str:
        return self.words[k] if 0 <= k < len(self.words) else ""

    def is_word(self, k: int) -> bool:
        return self.at(k)[:1].isalnum()

    def phrase(self, k: int) -> bool:
        return (self.at(k), self.at(k + 1)) in _PHRASES

    def strong(self, k: int) -> bool:
        """Say whether a clause with a statement of its own begins there."""
        word = self.at(k)
        if word == "provided":
            return self.at(k + 1) == "that" or self.at(k - 1) == ","
        if word in _NEEDS_VERB:
            return self.verb_ahead[k + 1] and self.at(k + 1) != "of"
        return word in _STRONG or self.phrase(k)

    def _stops(self, k: int) -> bool:
        word = self.words[k]
        if self.inside[k]:
            return False
        return (
            word in {",", ";", ":", "(", ")", "\u2013", "\u2014", "so"}
            or word in CONJUNCTIONS
            or word in _RELATIVE
            or word in _STRONG
            or word in _WEAK
            or self.phrase(k)
        )


def clauses(text: str, values: Sequence[Value], tick: Callable[[], None] = lambda: None) -> list[Clause]:
    """Return the clauses that each state one thing, in their order; at least one where there is a word.

    `values` are the sentence's amounts, dates and times, with its offsets. Cuts fall before a conjunction or
    a comma with a predicate after it, a relative clause, an exception or a reason, the items of a list of
    three and more, and the phrase of an amount that follows another one.
    """
    words = _Words(text, values)
    if not words.words:
        return []
    cuts = _predicates(words, _lists(words), tick)
    cuts |= _amounts(text, words, cuts, tick)
    for (first, k), (second, m) in pairwise(words.amounts):
        if _are_one(text, first, second):
            cuts.difference_update(range(k + 1, m + 1))
    return _between(text, words, sorted(cuts))


def _predicates(words: _Words, listed: set[int], tick: Callable[[], None]) -> set[int]:
    """Return the words at which a clause or an item of a list begins."""
    cuts: set[int] = set()
    since = 0
    verb = value = leading = relative = False
    for k in range(len(words)):
        tick()
        if k == 0:
            leading = words.at(0) in _WEAK or words.strong(0)
            strong = words.strong(0)
        elif words.stops[k] or words.at(k) in _RELATIVE:
            cut: int | None = None
            after = _past_adverbs(words, k + 1)
            if leading and words.at(k) == ",":
                # The main clause begins; what came before is a statement only where it has one of its own.
                leading = False
                if strong or value:
                    cut = k + 1
                else:
                    since, verb, value = k + 1, False, False
            elif k in listed or _begins(words, k, after, verb, value, leading):
                cut = k + 1 if words.at(k) in {",", ";", ":", "\u2013", "\u2014"} else k
                relative = words.at(after) in _RELATIVE or words.at(k) in _RELATIVE
            elif relative and words.at(k) == "," and words.at(k + 1) not in CONJUNCTIONS | _RELATIVE:
                cut, relative = k + 1, False
            if cut is not None and cut > since:
                cuts.add(cut)
                # Items of a list are said with one verb.
                since, verb, value = cut, verb and k in listed, False
            elif words.at(k) == ":":
                verb = value = False
        verb = verb or words.verb[k]
        value = value or words.starts_value[k]
    return cuts


def _begins(words: _Words, k: int, after: int, verb: bool, value: bool, leading: bool) -> bool:
    """Say whether a clause begins at or after the stop `k`; `verb`, `value`: whether the one before has
    them."""
    word = words.at(k)
    ahead = words.verb_ahead[after] or words.value_ahead[after]
    if word in {";", "\u2013", "\u2014"}:
        begins = (verb or value) and ahead
    elif word == ":":
        begins = value and ahead
    elif word == ",":
        is_relative = not _RELATIVE.isdisjoint((words.at(k + 1), words.at(k + 2)))  # ", in which"
        is_clause = is_relative or (verb and not leading and words.verb_ahead[after])
        begins = is_clause and not _decides(words, k + 1)
    elif word == "but" and words.at(k - 1) == ",":
        begins = k + 2 < len(words)
    elif word in CONJUNCTIONS:
        # "Claims are due and forms are free", but "claims and forms are due".
        begins = words.verb_ahead[after] if verb else after < len(words) and words.verb[after]
    elif word == "so":
        begins = verb and words.verb_ahead[after]
    else:
        begins = words.strong(k) and (verb or value) and not (leading and k < 2)
    return begins


def _decides(words: _Words, k: int) -> bool:
    """Say whether the word after a comma tells whether a clause begins."""
    word = words.at(k)
    return word in CONJUNCTIONS or word in _STRONG or word in _WEAK or words.phrase(k)


def _past_adverbs(words: _Words, k: int) -> int:
    for _ in range(2):
        if words.at(k) in ADVERBS or words.at(k) in CONJUNCTIONS:
            k += 1
    return min(k, len(words))


def _lists(words: _Words) -> set[int]:
    """Return the commas and the conjunction between three or more short items, after the words that they are
    said with."""
    listed: set[int] = set()
    run: list[int] = []
    last = 0
    for k in range(len(words)):
        if not words.stops[k]:
            continue
        word = words.at(k)
        conjunction = word in {"and", "or"}
        if conjunction and run and run[-1] == k - 1:
            run.pop()
        elif run and not 0 < k - last - 1 <= ITEM:
            run = []
        if word == ",":
            opens = not run and last == 0 and (words.at(0) in _INTERJECTIONS | _PREPOSITIONS | _WEAK)
            if not opens and k:
                run.append(k)
        elif conjunction:
            if run and not words.verb_ahead[k + 1]:
                listed.update((*run, k))
            run = []
        else:
            run = []
        last = k
    return listed


def _amounts(text: str, words: _Words, cuts: set[int], tick: Callable[[], None]) -> set[int]:
    """Return the words at which the phrase of an amount begins that follows another one in the same
    clause."""
    borders = sorted(cuts)
    phrases: set[int] = set()
    border = 0
    for (first, k), (second, m) in pairwise(words.amounts):
        tick()
        while border < len(borders) and borders[border] <= k:
            border += 1
        if border < len(borders) and borders[border] <= m:
            continue
        if _are_one(text, first, second):
            continue
        cut = _phrase_of(words, k, m)
        if cut is not None:
            phrases.add(cut)
    return phrases


def _are_one(text: str, first: Value, second: Value) -> bool:
    """Say whether two amounts make one: the ends of a range, a part of a whole, a date and its time of
    day."""
    if second.start - first.end > 12:
        return False
    between = text[first.end : second.start]
    if first.kind != second.kind and "quantity" not in (first.kind, second.kind):
        return _DATED.fullmatch(between) is not None
    is_bare = first.kind == "quantity" and not first.unit and not first.noun
    if is_bare and _MORE.fullmatch(between):  # what it counts stands behind the next number
        return True
    if between.strip().lower() == "and":
        return text[max(first.start - 8, 0) : first.start].lower() == "between "
    return _RANGES.fullmatch(between) is not None


def _phrase_of(words: _Words, k: int, m: int) -> int | None:
    """Return where the phrase of the amount at word `m` begins, after the amount at word `k`; None where none
    does."""
    between = range(m - 1, max(k, m - 40), -1)
    conditions = [at for at in between if words.at(at) in _CONDITIONS]
    if conditions:
        return conditions[-1]
    for at in between:
        if words.inside[at]:
            return None
        word = words.at(at)
        if word in CONJUNCTIONS or word in _PREPOSITIONS:
            first = at
            while first - 1 > k and words.at(first - 1) in _BEFORE_AMOUNT:
                first -= 1
            return first
        if word in {",", "(", ":", ";"}:
            return at + 1
    return None


def _between(text: str, words: _Words, cuts: list[int]) -> list[Clause]:
    """Return the stretches between the cuts, without the signs and conjunctions around them. A subject that
    stands alone before a relative clause is the head of what follows it."""
    stretches: list[Clause] = []
    head: Span | None = None
    for first, last in pairwise([0, *cuts, len(words)]):
        bounds = _trimmed(words, first, last)
        if bounds is None:
            continue
        start, end = words.spans[bounds[0]][0], words.spans[bounds[1] - 1][1]
        relative = last < len(words) and words.at(last) in _RELATIVE
        if not stretches and head is None and relative and not any(words.verb[first:last]):
            head = (start, end)
        else:
            stretches.append(Clause(start, end, head))
    if not stretches and head is not None:
        stretches.append(Clause(*head))
    return stretches


def _trimmed(words: _Words, first: int, last: int) -> Span | None:
    """Strip commas, brackets and conjunctions from the ends; return None where no word is left. Signs of an
    amount stay: "5 \u20ac", "\u00b15", "C++"."""
    while first < last and (words.at(first) in CONJUNCTIONS or not words.is_word(first)):
        if _is_of_amount(words.at(first), before=True) and words.at(first + 1)[:1].isdigit():
            break
        first += 1
    while last > first and not words.is_word(last - 1):
        attached = words.spans[last - 2][1] == words.spans[last - 1][0]
        if _is_of_amount(words.at(last - 1)) or (attached and words.at(last - 1) in {"+", "#"}):
            break
        last -= 1
    return (first, last) if first < last else None


def _is_of_amount(sign: str, *, before: bool = False) -> bool:
    if sign in ("-#~" if before else "%\u2030\u00b0\u2032\u2033"):
        return True
    category = unicodedata.category(sign) if len(sign) == 1 else ""
    return category == "Sc" or (before and category == "Sm" and sign != "|")
