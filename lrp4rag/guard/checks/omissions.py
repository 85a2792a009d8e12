"""`Omissions`: conditions of a passage which an answer that makes its statement leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from lrp4rag.claims import Value, agree, comparable, find_values
from lrp4rag.claims.clauses import Span
from lrp4rag.claims.conditions import Statement, grants, has_sign, statements
from lrp4rag.claims.index import Index
from lrp4rag.claims.value import NUMERIC
from lrp4rag.claims.words import STOP_WORDS, content_words
from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.guard.checks.facts import sentence_of, stated
from lrp4rag.util.text import WORD, encodable, one_line, words_of

QUOTED = 80
"""Characters of a condition that words quote, at most."""
SAME = 5
"""Letters at the beginning of a word that tell which family it is of."""

_POINTS_BACK = re.compile(
    r"(?:this|these|those|that|such|it|they|doing so|however|exceptions?|except|but|otherwise|both|to do so"
    r"|to (?:qualify|be eligible)|you must first|first|before|always|never|do not|make sure|be sure|for this"
    r"|in (?:this|that|these|either) cases?|note|please note|conditions?|requirements?|limitations?)\b",
    re.IGNORECASE,
)
_SYNONYMS = (
    "approval approve approved ok okay agree agrees agreed agreement consent permission allow sign signs "
    "authorise authorised authorize authorized clearance green-light",
    "document documentation documented record recorded paperwork written writing writes",
    "manager boss supervisor superior lead",
    "alcohol alcoholic wine beer",
    "receipt proof invoice",
    "extended extend renewed renew prolonged prolong longer",
    "fee cost charge price",
    "employees staff workers",
    "children child kids minors",
    "doctor physician medical",
    "buy bought purchase purchased",
    "inform notify tell told notified notification informed notice",
    "annual annually year yearly years",
    "undamaged damage damaged intact",
    "unopened sealed unused original",
    "accompanied together escorted escort",
    "signature sign signed signing",
    "parent guardian parents guardians",
    "exclude excluding excluded except exception exceptions apart",
    "certificate note",
    "reserve reserved reservation",
    "submit submitted file filed send sent hand",
    "valid validate validated validity",
)
_SIGNS = "subject provided providing condition conditional contingent dependent exception requires"
"""Words of conditions that say nothing of what the condition is."""
_YES_OR_NO = frozenset({"yes", "no", "correct", "right", "indeed"})


@dataclass(frozen=True, slots=True)
class Omissions:
    """One finding of kind "omitted" for each condition of a passage's statement that the answer makes, where
    neither the answer nor the question has it.

    An answer makes a statement where a sentence of it has `made` of the statement's words, as a share (those
    of the question help), and `made` of the sentence's words are the statement's. A condition is carried
    where an amount of it, or more than the share `carried` of its words, is somewhere in the answer.
    """

    name: ClassVar[str] = "omissions"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    made: float = 0.5
    carried: float = 0.3

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        if inputs.response is None or not inputs.sources:
            return []
        question, response = encodable(inputs.question), encodable(inputs.response)
        index = Index([source.text for source in inputs.sources], inputs.tick)
        said, asked = _said(f"{question}\n{response}"), _forms(question)
        found: dict[tuple[int, Span], Finding] = {}
        for start, end in stated(response, inputs.tick):
            inputs.tick()
            told = _forms(response[start:end]) - _YES_OR_NO
            text = response[start:end] if told else question  # "Yes." says what was asked
            rested = sentence_of(start, end, inputs.verdict) if inputs.verdict else None
            passage = rested.passage if rested else None
            resting = index.resting(content_words(text), find_values(text), passage)
            for condition in self._conditions(told or asked, asked, index, resting):
                known = (condition.passage, condition.span)
                if known not in found and not self._carries(said, condition):
                    found[known] = _finding(condition, (start, end))
        return list(found.values())

    def _conditions(
        self, told: frozenset[str], asked: frozenset[str], index: Index, resting: Sequence[int]
    ) -> Iterator[_Condition]:
        """Those of the statement that a sentence of the answer with the words `told` makes."""
        best, made = 0.0, None
        for number in resting:
            text = index.places[number].text
            for statement in statements(text):
                alike = self._alike(statement, text, told, asked)
                if alike > best:
                    best, made = alike, (number, statement)
        if made is not None:
            for condition in _conditions_at(index, *made, told, asked):
                if not condition.of or condition.of & told or condition.of & asked:
                    yield condition

    def _alike(self, statement: Statement, text: str, told: frozenset[str], asked: frozenset[str]) -> float:
        """Return how much alike a statement of a sentence and one of the answer are; 0 where it does not make
        it."""
        core, every = _forms(statement.core), _forms(text[statement.start : statement.end])
        shared = core & told
        news = told == asked or shared - asked or len(shared) > 1
        if not core or not told or not news:
            return 0.0
        precision, recall = len(every & told) / len(told), len(shared | (core & asked)) / len(core)
        return precision * recall if min(precision, recall) >= self.made else 0.0

    def _carries(self, said: _Said, condition: _Condition) -> bool:
        amounts = [
            one for one in condition.amounts if not any(agree(one, other) for other in condition.others)
        ]
        for one in amounts:
            alike = [other for other in said.amounts if comparable(one, other)]
            # One that agrees with nothing there is said wrongly, not left out.
            if any(agree(other, one) or not _stands_in(other, condition) for other in alike):
                return True
        words = _forms(condition.text) - _forms(condition.core) - _forms(_SIGNS)
        if not words:
            return True
        has = sum(word in said.forms or not said.groups.isdisjoint(_groups(word)) for word in words)
        return has / len(words) > self.carried


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition of a passage, its characters there, the statement without it, and the words that it is a
    condition of; and the amounts of condition and statement."""

    passage: int
    span: Span
    text: str
    core: str
    of: frozenset[str]
    amounts: tuple[Value, ...]
    others: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    """What question and answer say together."""

    forms: frozenset[str]
    groups: frozenset[int]
    amounts: tuple[Value, ...]


