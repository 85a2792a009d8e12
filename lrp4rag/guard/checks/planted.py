"""`Planted`: sentences of an answer that rest on orders to models in a passage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from lrp4rag.claims.clauses import Span
from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.guard.checks.plain import plain, squeezed
from lrp4rag.guard.checks.resting import resting_on
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import encodable, one_line

_ASSISTANT = "ai|llm|chatbot|(?:language |ai )model|ai assistant|guardrail|verifier|grader"
_MODEL = rf"(?:{_ASSISTANT}|detector)s?"
_IGNORE = (
    r"(?:ignore|disregard|forget|overr(?:ide|ule)|bypass|paynoattentionto"
    r"|(?:donot|dont|stop|nolonger)(?:follow|obey|heed|listento|complywith)(?:ing)?)(?:about)?"
)
_ANY = "(?:all|any|every|each|the|your|of|my|our|its|these|those|this|that|both){0,5}"
_EARLIER = "(?:previous|prior|above|earlier|preceding|foregoing|former|initial|system|safety)"
_ORDER = "(?:instruction|prompt|rule|direction|directive|message|guideline|command|constraint|context)"
_TEXT = rf"(?:{_ORDER}|text|content|passage|document|information)"
_GIVEN = "(?:given|told|received|provided|stated|listed|written|shown|mentioned|issued|said|instructed|asked)"
_BY_WHOM = "(?:that|which|what)?(?:(?:you|i|we)?(?:was|were|are|is|have|had|ve|re)?(?:been)?)"
_BEFORE = "(?P<before>above|before|earlier|previously|sofar|untilnow|uptonow|priortothis)"
_IGNORING = re.compile(
    rf"{_IGNORE}{_ANY}(?:"
    rf"(?:{_EARLIER}(?:ly)?{_GIVEN}?(?:and|or)?){{1,3}}{_ORDER}s?|other(?:instruction|prompt|rule|direction|guideline)s?"
    rf"|(?:{_TEXT}s?|(?:every|any)?(?:thing)?(?:else)?){_BY_WHOM}(?:{_GIVEN}|came|comes)?"
    rf"(?:toyou|todo|here)?{_BEFORE}"
    rf"|(?:everything|anything|what)(?:that)?you(?:know|(?:were|are|have|had|vebeen|havebeen|hadbeen|re){_GIVEN})"
    r")"
)
"""A demand to ignore other text, among letters only: spaces and case do not matter."""
_OF_READERS = re.compile(
    r"(?:\b(?:never|not|cannot|who|may|might|could|(?:if|when|unless) \w+)|n['\u2019]t"
    r"|(?:^|[.!?:]\s)to"
    r"|\b(?!(?:you|need|have|want|going|ordered|instructed|required|asked|model|assistant"
    r"|is|important|essential|necessary|remember|sure|certain) )\w+ to)"
    r"\W*$",
    re.IGNORECASE,
)
"""Words after which nobody is ordered to do it."""
_SOMEBODY = re.compile(
    r"\b(?!(?:always|thus|yes|this|regardless|nevertheless|assistants|models"
    r"|the (?:ai|assistant|model|chatbot))\b)(?:[a-z]{3,}s|the \w+|people|they|we|he|she|it)"
    r"(?: (?:will|would|should|must|may|can|could))?\s*$",
    re.IGNORECASE,
)
"""A subject of which the text speaks: "Patients should stop following the earlier guidelines"."""
_HARMLESS = re.compile(
    r"[;,]? (?:and|or) you(?: will|['\u2019]ll)? (?:lose|risk|void)\b"
    r"| about (?!this|that|your|the (?:task|rules))| of \d",
    re.IGNORECASE,
)
"""What follows an address to readers: "everything you know about cooking", "our instructions of 3 May"."""
_IF = re.compile(r"\b(?:if|unless|when)\b(?! you are an? )", re.IGNORECASE)
_GAP = r"[^\w.!?]{1,12}"
_EVERY = re.compile(r"\b(?:all|any|every|everything|anything)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_ENDS = re.compile(
    r"[^\S\n]*(?:[^\s\w]|\n|$|(?:and|then|but|or|instead|please|now|as|because|completely|entirely)\b)"
)
"""What follows where all that came before is meant, and not what stands above a line."""
_ORDERS = re.compile(
    rf"\b(?:note|message|instructions?|order|hint) (?:to|for) (?:(?:any|the|all|every|an?) ){{0,2}}{_MODEL}\b"
    rf"|\b(?:you are|act as|pretend to be|behave like) (?:now )?(?:an? |the )?(?:\w+ ){{0,2}}{_MODEL}\b"
    r"(?! (?:engineer|researcher|developer|expert|specialist|scientist|student|trainer|company|team)s?\b)"
    r"|\b(?:reveal|print|repeat) (?:your|the) (?:system|hidden) prompt\b"
    rf"|\b(?:{_ASSISTANT}|hallucination detector)s?"
    r" (?:must|shall|should|has to|is to) (?:always |only |now )?"
    r"(?:answer|say|reply|respond|state|serve|mark)\b"
    r"|<\|(?:im\s(?:start|end)|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>"
    r"|^\W{0,12}(?:system|assistant)\W{0,6}(?:prompt|message)?\W{0,6}:\W{0,6}"
    r"(?:you|ignore|always|never|from now)\b".replace(" ", f"(?:{_GAP})"),
    re.IGNORECASE | re.MULTILINE,
)
LONGEST = 100_000
"""Characters of a passage that are read."""
CONTEXT = 100
"""Characters around an order that say whose it is."""
AFTER = 2
"""Sentences after an order that count as part of it."""
QUOTED = 60


@dataclass(frozen=True, slots=True)
class Planted:
    """One finding of kind "planted" for each sentence of the answer that rests on an order to models, or on
    the two sentences after it: "ignore all previous instructions", "note to the AI", marks of a template.
    An answer may rest on the rest of such a passage."""

    name: ClassVar[str] = "planted"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings in the order of the response. Raises `OverBudget`."""
        orders: dict[int, Span] = {}
        quotes: dict[int, str] = {}
        for number, source in enumerate(inputs.sources):
            inputs.tick()
            key = (self.name, number)
            if key not in inputs.memory:
                inputs.memory[key] = _planted_in(encodable(source.text[:LONGEST]))
            if (planted := inputs.memory[key]) is not None:
                orders[number], quotes[number] = planted
        if not orders:
            return []
        return [
            Finding(
                self.name,
                "planted",
                f'The answer rests on an order to models in passage {passage + 1} ("{quotes[passage]}").',
                start=start,
                end=end,
                passages=(passage,),
            )
            for start, end, passage in resting_on(inputs, orders)
        ]


