"""Edits that leave a faithful response faithful: synonyms, the same value in other words, another order.

Without them a model would learn that any surprise is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from lrp4rag.training.pairs.edit import SUPPORTED, Draft, Edit, Maker
from lrp4rag.training.pairs.wording import reworded

_SYNONYMS = r"""
approximately = about | roughly | around
begins = starts
buy = purchase
big = large
usually = normally | generally
often = frequently
frequently = often
typically = usually | normally
commonly = frequently
(?<=\b(?:is|as) )also = additionally
(?<=\b(?:are|can) )also = additionally
numerous = many | a great many
several(?= (?!of\b)[a-z]) = a number of
people(?!['\u2019]) = persons | individuals
individuals(?!['\u2019]) = people
receive = get
receives = gets
received = got
obtain = get
is made of = is composed of
are made of = are composed of
made up of = composed of
because(?! of) = since
in order to = to | so as to
so that = in order that
such as(?= [a-z]) = like
for example = for instance
for instance = for example
quickly = rapidly
rapidly = quickly
easily = without difficulty
easy(?= to\b) = simple
difficult = hard
located = situated
situated = located
known as = called | referred to as
is called(?= [a-z]) = is known as
refers to = denotes
various(?= [a-z]+s\b) = different
ensure that = make sure that
make sure that = ensure that
provides(?! for) = offers | supplies
allows(?= (?:you|users|people|the|them)\b) = permits
shows that = indicates that
show that = indicate that
additionally, = moreover, | besides, | furthermore,
furthermore, = moreover, | additionally,
therefore = thus | hence
overall, = all in all,
finally, = lastly,
lastly, = finally,
then, = next,
according to(?= (?:the )?(?:given |provided )?passages?\b) = as stated in
(?<!are )(?<!is )based on(?= the (?:given |provided )?passages,) = going by | judging by
entire = whole
children = kids
doctor = physician
company = firm
companies = firms
amount of(?= (?:water|money|food|sugar|salt|oil|energy|heat)\b) = quantity of
types of = kinds of | sorts of
kinds of = types of | sorts of
main = chief | principal
primary = main | principal
although = though | even though
occur = happen
occurs = happens
occurred = happened
caused by = due to
due to = because of | owing to
because of = due to | owing to
as well as = along with
require(?= [a-z]) = need
requires = needs
additional = further | extra
beneficial = helpful
(?<!\bthe )(?<!\bno )(?<!\ba )(?<!\bany )need to = have to
do not(?= [a-z]) = don't
does not(?= [a-z]) = doesn't
is not(?= [a-z]) = isn't
are not(?= [a-z]) = aren't
should not(?= [a-z]) = shouldn't
cannot = can't
don['\u2019]t = do not
doesn['\u2019]t = does not
isn['\u2019]t = is not
aren['\u2019]t = are not
can['\u2019]t = cannot
it is(?= [a-z]) = it's
it['\u2019]s(?= (?!been|got|had)[a-z]) = it is
"""
SYNONYMS = [
    (
        re.compile(rf"\b(?:{pattern.strip()})(?!\w)", re.IGNORECASE),
        tuple(text.strip() for text in alternatives.split("|")),
    )
    for pattern, _, alternatives in (line.partition(" = ") for line in _SYNONYMS.strip().splitlines())
]
"""Patterns of words, and what says the same in their place."""
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d|(?<!\w)'[^'\n]*'(?!\w)|https?://\S+|\b\w+(?:\.\w+)+\b"
)
_FIRST = re.compile(
    r"(?P<word>If|When|Because|Since|Although|Before|After) (?!so\b|not\b|none\b)"
    r"(?P<clause>[^,.;:\n]{8,100}), (?P<rest>[^,.;:\n]{8,150})\."
)
_LAST = re.compile(
    r"(?P<rest>[A-Z][^,.;:\n]{8,150}?) (?P<word>if|when|because|although|before|after) "
    r"(?P<clause>[^,.;:\n]{8,100})\."
)
_CLOSE = re.compile(
    r"\b(?:see|check|know|determine|ask|asked|decide|tell|out|sure|even|as|is|was|are|what|say|and|or|than|only|"
    r"just|right|soon|shortly|immediately|long|not|days?|weeks?|months?|years?|hours?|minutes?|seconds?|times?|that|"
    r"which|who|of|to|like|remember|especially|particularly|mainly)\Z"
)
_ASKS = re.compile(r"(?:Ask|Check|See|Tell|Find out|Decide|Determine|Know|Remember|Learn)\b")
_JOINED = re.compile(
    r"\b(?:that|which|who|whether|and|or|so|but|then|if|when|because|although|while|before|after)\b"
)
_STATEMENT = re.compile(r"(?:The|A|An|Some|Most|Many|Other|Common|On average|In general|Generally)\b")
_POINTS_BACK = re.compile(
    r"\b(?:this|these|those|such|it|its|they|their|he|she|his|her|then|next|first|second|finally|also|another|other|"
    r"former|latter|however|both|same|too|additionally|therefore|after|before|once)\b",
    re.IGNORECASE,
)


def synonyms(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put another word for the same, where it is no part of a name or a quotation."""
    fixed = [(value.start, value.end) for value in draft.values if value.kind == "name"]
    fixed += [match.span() for match in _QUOTED.finditer(draft.response)]
    for pattern, alternatives in SYNONYMS:
        for match in pattern.finditer(draft.response):
            if not any(start < match.end() and match.start() < end for start, end in fixed):
                text = _cased(random.choice(alternatives), match[0])
                if edit := draft.edit("synonym", *match.span(), text):
                    yield edit


def values(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put a value in other words."""
    for value in draft.values:
        texts = reworded(value, draft.response[: value.start], draft.response[value.end :])
        if value.kind == "name" and (short := _short_name(draft, value.key, value.text)):
            texts.append(short)
        if not texts or draft.supported(value) < SUPPORTED:
            continue
        if edit := draft.edit("reworded value", value.start, value.end, random.choice(texts)):
            yield edit


def clauses(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put a clause before or after the other: "If X, Y." and "Y if X."."""
    for start, end in draft.sentences:
        text = draft.response[start:end]
        if (match := _FIRST.fullmatch(text)) and not _JOINED.search(match["rest"]):
            moved = f"{_upper(match['rest'])} {match['word'].lower()} {match['clause']}."
        elif (match := _LAST.fullmatch(text)) and _movable(match["rest"], match["clause"]):
            moved = f"{match['word'].capitalize()} {match['clause']}, {_lower(match['rest'], draft, start)}."
        else:
            continue
        yield Edit("clauses", start, end, moved)


def order(draft: Draft, random: Random) -> Iterator[Edit]:
    """Exchange two neighbouring statements, where neither points to the other. Steps stay in order."""
    for (start, end), (later, last) in pairwise(draft.sentences):
        texts = draft.response[start:end], draft.response[later:last]
        free = all(_STATEMENT.match(text) and text.endswith(".") for text in texts)
        if free and draft.response[end:later] == " " and not any(map(_POINTS_BACK.search, texts)):
            yield Edit("order", start, last, " ".join(reversed(texts)))


HARMLESS: dict[str, Maker] = {
    "synonym": synonyms,
    "reworded value": values,
    "clauses": clauses,
    "order": order,
}
"""Kinds of harmless changes, with what makes them."""


def _movable(rest: str, clause: str) -> bool:
    return not (_ASKS.match(rest) or _CLOSE.search(rest) or _JOINED.search(rest) or _JOINED.search(clause))


def _short_name(draft: Draft, key: tuple[str | int | None, ...], text: str) -> str | None:
    """Return the last word of a name, where the passages use it alone."""
    alone = (key[-1],) if len(key) == 2 and " " in text else None
    places = draft.index.places if alone else []
    used = text[-1].islower() and any(
        value.kind == "name" and value.key == alone for place in places for value in place.values
    )
    return text.rsplit(" ", 1)[-1] if used else None


def _cased(text: str, like: str) -> str:
    return _upper(text) if like[:1].isupper() else text


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str, draft: Draft, place: int) -> str:
    """Put a sentence's beginning in small letters, unless it is a name."""
    name = any(value.kind == "name" and value.start <= place < value.end for value in draft.values)
    first = text.split(" ", 1)[0]
    if name or first in ("I", "I'm") or (first.isupper() and len(first) > 1):
        return text
    return text[:1].lower() + text[1:]
