"""Faults of meaning: a "not" put in or taken out, an opposite, a condition dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from lrp4rag.claims.polarity import opposites
from lrp4rag.training.pairs.edit import Draft, Edit

_AUXILIARY = re.compile(
    r"(?<!\ba )(?<!\bthe )(?<!\bper )(?<!\beach )(?<!\bevery )(?<!\d )(?<!\bwhat )(?<!\bWhat )"
    r"\b(?:is|are|was|were|can|could|will|would|should|must|has been|have been)\b"
    r"(?= [a-z\d])(?! (?:not|n[\u2019']t|no|only|also|never|neither|you|we|it|he|she|they|as follows)\b)"
)

_IMPERATIVE = re.compile(
    r"(?:(?<=[.!:*] )|(?<=\n)|\A)(?P<verb>Add|Use|Keep|Place|Put|Remove|Store|Wash|Cover|Heat|Cook|Bake|Boil|"
    r"Stir|Mix|Pour|Rinse|Cut|Turn|Let|Allow|Drink|Eat|Take|Make|Press|Open|Close|Click|Contact|Ask|Check|Set|"
    r"Soak|Leave)\b(?= (?:the|a|an|your|it|them|in|into|for|with|on|at|from|to|all|some|any)\b)"
)

_NOT_ALONE = re.compile(r"\bnot\b(?! only)", re.IGNORECASE)

_UNSUITABLE = {
    "all", "none", "both", "neither", "some", "no", "if", "unless", "free", "chargeable", "near", "far",
    "same", "different", "until", "may", "may not", "does", "do", "did", "most", "least", "only",
    "also", "up to", "at least", "at most", "over", "under", "open", "closed", "left", "right", "like",
    "unlike", "on", "off", "first", "last", "is", "are", "was", "were", "has", "have", "can", "could",
    "will", "would", "should", "must", "everyone", "nobody", "start", "end", "low", "high",
}  # fmt: skip
"""Words whose opposite often does not stand in their place, or that another pattern or kind changes."""

_BEFORE_NUMBER = r"(?= [$€£]?\d| (?:a|one|two|three|four|five|six|ten)\b)"

_IF = r"(?:if|unless|provided that|as long as|except when|only when)"

_NO_POLITE = r"(?!necessary|needed|desired|possible|you (?:like|want|wish|prefer))"

_VERBS = (
    r"see check know determine ask asked decide tell out sure even \bas is"
    r" what say wonder learn confirm verify and or test"
)

_NOT_AFTER_VERB = "".join(f"(?<!{word})" for word in _VERBS.split())

_CONDITIONS = (
    (r"(?<!\bthe )(?<!\bnot )(?<!\bbut )(?<!\ban )\bonly\b", ("",)),
    (r"\bexcept for\b", ("including", "as well as")),
    (
        r"(?<![Hh]ow )(?<!\bbe )(?<!\bas )(?<!\bso )(?<!\ba )(?<!\bthe )\b(?:some|many|several|a few)\b"
        r"(?! (?:of|inches|minutes|hours|days|weeks|months|years|times)\b)(?= [a-z]+s\b)",
        ("all", "no"),
    ),
    (r"(?<!\bthe )(?<!\bat )\bmost\b(?= (?:of the|people|[a-z]+(?:ers|ies|ents|ions))\b)", ("all",)),
    (r"\b(?:usually|often|sometimes|typically|generally|normally|occasionally)\b", ("always", "never")),
    (r"\b(?:may|might)\b(?= (?!not\b|also\b)[a-z])", ("will always", "will")),
    (rf"\b(?:up to|at most|no more than|a maximum of)\b{_BEFORE_NUMBER}", ("at least", "more than")),
    (rf"\b(?:at least|a minimum of|no less than)\b{_BEFORE_NUMBER}", ("at most", "up to")),
    (
        rf"{_NOT_AFTER_VERB},? (?:but )?(?:only )?{_IF} {_NO_POLITE}[^,.;:\n]{{8,90}}(?=[.,;])",
        ("", " in any case", " under all circumstances"),
    ),
    (
        r"(?:(?<=[.!] )|(?<=\n)|\A)(?:If|Unless) [^.,;:\n]{8,90}, (?=[a-z])",
        ("In any case, ", "In every case, "),
    ),
)

_CONDITIONAL = [(re.compile(pattern), replacements) for pattern, replacements in _CONDITIONS]
"""Patterns of what limits a statement, and what in their place does not, or limits otherwise."""


def negations(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put the opposite of a word, or a "not", or take one out."""
    response = draft.response
    places: list[tuple[tuple[int, int], tuple[str, ...]]]
    places = [(match.span(), (_negated(match[0]),)) for match in _AUXILIARY.finditer(response)]
    places += [(match.span(), (f"Do not {match[0].lower()}",)) for match in _IMPERATIVE.finditer(response)]
    for value in draft.values:
        if value.kind != "polarity" or value.text.lower() in _UNSUITABLE:
            continue
        if value.text.lower() == "not" and not _NOT_ALONE.match(response, value.start):
            continue
        if value.text.lower() in ("with", "without") and random.random() < 0.75:
            continue  # else every second negation would be one of these
        if re.match(r" (?:only|just|merely)\b", response[value.end :]) or response[: value.start].endswith(
            ("if ", "or ")
        ):
            continue
        places.append(((value.start, value.end), opposites(value)))
    for (start, end), replacements in random.sample(places, len(places)):
        edit = draft.edit("negation", start, end, random.choice(replacements)) if replacements else None
        if edit is not None and draft.grounded(start):
            yield edit


def conditions(draft: Draft, random: Random) -> Iterator[Edit]:
    """Drop a condition or a limit, turn it round, or say it of everything."""
    places = [
        (match.span(), replacements)
        for pattern, replacements in _CONDITIONAL
        for match in pattern.finditer(draft.response)
    ]
    for (start, end), replacements in random.sample(places, len(places)):
        edit = draft.edit("condition", start, end, random.choice(replacements))
        if edit is not None and draft.grounded(min(start + 1, end)):
            yield edit


def _negated(auxiliary: str) -> str:
    if auxiliary == "can":
        return "cannot"
    first, _, rest = auxiliary.partition(" ")
    return f"{first} not {rest}".rstrip()
