"""Find sentences of a response that state nothing: greetings, offers, headings, questions, refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import NUMERIC, Value
from lrp4rag.claims.words import word_set
from lrp4rag.util.text import encodable

Stating = Literal["a claim", "an aside", "nothing"]

HEADING = 6
"""Words of a heading, at most."""
LONG = 300
"""Characters from which a sentence is not a courtesy, whatever its words."""

_MARKER = re.compile(
    r"\s*(?:[-*+>\u2022\u2013\u25cf\u25aa][^\S\n]+|\(?(?:\d{1,3}|[A-Za-z](?!\.\s+[A-Z]\.))[.)](?:\s+|\Z)|#{1,6}\s+)"
)
_MARKUP = " \t*_#>`|\"'\u201c\u201d"
_COURTESY = word_set(
    """
    hello hi hey dear greetings good morning afternoon evening great question sure certainly of course
    absolutely okay ok sorry i i'm we we're am are very so apologize apologise apologies my luck best kind
    regards sincerely welcome you you're there all everyone for the your any this that confusion
    inconvenience happy glad to help help! be would can with it sir or madam team and happily gladly
    unfortunately
    """
)
_POLITE = word_set(
    """
    hello hi hey dear greetings good great sorry apologize apologise apologies regards sincerely welcome
    inconvenience happy glad
    """
)
"""Words of courtesy without one of these are an answer: "You can."."""
_ASSENT = frozenset(("sure", "certainly", "okay", "ok"))
_VERBS = word_set("am are i'm we're you're be would can")
_YES_OR_NO = word_set("yes no yeah true false correct incorrect right wrong")
_SOURCES = r"(?:passage|context|document|source|information|text|article|excerpt)s?"
_LEAD_IN = re.compile(
    rf"(?:based|relying|drawing) (?:up)?on [^.:]{{0,80}}\b{_SOURCES}\b[^.:,]{{0,40}}[.:,]?"
    rf"|according to [^.:]{{0,60}}\b{_SOURCES}(?: \d{{1,3}})?[.:,]?"
    r"|thank(?:s| you)\b.*"
    r"|in (?:summary|short|conclusion|brief|addition)\W{0,3}"
    r"|(?:sources?|references?|citations?|note|answer|summary)\W{0,3}",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    "(?:i|we) (?:do not|don't|cannot|can't|am not|could not|couldn't) (?:know|sure|certain|say|tell"
    r"|answer)\b.*|i'm (?:not sure|not certain|unsure)\b.*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:let me know|feel free|(?:do not|don't) hesitate|(?:happy|glad|here|pleased) to (?:help|assist"
    "|answer)|(?:i|we) hope|hope (?:this|that|it) |if you would like to know|(?:any|further|more) questions"
    "|you (?:have|need|want|require) (?:any |some )?(?:further|more|other|additional|specific) (?:questions?"
    r"|concerns?|information|help|details?|assistance|clarification))\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:contact|consult|refer|see|check|ask|reach|visit|speak|talk|look|review)(?:ing)?\b"
    r".*\b(?:for|about) (?:more|further|additional|specific|details?)\b"
    r"|\bfor (?:more|further|additional) (?:details?|information|help|specifics)\b",
    re.IGNORECASE,
)


_LINE_END = re.compile("[\n\r\v\f\x85\u2028\u2029]")


def without_marker(text: str) -> int:
    """Return the length of the marker of a list's item or a heading."""
    marker = _MARKER.match(text)
    return marker.end() if marker else 0


def states_nothing(text: str, values: Sequence[Value]) -> bool:
    """Say whether a sentence states nothing that a passage could support; `values` are those in it."""
    plain = text.strip(_MARKUP).replace("\u2019", "'")
    if not any(sign.isalnum() for sign in plain) or plain.endswith("?") or text.startswith("```"):
        return True
    if any(value.kind in NUMERIC or value.unit == "code" for value in values) or len(plain) > LONG:
        return False
    if plain.endswith(":") or _is_courtesy(re.findall(r"[\w']+", plain.lower())):
        return True
    if _LEAD_IN.fullmatch(plain) or _REFUSAL.fullmatch(plain):
        return True
    if _OFFER.search(plain) or _ELSEWHERE.search(plain):
        return True
    cited = [value for value in values if value.kind == "reference"]
    return bool(cited) and not _says_more(text, cited)


