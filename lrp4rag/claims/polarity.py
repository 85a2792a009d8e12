"""Words whose opposite makes another statement: negation, permission, order in time, amount, exception."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lrp4rag.claims.value import Value

_BE_DO_HAVE = ("do", "does", "did", "has", "have", "had", "is", "are", "was", "were")
_MODALS = ("can", "could", "may", "might", "must", "need", "should", "will", "would", "shall")
_PAIRS = (
    ("before", "after"), ("until", "after"), ("earlier", "later"), ("first", "last"), ("more", "less"),
    ("most", "least"), ("above", "below"), ("over", "under"), ("at least", "at most"),
    ("up to", "at least"), ("no more than", "no less than"), ("no later than", "no earlier than"),
    ("more than", "less than"),
    ("maximum", "minimum"), ("higher", "lower"), ("longer", "shorter"), ("larger", "smaller"),
    ("high", "low"), ("increase", "decrease"), ("increased", "decreased"), ("increases", "decreases"),
    ("rose", "fell"), ("rises", "falls"), ("grew", "shrank"), ("with", "without"), ("always", "never"),
    ("all", "none"), ("everyone", "nobody"), ("only", "also"), ("including", "except"),
    ("include", "exclude"), ("included", "excluded"), ("includes", "excludes"), ("allowed", "forbidden"),
    ("permitted", "prohibited"), ("required", "optional"), ("necessary", "unnecessary"),
    ("mandatory", "voluntary"), ("mandatory", "optional"), ("required", "voluntary"),
    ("open", "closed"), ("opens", "closes"), ("safe", "unsafe"),
    ("possible", "impossible"), ("able", "unable"), ("free", "chargeable"), ("start", "end"),
    ("starts", "ends"), ("begins", "ends"), ("accepted", "rejected"), ("approved", "refused"),
    ("inside", "outside"), ("indoors", "outdoors"), ("hot", "cold"), ("warm", "cool"), ("left", "right"),
    ("upper", "lower"), ("near", "far"), ("best", "worst"), ("better", "worse"), ("same", "different"),
    ("true", "false"), ("legal", "illegal"), ("active", "inactive"), ("enabled", "disabled"), ("on", "off"),
    ("like", "unlike"), ("if", "unless"), ("both", "neither"), ("some", "no"), ("closest", "farthest"),
    ("available", "unavailable"), ("refundable", "non-refundable"), ("valid", "invalid"),
    ("solved", "unsolved"), ("usual", "unusual"), ("paid", "unpaid"), ("guilty", "innocent"),
    ("in favour of", "against"), ("in favor of", "against"), ("free of charge", "charged"),
    ("opening", "closing"),
    ("north", "south"), ("east", "west"), ("northern", "southern"), ("eastern", "western"),
    ("won", "lost"), ("wins", "loses"), ("profit", "loss"), ("import", "export"), ("imports", "exports"),
    ("imported", "exported"), ("faster", "slower"), ("elder", "younger"),
    ("earliest", "latest"), ("grown", "shrunk"), ("highest", "lowest"), ("largest", "smallest"),
    ("longest", "shortest"), ("fastest", "slowest"), ("to the left", "to the right"),
    ("succeeded", "failed"), ("passed", "failed"), ("male", "female"), ("started", "ended"),
    ("strengthens", "weakens"), ("improved", "worsened"),
)  # fmt: skip

OPPOSITES: dict[str, tuple[str, ...]] = {}
"""The words that make another statement in the place of a word, all in small letters."""
for _word, _opposite in (
    *((word, f"{word} not") for word in (*_BE_DO_HAVE, *_MODALS) if word not in ("can", "need")),
    ("can", "cannot"),
    ("need to", "need not"),
    ("must", "may"),
    *_PAIRS,
):
    OPPOSITES[_word] = (*OPPOSITES.get(_word, ()), _opposite)
    OPPOSITES[_opposite] = (*OPPOSITES.get(_opposite, ()), _word)

_SAME = {
    **dict.fromkeys(("can", "might"), "may"),
    **dict.fromkeys(("no more than", "not more than", "up to", "maximum"), "at most"),
    **dict.fromkeys(("no less than", "not less than", "no fewer than", "minimum"), "at least"),
    **dict.fromkeys(_BE_DO_HAVE, "not"),
    **{"outdoors": "outside", "indoors": "inside"},
    **dict.fromkeys(("permitted", "authorised", "authorized"), "allowed"),
    **dict.fromkeys(("prohibited", "banned", "barred", "disallowed", "not permitted"), "forbidden"),
    **dict.fromkeys(("mandatory", "compulsory", "obligatory", "necessary"), "required"),
    **dict.fromkeys(("voluntary", "unnecessary"), "optional"),
    **dict.fromkeys(("include", "includes", "including"), "included"),
    **dict.fromkeys(("exclude", "excludes", "excluding", "except"), "excluded"),
    **{"shut": "closed", "declined": "rejected", "refused": "rejected", "accepts": "accepted"},
    **{"in favor of": "in favour of", "risky": "unsafe", "dangerous": "unsafe"},
    **{"charged": "chargeable", "free of charge": "free", "nonrefundable": "non-refundable"},
    **{"approved": "accepted", "increases": "increase", "increased": "increase", "rose": "increase"},
    **{"rises": "increase", "grew": "increase", "grown": "increase", "decreases": "decrease"},
    **{"decreased": "decrease", "fell": "decrease", "falls": "decrease", "shrank": "decrease"},
    **{"shrunk": "decrease"},
}
"""Words that say the same, with the one that stands for them."""
_NO_VALUES = {"like", "on", "first", "left", "right"} | {
    word for word, same in _SAME.items() if same == "not"
}
"""Too frequent for a list of values by themselves; with a "not" they are one."""

_PLAIN = {
    "can't": "can",
    "cannot": "can",
    "won't": "will",
    "need not": "need to",
    "needn't": "need to",
    "not": "",
}
_TERMS = "|".join(sorted({*OPPOSITES, *_SAME}, key=len, reverse=True))
_NOT = r"(?: not|n['\u2019]t)"
_NEGATED = (
    rf"(?:{'|'.join((*_BE_DO_HAVE, *_MODALS))}){_NOT}\b|cannot|won['\u2019]t|can['\u2019]t"
    r"|not(?! (?:more|less) than\b)"
)
_STATE_WORDS = """
allowed permitted authorised required necessary mandatory compulsory obligatory optional open closed safe
unsafe possible impossible available unavailable refundable valid invalid included excluded accepted
approved legal illegal free enabled disabled active guilty solved paid
"""
_STATES = _STATE_WORDS.split()
"""Words for a state: with a "not" they mean their opposites."""
_DENIED_STATE = (
    rf"(?:(?:{_NEGATED}|never|no longer)(?: be| been)?(?: \w{{2,12}}ly)?|(?<= )not)"
    rf" (?P<state>{'|'.join(_STATES)})"
)
_POLARITY = re.compile(rf"\b(?:{_DENIED_STATE}|(?P<negated>{_NEGATED})|{_TERMS})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\.? ?#?\d")
"""Behind the "no" of "No. 5"."""

_DENIAL = re.compile(
    rf"(?P<verb>(?:(?:{'|'.join((*_BE_DO_HAVE, *_MODALS))}) ?)?)"
    r"(?:not|never|no longer|n['\u2019]t|cannot) (?=.*\w)",
    re.IGNORECASE,
)

_PLAIN_VERB = re.compile(rf"\b(?:{'|'.join(_BE_DO_HAVE)})\b(?!{_NOT}\b)", re.IGNORECASE)

_NUMBERS = r"\d{1,3}(?:(?:, ?|,? (?:and|or|&|to) |[-\u2013])\d{1,3})*"
_REFERENCE = re.compile(rf"\b[Pp]assages? #?(?P<numbers>{_NUMBERS})(?![\d.]\d|\d)|\[(?P<cited>{_NUMBERS})\]")
_CLEARLY = "(?:explicitly |directly |specifically )?"
_CANNOT = r"(?:cannot|can['\u2019]t|could not|couldn['\u2019]t)"
_THE_PASSAGES = r"the (?:given |provided )?(?:passage|text|document|source|context)s?"
_ABSENCE = re.compile(
    # What any subject makes a statement about the passages.
    rf"\b(?:(?:do|does|did){_NOT} {_CLEARLY}(?:mention|specify|state)|"
    rf"(?:is|are|was|were) not {_CLEARLY}(?:mentioned|stated|specified)|"
    rf"(?:is|are) not (?:provided|given|covered|addressed|answered) (?:in|by) {_THE_PASSAGES}|"
    r"(?:no|insufficient|not enough) (?:\w{1,20} )?(?:information|mention|details?|indication|passage)|"
    rf"(?:none|nothing) (?:of|in) {_THE_PASSAGES}|"
    r"(?:unable|impossible|not possible) to (?:answer|determine|say|tell|find|provide)|"
    rf"{_CANNOT} (?:be )?(?:answer|determin)\w*|(?:I|we) {_CANNOT} find)\b"
    # What only the passages can fail to do.
    r"|\b(?:passage|text|document|source|article|excerpt|context|information)s?(?: \d{1,3})? "
    rf"(?:[\w,]{{1,20}} ){{0,3}}?(?P<said>(?:do|does|did){_NOT} {_CLEARLY}"
    r"(?:say|provide|contain|tell|include|give|cover|address|answer|discuss|offer|explain))\b",
    re.IGNORECASE,
)


def find_polarity(text: str) -> Iterator[Value]:
    """Find terms of `OPPOSITES` and negations.

    The key is the word that stands for it and its likes, without a "not", and whether it has one; the unit is
    the word that stands for its family, in which its opposites are.
    """
    for match in _POLARITY.finditer(text):
        if match["state"]:
            state = match["state"].casefold()
            opposite = OPPOSITES[_SAME.get(state, state) if state not in OPPOSITES else state][0]
            key = _SAME.get(opposite, opposite)
            yield Value("polarity", *match.span(), match[0], unit=_FAMILIES.get(key, key), key=(key, 0))
            continue
        negated = bool(match["negated"])
        plain = _without_not(match[0]) if negated else match[0].casefold()
        numbers = plain == "no" and _NUMBERED.match(text, match.end())
        if negated or not (plain in _NO_VALUES or numbers):
            key = _SAME.get(plain, plain) or "not"
            if negated and key == "must":  # what must not be may not be
                key = "may"
            yield Value(
                "polarity", *match.span(), match[0], unit=_FAMILIES.get(key, key), key=(key, int(negated))
            )


def find_plain(text: str) -> Iterator[Value]:
    """Find plain "is", "has" and similar verbs, which are too frequent for values: "is not" contradicts
    them."""
    for match in _PLAIN_VERB.finditer(text):
        yield Value("polarity", *match.span(), match[0], unit=_FAMILIES.get("not", "not"), key=("not", 0))


def opposites(value: Value) -> tuple[str, ...]:
    """Return the texts that turn the statement into its opposite in the place of a polarity value."""
    if (denied := _DENIAL.match(value.text)) is not None:  # "is never open", "are not allowed"
        texts: tuple[str, ...] = (f"{denied['verb'].strip()} {value.text[denied.end() :]}".strip(),)
    elif value.key[1]:
        texts = (_without_not(value.text),)
    else:
        texts = OPPOSITES.get(value.text.casefold(), ())
    return tuple(opposite.capitalize() if value.text[:1].isupper() else opposite for opposite in texts)


def opposed(first: Value, second: Value) -> bool:
    """Say whether two polarity values are opposites: "can" and "cannot", "before" and "after"."""
    if first.kind != "polarity" or second.kind != "polarity":
        return False
    if first.key[0] == second.key[0]:
        return first.key[1] != second.key[1]
    if second.text.casefold() in {text.casefold() for text in opposites(first)}:
        return True
    return not (first.key[1] or second.key[1]) and frozenset((first.key[0], second.key[0])) in _OPPOSED


def opposed_words(first: Iterable[Value], second: Iterable[Value]) -> list[tuple[Value, Value]]:
    """Return the pairs of opposed words of two texts, of which neither text has both."""
    mine, theirs = ([value for value in values if value.kind == "polarity"] for values in (first, second))
    my_keys, their_keys = ({value.key for value in values} for values in (mine, theirs))
    pairs = ((p, q) for p in mine for q in theirs if p.key not in their_keys and q.key not in my_keys)
    return [(p, q) for p, q in pairs if opposed(p, q)]


def stated_without(denial: Value, text: str) -> tuple[int, int] | None:
    """Return the characters where a text says without a "not" what a value says with one."""
    for word in filter(None, opposites(denial)):
        if match := re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE):
            return match.span()
    return None


def find_references(text: str) -> Iterator[Value]:
    """Find references to passages, counted from 1; the key has each number once, in order."""
    for match in _REFERENCE.finditer(text):
        numbers: set[int] = set()
        for first, last in re.findall(
            r"(\d+)(?:(?:-|\u2013| to )(\d+))?", match["numbers"] or match["cited"]
        ):
            numbers.update(range(int(first), int(last or first) + 1))
        if numbers:
            yield Value("reference", *match.span(), match[0], key=tuple(sorted(numbers)))


def find_absence(text: str) -> Iterator[Value]:
    """Find statements that the passages lack an answer."""
    for match in _ABSENCE.finditer(text):
        group = "said" if match["said"] else 0
        yield Value("absence", *match.span(group), match[group])


def _without_not(written: str) -> str:
    word = written.casefold().replace("\u2019", "'")
    return _PLAIN[word] if word in _PLAIN else re.sub(r"(?: not|n't)\Z", "", word)


def _families() -> dict[str, str]:
    """Map each word to the representative of its family, the words linked to it by opposites."""
    families: dict[str, str] = {}
    for first, second in (*_PAIRS, ("may", "must"), ("need to", "must")):
        pair = {families.get(word, word) for word in (_SAME.get(first, first), _SAME.get(second, second))}
        head = min(pair)
        families |= dict.fromkeys(pair, head)
        families |= {word: head for word, family in families.items() if family in pair}
    return families


_FAMILIES = _families()
_OPPOSED = frozenset(
    frozenset((_SAME.get(word, word), _SAME.get(opposite, opposite)))
    for word, words in OPPOSITES.items()
    for opposite in words
    if not {word, opposite} & {*_MODALS, "need to"} and " not" not in word + opposite
)
"""Pairs of opposites, each by the word that stands for it and its likes."""
