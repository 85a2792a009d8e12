"""A prompt as it is read (`View`), and other words for it.

A response in capitals is read in plain case, a question without its premise, passages with what follows from
them. A reader finds likely what it has just read, in a question too: "Items may be returned within 30 days,
right?" supports "30 days" as a passage would. So a sentence that repeats what only the question supposes is
also read after the question as the passages would have it. And a reader finds unlikely what a response
computes, so a suspect sentence whose values follow from others, or are of the asker's own case, is also read
after passages that say so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.bounds import bound_of
from lrp4rag.claims.derivation import Derivation
from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index, rivals
from lrp4rag.claims.operands import YEAR
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.words import STOP_WORDS, content_words
from lrp4rag.classifiers.verdict import Contradiction, Difference
from lrp4rag.example import Example, Span
from lrp4rag.features.excerpt import Excerpt, with_passages
from lrp4rag.reader.encoding import Encoded, Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.util.sentences import sentences_in

Located = TypeVar("Located", Contradiction, Difference)
_WORD = re.compile(r"[^\W\d_]+")
ACRONYM = 4
"""Letters of a word in capitals that no text has, and that is left as it is."""
FEWEST = 2
"""Words of a sentence, behind its first, by which it is known."""
MOST = 0.6
"""The share of them that is not as texts write them."""

KINDS = ("quantity", "date", "time", "name")
_OPERATION = re.compile(r" [\u00d7/+-] |, ")
"""Between the operands of a derivation."""
_YES = re.compile(
    r"\W*(?:yes|yeah|correct|right|indeed|exactly|that is (?:right|correct)|that's (?:right|correct))\b", re.I
)
_DENIED = re.compile(
    r"(?:\A\W*no\b.*|(?:\b(?:no|not|never|nor|without)|n['\u2019]t)(?:\s+\w+){0,3}\s+)\Z",
    re.IGNORECASE | re.DOTALL,
)
"""Before a value: it is not said, but denied."""
_SOMEBODY = r"(?:I|we|you|he|she|they|someone|somebody|anyone|anybody|an?|my|our|his|her|their)"
_CASE = re.compile(
    r"\b(?:an?|my|our|your|his|her|their) (?:[\w'\u2019-]+ ){1,3}"
    r"(?:of|with|aged|worth|weighing|costing)(?: about)? \Z"
    rf"|\b(?:if|in case|(?:when|as|for) {_SOMEBODY}|(?:people|{_SOMEBODY}) who)\b[^,;.?!]*\Z",
    re.IGNORECASE,
)
"""Before a value of the asker's case: "a child of", "if I take"."""
_OF_ASKER = re.compile(r"\b(?:you|your|yours|he|she|they|his|her|their|him|them)\b", re.IGNORECASE)
"""In a sentence that speaks of the asker's case, and of no rule ("The grace period is 7 days.")."""
_CASE_AFTER = re.compile(r"[ -](?:ago|olds?|year-olds?)\b", re.IGNORECASE)
_STATED = re.compile(
    r"\W*(?:(?:I|we|he|she|they)(?: (?:am|are|is|was|were|weighs?|earns?|works?|lives?|bought|ordered|booked"
    r"|paid|drives?|rides?|travel|own|measure)|['\u2019](?:m|re|s|ve))\b"
    r"|(?:I|we|he|she|they) (?:have|has|had) (?!to\b)"
    r"|(?:my|our|his|her|their)\b[^?]{0,40}? (?:is|are|was|were|has|have|weighs?|measures?)\b)"
    r"(?![^?]*\?\s*\Z)",
    re.IGNORECASE,
)
"""What the asker says of themselves, and does not ask."""
_GRANTED = re.compile(r"\b(?:have|has|had|gets?|got) \Z", re.IGNORECASE)
"""Before a time that somebody has for something."""
_RULE = re.compile(
    r"\b(?:told|heard|hear|read|know|knew|think|thought|believe|understand|understood|saw|see|says?|said|assume)\b"
    r"|\b(?:may|must|can|could|should|allowed|entitled|costs?|lasts?|includes?|covers?|least|most)\b"
    r"|\b(?:warrant(?:y|ies)|guarantee|deposit|fee|plan|contract|tariff|subscription|membership|limit|allowance|leave"
    r"|notice|insurance|policy|discount|rate|price)\b",
    re.IGNORECASE,
)
"""Words of what holds for all: the asker supposes it, or was told."""
_ASKS = re.compile(
    r"\W*(?:can|could|may|might|must|is|are|am|was|were|does|do|did|will|would|should|shall|has|have|had)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:too|exceed\w*|closed|ended|expired|unfortunately|sorry|not|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
"""In a sentence that does not affirm a value that it repeats."""
_LIMIT = re.compile(
    r"(?i:\b(?:within|until|till|by|before|after|since|from|between)(?: the)? )\Z"
    r"|(?:\d\S*|[A-Z]\w*)(?: ?[a-z%]{1,6})?(?: (?:to|until|till|through) | ?[-\u2010-\u2015] ?)\Z",
)
_LIMIT_AFTER = re.compile(r" (?:to|until|till|through) (?=[\dA-Z])| ?[-\u2010-\u2015] ?(?=[\dA-Z])")


@dataclass(frozen=True, slots=True)
class Supposed:
    """A value of the question, and what the most similar place of the passages has instead."""

    value: Value
    instead: Value


@dataclass(frozen=True, slots=True)
class Premise:
    """A false premise: a value that only the question has; `example` has the question as the passages would
    have it."""

    example: Example
    supposed: tuple[Supposed, ...]

    def repeated_in(self, response: str, sentences: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Return the numbers of the sentences of a response that repeat it."""
        return tuple(
            number
            for number, (start, end) in enumerate(sentences)
            if _repeats(response[start:end], self.supposed)
        )


def premise_of(example: Example) -> Premise | None:
    """Return the premise of a question, None where the passages contradict nothing that it supposes."""
    has_question = any(span.kind == "question" for span in example.spans)
    supposed = _supposed(example.question, example.passages) if has_question else ()
    return Premise(_as_passages_say(example, supposed), supposed) if supposed else None


def _supposed(question: str, passages: Sequence[str]) -> tuple[Supposed, ...]:
    values = [value for value in find_values(question) if value.kind in KINDS]
    if not values:
        return ()
    index, supposed = Index(passages), list[Supposed]()
    for value in values:
        around = question[: value.start] + question[value.end :]
        occurrences = index.occurrences(value, index.similarities(content_words(around)))
        candidates = [occurrence for occurrence in rivals(value, occurrences) if occurrence.similarity > 0]
        if (
            not candidates
            or any(agree(value, occurrence.value) for occurrence in occurrences)
            or _is_case(question, value)
        ):
            continue
        if not _fits_a_limit(question, value, passages[candidates[0].passage], candidates[0].value):
            supposed.append(Supposed(value, candidates[0].value))
    return tuple(supposed)


def _sentence(question: str, value: Value) -> tuple[int, str]:
    """Return the sentence of a value: where it starts, and its text."""
    spans = (span for span in sentences_in(question) if span[0] <= value.start < span[1])
    start, end = next(spans, (0, len(question)))
    return start, question[start:end]


def _fits_a_limit(question: str, value: Value, passage: str, bound: Value) -> bool:
    """Say whether a question asks how a value, which is no limit itself, compares with a limit of the
    passages, and states no rule: "Is it open at 5 pm?" beside "from 9 am to 6 pm"."""
    start, sentence = _sentence(question, value)
    states_rule = _RULE.search(sentence) or _is_granted(value, question[start : value.start])
    asks = _ASKS.match(sentence) is not None or not states_rule
    return asks and _is_limit(passage, bound) and not _is_limit(question, value)


def _is_granted(value: Value, before: str) -> bool:
    return value.unit == "second" and _GRANTED.search(before) is not None


def _is_case(question: str, value: Value) -> bool:
    """Say whether a value is of the asker's own case, which passages do not know ("I am 67 years old.")."""
    start, sentence = _sentence(question, value)
    before = question[start : value.start]
    states_rule = _RULE.search(sentence) is not None
    if not states_rule and _CASE_AFTER.match(question, value.end):
        return True
    if _is_granted(value, before) or before.lower().endswith("the ") or _LIMIT.search(before[-20:]):
        return False
    if case := _CASE.search(before):
        return _RULE.search(before, case.start()) is None
    return not states_rule and _STATED.match(sentence) is not None


def _is_limit(text: str, value: Value) -> bool:
    """Say whether a value is a bound, or an end of a range: what is compared with it need not be equal."""
    before = text[max(value.start - 20, 0) : value.start]
    bounded = bound_of(text, value.start, value.end) != ""
    return bounded or bool(_LIMIT.search(before) or _LIMIT_AFTER.match(text, value.end))


def _repeats(sentence: str, supposed: Sequence[Supposed]) -> bool:
    """Say whether it says a supposed value as its own: neither denied, nor beside what the passages have; a
    name only where it begins with a yes."""
    values = find_values(sentence)
    affirmed = _YES.match(sentence) is not None
    if not affirmed and _REFUSED.search(sentence):
        return False
    return any(
        agree(value, each.value) and not any(agree(beside, each.instead) for beside in values)
        for value in values
        if not _DENIED.search(sentence[: value.start])
        for each in supposed
        # A name may be another one's short form, or a subject that passages call otherwise.
        if affirmed or each.value.kind != "name"
    )


def _as_passages_say(example: Example, supposed: Sequence[Supposed]) -> Example:
    question = example.question
    for premise in sorted(supposed, key=lambda premise: -premise.value.start):
        question = question[: premise.value.start] + premise.instead.text + question[premise.value.end :]
    span = next(span for span in example.spans if span.kind == "question")  # there is one: see `premise_of`
    return rewritten(example, span, question)


def with_derivations(example: Example, derived: Iterable[Derivation]) -> Example:
    """Return the example where the passages also say what a response derives from them."""
    for derivation in derived:
        spans = [
            span for span in example.spans if span.kind == "passage" and span.index == derivation.passage
        ]
        if spans:
            last = max(spans, key=lambda span: span.start)  # a passage may stand in several parts
            passage = example.prompt[last.start : last.end]
            statement = f"{_said_with(derivation, passage)}{derivation.words} = {derivation.value.text}."
            example = rewritten(example, last, f"{passage} {statement}")
    return example


def own_case(response: str, sentence: tuple[int, int], question: str, index: Index) -> Iterator[Derivation]:
    """Yield the values of a sentence (its characters) that are of the asker's own case, and that no passage
    has: "your seven days" where the question says "I have 7 days left"."""
    values = (each for each in find_values(question) if each.kind in KINDS and each.kind != "name")
    cases = [value for value in values if _is_case(question, value)]
    text = response[slice(*sentence)]
    for value in find_values(text) if cases and _OF_ASKER.search(text) else ():
        case = next((each for each in cases if agree(value, each) or _is_age(value, each)), None)
        if case is None or value.precision.bound:
            continue
        if not any(agree(value, each) for place in index.places for each in place.values):
            for place, _ in index.closest(content_words(text))[:1]:
                words = f"The asker says: {_sentence(question, case)[1].rstrip('.?! ')}"
                yield Derivation(value.shifted(sentence[0]), words, index.places[place].passage)


def _is_age(value: Value, case: Value) -> bool:
    """Say whether a plain number is the asker's case in years: "at nine" of "my 9-year-old"."""
    is_plain = value.kind == "quantity" and not value.unit and case.unit == "second"
    return is_plain and value.amount * YEAR == case.amount


def _said_with(derivation: Derivation, passage: str) -> str:
    """Return the sentence of a passage that has the first operand, and most others, to be said once more with
    what follows from it: a place is compared with a response by its words."""
    operands = [
        re.compile(rf"(?<![\w.,]){re.escape(operand)}(?!\w)")
        for operand in _OPERATION.split(derivation.words)
    ]

    def had(sentence: str) -> list[bool]:
        return [operand.search(sentence) is not None for operand in operands]

    sentences = (passage[start:end] for start, end in sentences_in(passage))
    sentence = max(sentences, key=had, default="")
    return f"{sentence.rstrip('.!?')}: " if any(had(sentence)) else ""


def rewritten(example: Example, span: Span, text: str) -> Example:
    """Return the example with another text for one of its spans, and at the end of the passage, or as the
    question, that stands there."""
    by = len(text) - (span.end - span.start)
    spans = tuple(
        replace(each, end=each.end + by)
        if each is span
        else replace(each, start=each.start + by, end=each.end + by)
        if each.start >= span.end
        else each
        for each in example.spans
    )
    prompt = example.prompt[: span.start] + text + example.prompt[span.end :]
    if span.kind == "question":
        return replace(example, question=text, prompt=prompt, spans=spans)
    passages = list(example.passages)
    passages[span.index] = passages[span.index].removesuffix(example.prompt[span.start : span.end]) + text
    return replace(example, passages=passages, prompt=prompt, spans=spans)


def in_plain_case(text: str, sources: Iterable[str]) -> str:
    """Return the text, as long as it is, with each sentence in the case of the `sources` that has most words
    in capitals, or with capitals, which these, or English, write in small letters."""
    forms = dict[str, str]()
    for source in sources:
        for word in _WORD.findall(source):
            if word.islower() or word.lower() not in forms:
                forms[word.lower()] = word
    pieces, after = [], 0
    for start, end in sentences_in(text):
        pieces += [text[after:start], _recased(text[start:end], forms)]
        after = end
    plain = "".join([*pieces, text[after:]])
    # Sentences are told apart by capitals too.
    return plain if sentences_in(plain) == sentences_in(text) else text


def _recased(sentence: str, forms: dict[str, str]) -> str:
    """Return a sentence in the case of the `forms`, as it is where most of its words are written so."""
    words, shouted = list(_WORD.finditer(sentence)), sentence.isupper()
    candidates = [word[0] for word in (words if shouted else words[1:])]
    known = [word for word in candidates if word.lower() in forms or _is_stop(word)]
    raised = [word for word in known if word != forms.get(word.lower(), word.lower()) and not word.islower()]
    if len(known) < (1 if shouted else FEWEST) or len(raised) < MOST * len(known):
        return sentence

    def lowered(match: re.Match[str]) -> str:
        plain = match[0].lower()
        if plain not in forms and match[0].isupper() and len(plain) <= ACRONYM and not _is_stop(plain):
            return match[0]
        form = forms.get(plain, plain)
        if match.start() == words[0].start():
            form = form[:1].upper() + form[1:]
        return form if len(form) == len(match[0]) else match[0]

    return _WORD.sub(lowered, sentence)


def _is_stop(word: str) -> bool:
    return word.lower() in STOP_WORDS and len(word) > 1


class View:
    """A prompt as it is read, encoded once for all responses to it: all of it, or an excerpt."""

    def __init__(
        self, reader: Reader, example: Example, truncation: Truncation, excerpt: Excerpt | None = None
    ) -> None:
        self.example, self.excerpt, self._reader = example, excerpt, reader
        self._truncation: Truncation = truncation

    @cached_property
    def prompt(self) -> Encoded:
        """The prompt without a response, not truncated."""
        return self._reader.whole_prompt(self.example)

    def fitted(self) -> Encoded:
        """Return the prompt, truncated. Raises `InputError` for one that leaves no room for a response."""
        return self._reader.fit_prompt(self.prompt, max_new_tokens=1, truncation=self._truncation)

    def encode(self, response: str) -> Encoded:
        """Encode a response after the prompt, truncated to the reader's window."""
        return self._reader.with_response(self.prompt, response, truncation=self._truncation)

    def supposing(self, encoded: Encoded) -> tuple[Encoded, tuple[int, ...]] | None:
        """Return, where sentences of a response repeat what only the question supposes, the response after
        the question as the passages would have it, and these sentences' numbers."""
        if self._premise is None:
            return None
        premise, prompt = self._premise
        sentences = premise.repeated_in(encoded.response, encoded.sentences)
        if not sentences:
            return None
        return self._reader.with_response(prompt, encoded.response, truncation=self._truncation), sentences

    @cached_property
    def _premise(self) -> tuple[Premise, Encoded] | None:
        """What only the question supposes, and the prompt without it."""
        premise = premise_of(self.example)
        return None if premise is None else (premise, self._reader.whole_prompt(premise.example))

    def saying(self, derived: Iterable[Derivation], response: str) -> Encoded:
        """Encode a response after passages that also say what it derives from them."""
        return self._encode_after(with_derivations(self.example, derived), response)

    def without(self, passages: Collection[int], response: str) -> Encoded:
        """Encode a response after the prompt without some passages."""
        texts = ["" if number in passages else text for number, text in enumerate(self.example.passages)]
        return self._encode_after(with_passages(self.example, texts), response)

    def _encode_after(self, example: Example, response: str) -> Encoded:
        return View(self._reader, example, self._truncation).encode(response)

    def original(self, items: Iterable[Located]) -> tuple[Located, ...]:
        """Return contradictions or differences with their characters in the passages as they were given."""
        if self.excerpt is None:
            return tuple(items)
        moved = []
        for item in items:
            start, end = self.excerpt.original(item.passage, item.passage_start, item.passage_end)
            moved.append(replace(item, passage_start=start, passage_end=end))
        return tuple(moved)

    def computed(self, values: tuple[Computed, ...]) -> tuple[Computed, ...]:
        """Return values that follow from others, with these others' characters in the passages as given."""
        return values if self.excerpt is None else self.excerpt.computed(values)
