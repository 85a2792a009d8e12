"""Phrases that say opposite things in other words: "free of charge" and "have to be paid for".

`claims.poles` has more of them, also single words; detectors learned their weights, so that a change there
needs training. These are few enough to make a counter-claim of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place
from lrp4rag.claims.words import content_words

LEAST = 0.4
"""The share of a clause's other words in a clause of the passages, and around it, at least."""
SAME = 0.7
"""Nothing is opposed where a clause of the passages with the claim's own pole has this much of that share."""
FEWEST = 2
"""Words of a clause beside its pole, at least."""

_POLES: dict[str, tuple[str, str]] = {
    "charge": (
        r"free(?: of charge)?|for free|gratis|complimentary|(?:at no|without(?: any)?)(?: extra| additional)?"
        r" (?:charge|cost|fee|payment)s?|costs? nothing|no (?:extra )?(?:charge|cost|fee)s?|not charged"
        r"|without paying|for nothing",
        r"(?:at|for) (?:a|an extra|extra|additional) (?:charge|fee|cost|price)|ha(?:s|ve) to be paid(?: for)?"
        r"|must be paid(?: for)?|(?:is|are) charged(?: extra| separately| for)?|not free|costs? extra|payable"
        r"|subject to a (?:charge|fee)|comes? at a cost|for a fee|not complimentary",
    ),
    "inclusion": (
        r"(?:is|are|be|already|also|even) included|includes?|comes? with|in the box"
        r"|part of the (?:price|package)|covers?|(?:is|are|be) covered|as standard|supplied|at no extra cost",
        r"sold separately|not included|excluded|excludes?|bought separately|not (?:cover|include|covered)"
        r"|must be bought|comes? on top|charged at cost|not part of|comes? without",
    ),
    "duty": (
        r"required|compulsory|mandatory|obligatory|essential|must(?! not|n['\u2019]t)|ha(?:s|ve) to",
        r"optional|voluntary|not (?:required|necessary|needed|essential|obligatory|compulsory|mandatory)"
        r"|need not|needn['\u2019]t|no need|unnecessary|not have to|superfluous",
    ),
    "automatism": (
        r"automatic(?:ally)?|by (?:itself|themselves)|on (?:its|their) own",
        r"manually|by hand|on request|(?:never|not)(?= (?:\w+ )?(?:by (?:itself|themselves)|automatic))",
    ),
    "trend": (
        r"rose|risen|rising|grew|grown|increased|raised|climbed|jumped|gained|went up|up by|expanded"
        r"|doubled|lifted|up \d+(?:\.\d+)? ?%",
        r"fell|fallen|falling|shrank|shrunk|decreased|reduced|lowered|dropped|declined|cut(?: back)?|slumped"
        r"|went down|down by|halved|slipped|down \d+(?:\.\d+)? ?%",
    ),
    "change": (
        r"guaranteed|unchang(?:ed|ing)|constant|never changes?|not (?:change|vary)|stays? the same"
        r"|remains? the same",
        r"variable|(?:may|can) (?:be )?changed?|var(?:y|ies)|adjust(?:ed|able)|not (?:fixed|guaranteed)"
        r"|subject to change",
    ),
    "pay": (r"paid leave|(?:on |at )?full pay|with pay|(?<!un)paid", r"unpaid|without pay|no pay|not paid"),
    "permission": (
        r"allowed|permitted|welcome|accepted",
        r"forbidden|prohibited|banned|barred|not (?:allowed|permitted|accepted|welcome)|ruled out|off limits",
    ),
    "consent": (
        r"(?:with|needs?|requires?)(?: (?!neither|no)\w+){0,2}"
        r" (?:consent|permission|approval|agreement|authori[sz]ation)",
        r"without(?: \w+){0,3} (?:consent|permission|approval|agreement|authori[sz]ation)"
        r"|no(?: \w+)? (?:consent|permission|approval) (?:is )?(?:needed|required)",
    ),
    "assent": (
        r"refus(?:e|es|ed|al)|reject(?:s|ed)?|turn(?:s|ed) down|den(?:y|ies|ied)|opposed|declined to",
        r"insist(?:s|ed)?|accept(?:s|ed)?|agree[sd]?(?: to)?|demand(?:s|ed)?|approved|granted|welcomed",
    ),
    "number": (
        r"singly|one by one|one at a time|individually|alone|on (?:its|their|his|her) own",
        r"in (?:groups|clusters|pairs|batches|bunches)|together|jointly|never (?:singly|one by one|alone)"
        r"|not (?:singly|alone|individually|one by one)",
    ),
    "meals": (
        r"eat(?: and drink)? (?:as usual|normally)|with food|after (?:a )?meals?",
        r"(?:on an )?empty stomach|fasting|nothing to eat|not eat|before (?:a )?meals?|without food",
    ),
    "exception": (
        r"except(?: for)?|excluding|with the exception of",
        r"no exceptions?|without exception|including",
    ),
    "state": (r"open|opens", r"closed|shut|closes"),
    "place": (r"indoors", r"outdoors|in the open"),
    "safety": (
        r"safe|harmless|not (?:dangerous|poisonous|toxic|harmful)",
        r"unsafe|harmful|dangerous|poisonous|toxic|not safe",
    ),
    "refund": (
        r"refund(?:ed|able)|reimbursed|money back|repaid",
        r"non-refundable|not (?:be )?(?:refunded|refundable|reimbursed|repaid)|no refunds?|forfeit(?:ed)?",
    ),
    "water": (
        r"water(?:proof|[- ]resistant|tight)|protected against water",
        r"not (?:be )?water(?:proof|[- ]resistant|tight)|keep dry|not get wet",
    ),
}  # fmt: skip
_PATTERNS = {
    name: tuple(re.compile(rf"(?<![\w'\u2019-])(?:{pole})(?![\w'\u2019-])", re.IGNORECASE) for pole in both)
    for name, both in _POLES.items()
}
_DENIED = re.compile(
    r"(?:\b(?:not|never|nor|without|neither|hardly|no longer)|n['\u2019]t)(?:\s+\w+){0,2}\s*\Z"
    r"|\b(?:no|nothing|nobody)(?:\s+\w+){0,4}\s*\Z",
    re.IGNORECASE,
)
_BEFORE = 40
OBJECT = 3
"""Words behind "including" that tell what it is that is included."""


