"""Phrases by which a sentence says more or less than the passages: conditions, and what widens it.

"regardless of the soil" beside "provided the soil is acid": whoever judges the sentence without the phrase
can tell whether the phrase is what the passages do not support.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place
from lrp4rag.claims.words import content_words

LEAST = 0.3
"""The share of a sentence's words without the phrase in the sentence of the passages that is most like it."""
MOST = 4
"""Phrases of a sentence that are looked at, at most."""
FEWEST = 2
"""Words of the sentence without the phrase, at least."""
_LIMITED = frozenset({"exception", "only", "if", "time", "limit", "mostly"})
_ALONE = (
    r"always|at any time|in (?:any|every|all) cases?|without exception|unconditionally|unlimited"
    r"|certainly|as (?:long|often|much|many) as (?:you|they|he|she|one) (?:like|want|wish|please)s?"
)
_WIDE = (
    r"regardless|irrespective|no matter|(?:whatever|whichever)(?!['\u2019]s\b| (?:is|are|was|were)\b)"
    r"|whenever|wherever|whether or not|with or without"
    r"|however (?:long|many|much|often|old|far|late|early|big|large|small|short)|right up (?:to|until)"
    r"|even (?:if|when|without|after|on|in|for|where)|for (?:anyone|everyone|all|everybody|anybody)"
)
_CONDITION = (
    r"(?:but |and )?(?:only )?(?:if|unless|provided|providing|(?:as|so) long as|on (?:the )?condition"
    r"|subject to|except(?: for| on| in| to)?|apart from|other than"
    r"|for (?:members|customers|those|students|people))"
    r"|but not|(?:but )?only (?:for|in|on|at|with|after|from|until|by|to)"
)
_BEGINNING = re.compile(
    rf"[,;]?\s?\b(?:(?P<alone>{_ALONE})|(?P<wide>{_WIDE})|(?P<condition>{_CONDITION}))\b", re.IGNORECASE
)
_ANY_CONDITION = re.compile(rf"\b(?:{_CONDITION})\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|no|nor)|n['\u2019]t)(?:\s+\w+)?\s*\Z", re.IGNORECASE)
_END = re.compile(r"[,;:()](?!\d)|\s(?:and|but|or|which|while|whereas)\s|[.!?]*\Z", re.IGNORECASE)


def additions(index: Index, sentence: Place) -> Iterator[Counterpart]:
    """Yield the phrases of a sentence of a response that passages may not have; beside each the sentence of
    the passages that is most like the rest."""
    text, here = sentence.text, sentence.start
    for start, end, condition in itertools.islice(_phrases(text), MOST):
        rest = content_words(f"{text[:start]} {text[end:]}")
        similarities = index.similarities(rest) if len(rest) >= FEWEST else []
        number = max(range(len(similarities)), key=similarities.__getitem__, default=None)
        if number is None or similarities[number] < LEAST:
            continue
        place, phrase = index.places[number], text[start:end]
        near = " ".join(index.places[near_number].text for near_number in (number, *index.beside(number)))
        if condition:
            has_another = _ANY_CONDITION.search(place.text) is not None  # maybe the same in other words
            is_new = not has_another and any(word not in index.standing for word in content_words(condition))
        else:
            pattern = rf"\b{re.escape(phrase.strip(' ,;'))}\b"
            is_new = bool(place.limits & _LIMITED) and not re.search(pattern, near, re.IGNORECASE)
        if is_new:
            weight, there = similarities[number], (place.passage, place.start, place.end)
            yield Counterpart(here + start, here + end, *there, weight)


def _phrases(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the characters of conditions and of what widens a sentence, and what the condition is; "" for the
    others."""
    for match in _BEGINNING.finditer(text):
        start, end = match.span()
        before = text[:start]
        is_first = not before.strip()
        if before.count("(") != before.count(")") or (not match["condition"] and _DENIED.search(before)):
            continue
        if match["alone"] is None:
            ending = _END.search(text, end)
            end = ending.start() if ending else end
            end = text.find(",", end) + 1 if is_first else end
        if end > start and not (is_first and match["alone"]):
            yield start, end, text[match.end() : end] if match["condition"] else ""


def without(sentence: str, start: int, end: int) -> str:
    """Return a sentence without some of its characters, and the signs and spaces that parted them."""
    before, after = sentence[:start].rstrip(), sentence[end:].lstrip()
    if not before:
        after = after.lstrip(" ,;:")
        return after[:1].upper() + after[1:]
    if re.match(r"[.!?,;:)]|\Z", after):
        before = before.rstrip(" ,;:(")
    return f"{before} {after}" if after and not re.match(r"[.!?,;:)]", after) else before + after