def stating(text: str, *, followed: bool = False) -> Stating:
    """Classify a sentence of a response; `followed` says whether a line with a claim comes after it.

    "nothing": signs without a word, a greeting, a marked heading of a few words, the number of a source. "an
    aside": a question, an offer, a lead-in, which can hold a claim and seldom does. That the passages tell
    nothing is a claim too.
    """
    text = encodable(text)
    body = text[without_marker(text) :]
    plain = body.strip(_MARKUP).replace("\u2019", "'")
    words = re.findall(r"[\w']+", plain.lower())
    if not any(sign.isalnum() for sign in plain) or (text.startswith("```") and len(words) < 2):
        return "nothing"
    inside = find_values(body)
    if _is_courtesy(words) and not inside:
        return "nothing"
    cited = [value for value in inside if value.kind == "reference"]
    if cited and len(cited) == len(inside) and not _says_more(body, cited):
        return "nothing"
    if followed and words[0] not in _YES_OR_NO and len(words) <= HEADING:
        values = inside if body == text else find_values(text)
        if is_heading(text, values, followed=body == text):
            marked = is_heading(text, values, followed=False)
            return "nothing" if marked and all(value.kind == "name" for value in values) else "an aside"
    return "an aside" if states_nothing(body, inside) and not _REFUSAL.fullmatch(plain) else "a claim"


def _is_courtesy(words: Sequence[str]) -> bool:
    """Say whether the words are a greeting, a courtesy, or an assent without a sentence: "You certainly can."
    is an answer."""
    every = set(words)
    assented = not every.isdisjoint(_ASSENT) and every.isdisjoint(_VERBS)
    return every <= _COURTESY and (assented or not every.isdisjoint(_POLITE))


def stating_of(text: str, sentences: Sequence[tuple[int, int]]) -> list[Stating]:
    """Classify each sentence of a text, given as (start, end) characters."""
    following = [*(start for start, _ in sentences[1:]), len(text)][: len(sentences)]
    lines = [
        (text[start:end], ends_line(text[end:after]))
        for (start, end), after in zip(sentences, following, strict=True)
    ]
    pairs = zip(lines, followed_in(lines), strict=True)
    return [stating(line, followed=followed) for (line, _), followed in pairs]


def ends_line(gap: str) -> bool:
    """Say whether a line ends in the white space behind a sentence."""
    return _LINE_END.search(gap) is not None


def followed_in(lines: Sequence[tuple[str, bool]]) -> list[bool]:
    """Say for each sentence, given whether it ends its line, whether a line with a claim follows, so that it
    may be a heading."""
    flags, claimed = list[bool](), False
    for line, ends in reversed(lines):
        flags.append(ends and claimed)
        claimed = claimed or stating(line) == "a claim"
    return flags[::-1]


def is_heading(text: str, values: Sequence[Value], *, followed: bool) -> bool:
    """Say whether a line outside of a list only names the topic of the lines after it."""
    if any(value.kind in NUMERIC for value in values):
        return False
    plain = text.strip()
    marked = plain.startswith(("#", "**", "__")) and (
        plain[0] == "#" or plain.rstrip(":").endswith(("**", "__"))
    )
    if marked or not followed:
        return marked and not plain.strip(_MARKUP).endswith((".", "!"))
    return plain[-1:].isalnum() and len(plain.split(maxsplit=HEADING)) <= HEADING


def _says_more(text: str, cited: Sequence[Value]) -> bool:
    """Say whether a text has more than numbers of passages and a word for them."""
    borders = [0, *(border for value in cited for border in (value.start, value.end)), len(text)]
    rest = " ".join(text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True))
    return not {"source", "sources", "see", "and", "reference", "references", "from"}.issuperset(
        re.findall(r"[^\W\d_]+", rest.lower())
    )
