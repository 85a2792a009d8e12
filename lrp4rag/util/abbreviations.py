"""Abbreviations: whether a full stop ends a sentence, or a word alone."""

from __future__ import annotations

import re

_DATE_WORDS = """
january february march april may june july august september october november december januar februar märz
mai juni juli oktober dezember monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun
jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
"""
_DATES = frozenset(_DATE_WORDS.split())
_NEVER_ENDS_WORDS = """
mr mrs ms mx messrs mme mmes mlle dr drs prof profs rev fr hr hrn sra srta dra lt sgt cpl capt cmdr maj brig
adm supt insp gov sen rep pres hon amb atty approx incl excl inkl exkl zzgl bzw ggf vgl cf vs viz e.g i.e eg
z.b d.h u.a s.o ca c
"""
_NEVER_ENDS = frozenset(_NEVER_ENDS_WORDS.split())
_PARTS_OF_NAMES = frozenset(("st", "ste", "ft", "mt", "mts", "sr", "gen", "col"))
"""Before a name, or the end of a sentence: "St. Ives", "on Main St. It is"."""
_STREETS = frozenset(("ave", "rd", "blvd", "ln", "hwy"))
_MAY_END_WORDS = """
jr inc ltd co corp bros llc plc gmbh ag dept univ assn inst intl natl al etc usw pl sq bldg apt op ed eds
trans est
"""
_MAY_END = _PARTS_OF_NAMES | _STREETS | _DATES | frozenset(_MAY_END_WORDS.split())
"""The end of a sentence where a word follows that opens sentences."""
_BEFORE_NUMBERS_WORDS = """
max min avg est no nos nr num vol vols fig figs eq eqs p pp ch chap chs sec sect art arts par para abs tab
app appx ed v ver ref pt tel ext op cl ex ser ann kap bd hs seq st str tr resp temp
"""
_BEFORE_NUMBERS = (
    _NEVER_ENDS | frozenset(_BEFORE_NUMBERS_WORDS.split()) | {word for word in _DATES if len(word) < 6}
)
_WITHIN_WORDS = "misc orig prev gest geb hist lit mwst ust tax"
_WITHIN = _BEFORE_NUMBERS | _MAY_END | frozenset(_WITHIN_WORDS.split())
"""Words that end in a full stop before a small letter."""
_ORDINAL_BEFORE_WORDS = "der den dem des das im vom zum zur beim jeder jeden"
_ORDINAL_BEFORE = frozenset(_ORDINAL_BEFORE_WORDS.split())
"""Words of German before an ordinal number, "der 2. Stock", that no English sentence has there."""
_OPENERS_WORDS = """
he she it they we you i the a an this that these those there here in on at for from by with as if when while
after before but and or so however then also its his her their our your my what who which where why how no
not yes all some many most each every both another such please note see once since until although because
during under over between next finally first second third meanwhile moreover furthermore therefore thus
instead otherwise today now later nobody nothing only use do to er sie es wir ihr der die das ein eine
"""
_OPENERS = frozenset(_OPENERS_WORDS.split())
"""Words that open sentences, and names seldom."""
_ACRONYM = re.compile(r"[^\W\d_]{1,3}(?:\.[^\W\d_]{1,3})+")
_HALF_OF_DAY = frozenset(("a.m", "p.m"))
_UNIT = re.compile(r"[^\W\d_]{1,4}(?:/[^\W\d_]{1,4})?|[ap]\.m")
_ROMAN = re.compile(r"[IVX]{1,6}")


def goes_on(before: str, following: str) -> bool | None:
    """Say whether a sentence goes on behind a full stop, by the text before it and the word after it; None
    where the words do not tell."""
    words = before.split()
    if not words:
        return None
    word = words[-1].lstrip("([\"'\u2018\u201c\u201d*_")
    last = re.split(r"[-\u2013/]", word)[-1].lower()
    measured = len(words) > 1 and words[-2][-1:].isdigit()
    opener = _opener(following)
    first = following.lstrip("$\u20ac\u00a3\u00a5~\u00b1<>\u2264\u2265-+")[:1]
    if first.isdigit():
        return True if last in _BEFORE_NUMBERS or last.endswith((".-", ".\u2013")) else None
    if first.islower():
        return _within(word, last, opener, measured=measured)
    if not first.isupper():
        return None
    if word.isdecimal():
        dated = len(word) < 3 and opener.rstrip(".") in _DATES
        ordinal = len(word) < 3 and len(words) > 1 and words[-2].lower() in _ORDINAL_BEFORE
        return True if dated or ordinal else None
    return _before_capital(words, word, last, opener, measured=measured)


def opens_sentences(word: str) -> bool:
    """Say whether it is one that sentences begin with, and names seldom."""
    return _opener(word) in _OPENERS


def _opener(word: str) -> str:
    return re.sub(r"[,;:'\u2019].*", "", word).lower()


def _within(word: str, last: str, opener: str, *, measured: bool) -> bool | None:
    """The same before a small letter: those who write without capitals open sentences with one."""
    if word.isdecimal():
        return True if len(word) < 3 and opener not in _OPENERS - {"and", "or"} else None
    short = last.isalpha() and len(last) < 6 and (measured or not set(last) & set("aeiouy"))
    cased = last.isalpha() and any(sign.isupper() for sign in word[1:]) and not word.isupper()
    if last in _WITHIN and not (last == "no" and opener in _OPENERS):
        return True
    return True if short or cased or _ACRONYM.fullmatch(word) or _ROMAN.fullmatch(word) else None


def _before_capital(words: list[str], word: str, last: str, opener: str, *, measured: bool) -> bool | None:
    opens = opener in _OPENERS
    if measured and _UNIT.fullmatch(word):
        return last in _HALF_OF_DAY and opener.rstrip(".") in _DATES
    if last in _NEVER_ENDS or (last in _DATES and opener.rstrip(".") in _DATES):
        return True
    if last == "no" or last in _STREETS:
        return False
    if _ACRONYM.fullmatch(word):
        return False if opens or (words[-2:-1] and words[-2].endswith(",")) else None
    if last in _PARTS_OF_NAMES:
        return not opens
    return False if opens and last in _MAY_END else None
