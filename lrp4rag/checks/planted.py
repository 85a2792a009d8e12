"""`Planted`: sentences of an answer that rest on orders to models in a passage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from lrp4rag.checks.check import CheckInput, Finding, Need
from lrp4rag.checks.facts.clauses import Span
from lrp4rag.checks.facts.whole import whole
from lrp4rag.checks.resting import resting_on
from lrp4rag.sentence_stream import sentences_in
from lrp4rag.text import one_line

_MODEL = r"(?:ai|llm|chatbot|(?:language |ai )model|ai assistant|guardrail|verifier|grader|detector)s?"
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override) (?:(?:all|any|every|the|your|of|my|these) ){0,3}"
    r"(?:previous|prior|above|earlier|preceding|other|system|safety) "
    r"(?:instruction|prompt|rule|direction|message|guideline)s?\b"
    r"|\b(?:note|message|instructions?|order|hint) (?:to|for) (?:(?:any|the|all|every|an?) ){0,2}"
    rf"{_MODEL}\b"
    rf"|\b(?:you are|act as|pretend to be|behave like) (?:now )?(?:an? |the )?(?:\w+ ){{0,2}}{_MODEL}\b"
    r"|\b(?:reveal|print|repeat) (?:your|the) (?:system|hidden) prompt\b"
    rf"|\b{_MODEL} (?:must|shall|should|has to|is to) (?:always |only |now )?"
    r"(?:answer|say|reply|respond|state|serve|mark)\b"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>"
    r"|^ *(?:system|assistant) ?(?:prompt|message)? ?: ?(?:you|ignore|always|never|from now)\b",
    re.IGNORECASE | re.MULTILINE,
)
LONGEST = 100_000
"""Characters of a passage that are looked at."""
AFTER = 2
"""Sentences behind an order that count as part of it."""
QUOTED = 60


@dataclass(frozen=True, slots=True)
class Planted:
    """One finding of kind "planted" for each sentence of the answer that says what only an order to models
    says, or the two sentences behind it: "ignore all previous instructions", "note to the AI", marks of a
    chat template. The rest of such a passage may be rested on."""

    name: ClassVar[str] = "planted"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    def __call__(self, given: CheckInput) -> list[Finding]:
        """In the order of the response. Raises `OverBudget`."""
        orders: dict[int, Span] = {}
        quoted: dict[int, str] = {}
        for number, source in enumerate(given.sources):
            given.tick()
            text = whole(source.text[:LONGEST])
            if (match := _ORDERS.search(text)) is not None:
                orders[number] = _reach(text, match)
                quoted[number] = one_line(match[0], QUOTED)
        if not orders:
            return []
        return [
            Finding(
                self.name,
                "planted",
                f'The answer rests on an order to models in passage {passage + 1} ("{quoted[passage]}").',
                start=start,
                end=end,
                passages=(passage,),
            )
            for start, end, passage in resting_on(given, orders)
        ]


def _reach(text: str, order: re.Match[str]) -> Span:
    """The characters of an order and of the sentences behind it."""
    behind = [span for span in sentences_in(text) if span[1] > order.start()][: AFTER + 1]
    return order.start(), (behind[-1][1] if behind else order.end())