def opposites(index: Index, sentence: Place) -> Iterator[Counterpart]:
    """Yield phrases of a sentence of a response, and the opposite phrases of passages in their place."""
    for clause in sentence.parts:
        for name in _PATTERNS:
            pole = _pole(name, sentence.text[clause.start : clause.end])
            if pole is None:
                continue
            sign, (start, end) = pole
            start, end = clause.start + start, clause.start + end
            words = content_words(f"{sentence.text[clause.start : start]} {sentence.text[end : clause.end]}")
            counter = _nearest(index, name, sign, words) if len(words) >= FEWEST else None
            if counter is not None:
                weight, place, (first, last) = counter
                if not _have_same_object(sentence.text[start : clause.end], place.text[first:]):
                    continue
                here, there = sentence.start, place.start
                yield Counterpart(
                    here + start, here + end, place.passage, there + first, there + last, weight
                )


def _have_same_object(here: str, there: str) -> bool:
    """Say whether two texts, one of which may begin with "including", name the same thing behind that."""
    if not here.lower().startswith("including") and not there.lower().startswith("including"):
        return True
    objects = (content_words(" ".join(text.split()[1 : OBJECT + 1])) for text in (here, there))
    return not frozenset.isdisjoint(*objects)


def _nearest(
    index: Index, name: str, sign: int, words: frozenset[str]
) -> tuple[float, Place, tuple[int, int]] | None:
    """Return the share of the words, by rarity, that the best clause of the passages with a pole and its
    surroundings have, its sentence, and the characters of its pole; None where that pole is not opposite."""
    weights = index.weights(words)
    best, same = (0.0, 0, 0, (0, 0)), 0.0
    for number, similarity in index.closest(words):
        place = index.places[number]
        for clause in place.parts:
            text = place.text[clause.start : clause.end]
            pole = _pole(name, text)
            if pole is None:
                continue
            inside = content_words(text)
            share = sum(weight for word, weight in weights.items() if word in inside) / sum(weights.values())
            score = 0.5 * share + 0.5 * similarity
            if pole[0] == sign:
                same = max(same, score)
            if score > best[0]:
                first, last = pole[1]
                best = score, pole[0], number, (clause.start + first, clause.start + last)
    score, opposite, number, span = best
    if score < LEAST or opposite != -sign or same >= SAME * score:
        return None
    if _pole(name, index.places[number].text) is None:
        return None  # the sentence says both
    return score, index.places[number], span


def _pole(name: str, text: str) -> tuple[int, tuple[int, int]] | None:
    """Return the pole (1 or -1) that a text names, and its characters; None where it names none or both."""
    first, second = _PATTERNS[name]
    spans = [(match.span(), -1) for match in second.finditer(text)]
    for match in first.finditer(text):
        start, end = match.span()
        if not any(start < stop and begin < end for (begin, stop), _ in spans):
            spans.append(((start, end), 1))
    signs = {-sign if _is_denied(text, span) else sign for span, sign in spans}
    return (signs.pop(), spans[0][0]) if len(signs) == 1 else None


def _is_denied(text: str, span: tuple[int, int]) -> bool:
    """Say whether a phrase without a denial in it has one before it."""
    start, end = span
    if text[start:end].lower().startswith("without"):
        return (
            re.search(r"\b(?:not|never|cannot|no)\b|n['\u2019]t\b", text[:start], re.IGNORECASE) is not None
        )
    if re.match(r"(?:not|no|never|need not)\b|un|non", text[start:end], re.IGNORECASE):
        return False
    if re.match(r"\s+neither\b", text[end:], re.IGNORECASE):
        return True
    return _DENIED.search(text[max(start - _BEFORE, 0) : start]) is not None
