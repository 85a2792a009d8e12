"""`plain`: a text as it reads, whatever disguises it. The same for passages and for answers."""

# ruff: noqa: RUF001 - the letters of many scripts look alike

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_LIKE = str.maketrans(
    "аеорсухѕіјһӏԁԛԝАВЕКМНОРСТХЅІЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧοօ",
    "aeopcyxsijhldqwABEKMHOPCTXSIJABEZHIKMNOPTYXoo",
)
_AMONG_LATIN = _LIKE | str.maketrans("αγεηικνρτυωкмтвнпгդհոսց", "ayenikvptuwkmtbnnrdhnug")
"""Letters that look Latin among Latin letters; alone, they are units and formulas."""
_ALIKE = re.compile(f"[{''.join(map(chr, _LIKE))}]")
_DISTINCT = re.compile(f"(?!{_ALIKE.pattern})[\u0370-\u03ff\u0400-\u052f\u0530-\u058f]")
"""The letters of the same scripts that look otherwise."""
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
LETTERS = re.compile(r"[^\W\d_]+")

_UNSEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
)
_BLANK = r"\s\x1c-\x1f\u115f\u1160\u2800\u3164\uffa0"
_NOISE = re.compile(rf"[{_UNSEEN}*`~\\]+")
"""What cannot be seen, and marks of Markdown, which may stand within a word."""
_BLANKS = re.compile(rf"(?! [^{_BLANK}_{_UNSEEN}])[{_BLANK}_][{_BLANK}_{_UNSEEN}]*")
_TAGS = re.compile("[\U000e0000-\U000e0fff]+")
"""Signs that cannot be seen either; many of them are a message in ASCII, which a model reads."""
_ASCII = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
MESSAGE = 8
_TURNED = re.compile(
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});"  # characters by name
    r"|(?<!<)</?[A-Za-z][^<>|]{0,500}>(?!>)"  # tags of HTML, not those of a chat template
    rf"|{_TAGS.pattern}"
    rf"|{_NOISE.pattern}"
    r"|(?<=\w)[-\u2010][^\S\n]*\n\s*(?=[a-z])"  # where the end of a line divides a word
    rf"|{_BLANKS.pattern}"
    r"|[A-Za-z][\u0300-\u036f]+"
    r"|[^\x00-\u024f\u0370-\u1cff\u1e00-\u1fff\u3041-\u312f\u3400-\u9fff\uac00-\ud7a3]"
)
_BREAKS = re.compile(
    r"</?(?:br|p|div|li|ul|ol|t[dhr]|table|h\d|hr)\b|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", re.I
)
_SAME = ("<wide>", "<narrow>", "<font>", "<noBreak>")
"""Other forms mean something, such as those of powers and fractions, unless they are of letters."""
_NAMED = re.compile(r"(?:.* )?(?:LATIN|INDICATOR) .*(?:LETTER|CAPITAL) ([A-Z])")
_ACCENTED = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER ([A-Z]) WITH .*")


@dataclass(frozen=True, slots=True)
class Plain:
    """A text made of pieces of another, and where in that one each begins."""

    text: str
    _starts: tuple[int, ...]
    _origins: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Iterable[tuple[str, int]]) -> Plain:
        """Join pieces, each with its place in the other text, in order."""
        texts, starts, origins, length = list[str](), list[int](), list[int](), 0
        for piece, origin in pieces:
            texts.append(piece)
            starts.append(length)
            origins.append(origin)
            length += len(piece)
        return cls("".join(texts), tuple(starts), tuple(origins))

    def place(self, index: int) -> int:
        """Return where a character of the text stands in the other."""
        piece = max(bisect_right(self._starts, index) - 1, 0)
        return self._origins[piece] + index - self._starts[piece]


def plain(text: str) -> Plain:
    """Return the text as it reads: one white space for many, no invisible characters, no tags of HTML and no
    Markdown within words, characters for their names and other forms, and Latin letters for letters that look
    so."""
    read = Plain.of(_pieces(text))
    return Plain(_as_latin(read.text), read._starts, read._origins)


def squeezed(text: str) -> Plain:
    """Return only the letters, small and without accents, and what ends sentences: words read the same,
    however they are spaced and set."""
    matches = re.finditer(r"[^\W\d_]+|[.!?](?=\s|$)", text)
    return Plain.of((_small(match[0]), match.start()) for match in matches)


def is_latin(text: str) -> bool:
    """Say whether a text has Latin letters, and none of scripts with letters like them that look
    otherwise."""
    return bool(_LATIN.search(text)) and not _DISTINCT.search(text)


def is_mixed(letters: str, *, latin: bool) -> bool:
    """Say whether some letters only look Latin, among Latin letters or in a text that is `latin` else."""
    return bool(_ALIKE.search(letters)) and (latin or bool(_LATIN.search(letters)))


def _pieces(text: str) -> Iterable[tuple[str, int]]:
    end, last = 0, ""
    for match in _TURNED.finditer(text):
        if match.start() > end:
            last = text[match.start() - 1]
            yield text[end : match.start()], end
        end = match.end()
        piece = _turned(match[0], last, text[end : end + 1])
        if piece and not (piece.isspace() and last == piece):
            last = piece[-1]
            yield piece, match.start()
    yield text[end:], end


def _turned(piece: str, before: str, after: str) -> str:  # noqa: PLR0911
    """Return what is read for a piece of `_TURNED` between two characters."""
    first = piece[0]
    if first == "&":
        character = html.unescape(piece)
        return piece if character == piece else "".join(text for text, _ in _pieces(character))
    if first == "<":
        return "\n" if _BREAKS.match(piece) else ""
    if _TAGS.fullmatch(piece):
        return re.sub(r"[^ -~]", "", piece.translate(_ASCII)) if len(piece) >= MESSAGE else ""
    if _NOISE.fullmatch(piece):
        return "" if before.isalnum() and after.isalnum() else re.sub(f"[{_UNSEEN}]", "", piece)
    if _BLANKS.fullmatch(piece):
        return "\n" if _BREAKS.search(piece) else " "
    if len(piece) == 1:
        return _form(piece)
    composed = unicodedata.normalize("NFC", piece)  # a letter under marks, or a divided word
    return "" if first in "-\u2010" else composed if len(composed) == 1 else first


@lru_cache(4096)
def _form(character: str) -> str:
    """Return the usual form of a character."""
    usual = unicodedata.normalize("NFKC", character)
    if unicodedata.decomposition(character).startswith(_SAME) or (usual.isascii() and usual.isalpha()):
        return usual
    named = _NAMED.fullmatch(unicodedata.name(character, ""))
    return character if named is None else named[1]


def _as_latin(text: str) -> str:
    """Replace letters that only look Latin by Latin letters; the text stays as long."""
    if text.isascii():
        return text
    latin = is_latin(text)

    def turned(match: re.Match[str]) -> str:
        letters = match[0]
        if letters.isascii():
            return letters
        if _LATIN.search(letters):
            return letters.translate(_AMONG_LATIN)
        return letters.translate(_LIKE) if latin else letters

    return LETTERS.sub(turned, text)


def _small(letters: str) -> str:
    """Return the letters in lower case and without accents, as many as there are."""
    return letters.lower() if letters.isascii() else "".join(map(_base, letters))


@lru_cache(4096)
def _base(character: str) -> str:
    """Return a letter in lower case, without its accent."""
    accented = _ACCENTED.fullmatch(unicodedata.name(character, ""))
    base = unicodedata.normalize("NFKD", character)[0] if accented is None else accented[1]
    return base.lower()[0]
