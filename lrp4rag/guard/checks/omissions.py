"""`Omissions`: conditions of a passage that an answer which makes its statement leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

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
"""Letters at the beginning of a word that words of one family share."""

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
"""Words of conditions that do not tell what the condition is."""
_YES_OR_NO = frozenset({"yes", "no", "correct", "right", "indeed"})


@dataclass(frozen=True, slots=True)
class Omissions:
    """One finding of kind "omitted" for each condition of a passage's statement that the answer makes, where
    neither the answer nor the question has it.

    An answer makes a statement where a sentence of it has the share `made` of the statement's words (those of
    the question help), and the statement has this share of the sentence's words. An answer carries a
    condition where it has an amount of it, or more than the share `carried` of its words.
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
        exchange = f"{question}\n{response}"
        content = _Content(_with_synonyms(_forms(exchange)), _amounts(exchange))
        question_forms = _forms(question)
        findings: dict[tuple[int, Span], Finding] = {}
        for start, end in stated(response, inputs.tick):
            inputs.tick()
            forms = _forms(response[start:end]) - _YES_OR_NO
            text = response[start:end] if forms else question  # "Yes." repeats the question
            sentence = sentence_of(start, end, inputs.verdict) if inputs.verdict else None
            passage = sentence.passage if sentence else None
            resting = index.resting(content_words(text), find_values(text), passage)
            for condition in self._conditions(forms or question_forms, question_forms, index, resting):
                key = (condition.passage, condition.span)
                if key not in findings and not self._carries(content, condition):
                    findings[key] = _finding(condition, (start, end))
        return list(findings.values())

    def _conditions(
        self, sentence: frozenset[str], question: frozenset[str], index: Index, resting: Sequence[int]
    ) -> Iterator[_Condition]:
        """Yield the conditions of the statement that a sentence of the answer makes, by the forms of its
        words and of those of the question."""
        best, match = 0.0, None
        for number in resting:
            text = index.places[number].text
            for statement in statements(text):
                similarity = self._similarity(statement, text, sentence, question)
                if similarity > best:
                    best, match = similarity, (number, statement)
        if match is not None:
            for condition in _conditions_at(index, *match, sentence | question):
                of = _forms(condition.of)
                if not of or of & (sentence | question):
                    yield condition

    def _similarity(
        self, statement: Statement, text: str, sentence: frozenset[str], question: frozenset[str]
    ) -> float:
        """Return how similar a statement is to a sentence of the answer; 0 where the sentence does not make
        it."""
        core, forms = _forms(statement.core), _forms(text[statement.start : statement.end])
        shared = core & sentence
        news = sentence == question or shared - question or len(shared) > 1
        if not core or not sentence or not news:
            return 0.0
        precision, recall = len(forms & sentence) / len(sentence), len(shared | (core & question)) / len(core)
        return precision * recall if min(precision, recall) >= self.made else 0.0

    def _carries(self, content: _Content, condition: _Condition) -> bool:
        """Say whether question and answer have a condition."""
        amounts, core = _amounts(condition.text), _amounts(condition.core)
        for amount in amounts:
            if _has(core, amount):
                continue
            rivals = [rival for rival in content.amounts if comparable(amount, rival)]
            # An amount that agrees with nothing there is wrong, not left out.
            if any(agree(rival, amount) or not _has((*amounts, *core), rival) for rival in rivals):
                return True
        words = _forms(condition.text) - _forms(condition.core) - _forms(_SIGNS)
        return not words or len(words & content.forms) / len(words) > self.carried


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition of a passage, its characters there, the statement without it, and the words that it is a
    condition of."""

    passage: int
    span: Span
    text: str
    core: str
    of: str


class _Content(NamedTuple):
    """The words of question and answer together, with their synonyms, and their amounts."""

    forms: frozenset[str]
    amounts: tuple[Value, ...]


def _conditions_at(
    index: Index, number: int, statement: Statement, forms: frozenset[str]
) -> Iterator[_Condition]:
    """Yield the conditions of a statement, and the sentences after it that go on with it and have some;
    `forms` are those of the words of the answer's sentence and of the question."""
    place = index.places[number]
    for condition in statement.conditions:
        span = (place.start + condition.start, place.start + condition.end)
        text = place.text[condition.start : condition.end]
        yield _Condition(place.passage, span, text, statement.core, condition.of)
    if statement.end < len(place.text) or not grants(place.text):
        return
    subjects = _forms(statement.core) & forms
    for after in index.places[number + 1 : number + 3]:
        if after.passage != place.passage or not _follows(after.text, subjects):
            return
        if has_sign(after.text):
            text = after.text.rstrip(" .;:!")
            span = (after.start, after.start + len(text))
            yield _Condition(after.passage, span, text, statement.core, "")


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


def _amounts(text: str) -> tuple[Value, ...]:
    return tuple(value for value in find_values(text) if value.kind in NUMERIC)


def _has(amounts: Iterable[Value], value: Value) -> bool:
    return any(agree(value, amount) for amount in amounts)


def _forms(text: str) -> frozenset[str]:
    """Return the beginnings of the content words, which words of one family share: "apply" and "applies"."""
    words = (word for word in words_of(text) if word not in STOP_WORDS)
    beginnings = (
        word if len(word) < 4 else word.removesuffix("s") if len(word) <= SAME else word[:SAME]
        for word in words
    )
    return frozenset(f"{word[:-1]}i" if word.endswith("y") else word for word in beginnings)


_GROUPS = [_forms(words) for words in _SYNONYMS]


def _with_synonyms(forms: frozenset[str]) -> frozenset[str]:
    return forms.union(*(group for group in _GROUPS if forms & group))


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