def _conditions_at(
    index: Index, number: int, statement: Statement, told: frozenset[str], asked: frozenset[str]
) -> Iterator[_Condition]:
    """Yield the conditions of a statement, and the sentences after it that go on with it and have some."""
    place = index.places[number]
    passage, text = place.passage, place.text
    for one in statement.conditions:
        span = (one.start, one.end)
        yield _condition(passage, place.start, text, span, statement.core, one.of)
    if statement.end < len(text) or not grants(text):
        return
    core = _forms(statement.core)
    subjects = (core & told) | (core & asked)
    for after in index.places[number + 1 : number + 3]:
        more = after.text
        if after.passage != passage or not _follows(more, subjects):
            return
        if has_sign(more):
            yield _condition(passage, after.start, more, (0, len(more.rstrip(" .;:!"))), statement.core, "")


def _condition(passage: int, offset: int, sentence: str, span: Span, core: str, of: str) -> _Condition:
    start, end = span
    text = sentence[start:end]
    return _Condition(
        passage, (offset + start, offset + end), text, core, _forms(of), _amounts(text), _amounts(core)
    )


def _follows(text: str, subjects: frozenset[str]) -> bool:
    """Say whether a sentence goes on with what the one before it says: by a pronoun, or with one of its
    words."""
    if _POINTS_BACK.match(text):
        return True
    words = WORD.findall(text[:60])
    for word, after in pairwise([*words, ""]):
        if forms := _forms(word):
            return forms <= subjects and after[:1].islower()  # "level 5" is no other level
    return False


def _said(text: str) -> _Said:
    forms = _forms(text)
    return _Said(forms, frozenset(group for form in forms for group in _groups(form)), _amounts(text))


def _amounts(text: str) -> tuple[Value, ...]:
    return tuple(value for value in find_values(text) if value.kind in NUMERIC)


def _stands_in(value: Value, condition: _Condition) -> bool:
    return any(agree(value, other) for other in (*condition.amounts, *condition.others))


def _forms(text: str) -> frozenset[str]:
    """Return the beginnings of its content words, which words of one family share: "apply" and "applies"."""
    words = (word for word in words_of(text) if word not in STOP_WORDS)
    begun = (
        word if len(word) < 4 else word.removesuffix("s") if len(word) <= SAME else word[:SAME]
        for word in words
    )
    return frozenset(f"{word[:-1]}i" if word.endswith("y") else word for word in begun)


def _groups(form: str) -> frozenset[int]:
    """Return the numbers of the synonyms that have a word."""
    return _BY_FORM.get(form, frozenset())


_BY_FORM: dict[str, frozenset[int]] = {}
for _number, _words in enumerate(_SYNONYMS):
    for _form in _forms(_words):
        _BY_FORM[_form] = _BY_FORM.get(_form, frozenset()) | {_number}


def _finding(condition: _Condition, sentence: Span) -> Finding:
    return Finding(
        "omissions",
        "omitted",
        f"The answer leaves out a condition of passage {condition.passage + 1}: "
        f'"{one_line(condition.text, QUOTED)}".',
        start=sentence[0],
        end=sentence[1],
        passages=(condition.passage,),
        details={
            "condition": condition.text,
            "passage_start": condition.span[0],
            "passage_end": condition.span[1],
        },
    )