def _planted_in(text: str) -> tuple[Span, str] | None:
    """Return the reach of a passage's first order to models, and its words; None without an order."""
    order = _order_in(text)
    return None if order is None else (_reach(text, order), one_line(text[slice(*order)], QUOTED))


def _order_in(text: str) -> Span | None:
    """Return the first order to models, however it is disguised."""
    readable = plain(text)
    letters = squeezed(readable.text)
    orders = [match.span() for match in [_ORDERS.search(readable.text)] if match is not None]
    for match in _IGNORING.finditer(letters.text):
        start, end = letters.place(match.start()), letters.place(match.end() - 1) + 1
        if _is_order(readable.text, start, end, before=match["before"]):
            orders.append((start, end))
            break
    if not orders:
        return None
    start, end = min(orders)
    return readable.place(start), readable.place(end - 1) + 1


def _is_order(text: str, start: int, end: int, *, before: str | None) -> bool:
    """Say whether a text demands to ignore what came before, other than of its readers in some case."""
    context = text[max(start - CONTEXT, 0) : start]
    if _OF_READERS.search(context) or _SOMEBODY.search(context) or _HARMLESS.match(text, end):
        return False
    if before in ("above", "before", "earlier") and not _ENDS.match(text, end):
        return False
    sentence_start = _SENTENCE_END.split(context)[-1]
    sentence_end = _SENTENCE_END.split(text[end : end + CONTEXT])[0]
    return bool(_EVERY.search(text[start:end])) or not (
        _IF.search(sentence_start) or _IF.search(sentence_end)
    )


def _reach(text: str, order: Span) -> Span:
    """Return the characters of an order and of the sentences after it."""
    sentences = [span for span in sentences_in(text) if span[1] >= order[1]][: AFTER + 1]
    return order[0], max(order[1], sentences[-1][1] if sentences else 0)
