"""Make text of users safe to show: without control characters, shortened between words, numbers and signs."""

# ruff: noqa: RUF001 - apostrophes of print look like those of typewriters

from __future__ import annotations

import re
import unicodedata

import regex

# Explicit marks, embeddings, overrides and isolates: they reorder the text around them.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(_BIDI, "\ufffd"),
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    ord("\t"): " ",
    ord("\r"): " ",
}
del _VISIBLE[ord("\n")]
WORD: re.Pattern[str] = regex.compile(
    r"[\w\p{N}]+"
)  # with its accents and vowel signs, which `re` leaves out
_LONGEST_WORD = 100  # Unicode's normal form takes a time that is quadratic in a run of accents
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_INSIDE: re.Pattern[str] = regex.compile(
    r"""
    (?<=[^\W_]|\p{N}) (?=[^\W_]|\p{N})
    | (?<=\d) (?=[.,'’\u00a0\u202f]\d) | (?<=\d[.,'’\u00a0\u202f]) (?=\d)
    | (?<=(?<!\d)\d{1,3}(?:[ ]\d{3}){0,4}) (?=[ ]\d{3}(?!\d))
    | (?<=(?<!\d)\d{1,3}(?:[ ]\d{3}){0,4}[ ]) (?=\d{3}(?!\d))
    | (?<=[^\W\d_]) (?=['’](?!s\b)[^\W\d_]) | (?<=[^\W\d_]['’]) (?!s\b) (?=[^\W\d_])
    """,
    regex.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER_AT_END = re.compile(r"(?:\A|\s)\S*\d\s*\Z")
# Of a URL: what stands before "@" in its host's part, and the query.
_SECRETS = re.compile(r"(?<=://)[^/?#]*@|\?.*", re.DOTALL)
# What starts a formula; also as wide as a Chinese character, which some spreadsheets read alike.
_COMPUTED = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def visible(text: str) -> str:
    """Replace each control character by one that only shows it (ESC by "␛").

    One for one, so that character offsets still hold. Line breaks stay.
    """
    return text.translate(_VISIBLE)


def one_line(text: str, limit: int | None = None) -> str:
    """Put `visible` text on one line, shortened to `limit` characters between words, and never between a
    number and what it counts."""
    if limit is not None:
        text = text[: 20 * limit]  # white space collapses, but a line is not made of megabytes
    line = " ".join(visible(text).split())
    if limit is None or len(line) <= limit:
        return line
    shown = line[: _border_before(line, limit - 1)]
    counted = _NUMBER_AT_END.search(shown)
    if counted and counted.start() >= limit // 2:
        shown = shown[: counted.start()]
    return shown.rstrip() + "…"


def words_of(text: str) -> list[str]:
    """Return the words in lower case and in Unicode's composed form."""
    return [normal(word.lower()) for word in WORD.findall(text)]


def normal(word: str) -> str:
    """Return a word in Unicode's composed form."""
    return word if word.isascii() or len(word) > _LONGEST_WORD else unicodedata.normalize("NFC", word)


def inside_sign(text: str, at: int, since: int = 0) -> bool:
    """Say whether a position is within a sign, whose characters are on both sides of it; the text starts at
    `since`."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after) in ("Mn", "Mc", "Me", "Cf") or before == "\u200d":
        return True
    if before in _FLAGS and after in _FLAGS:
        flags = text[since:at]
        return (len(flags) - len(flags.rstrip(_FLAGS))) % 2 == 1
    return (
        "\U0001f3fb" <= after <= "\U0001f3ff"  # the colour of a skin
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or "\u1160" <= after <= "\u11ff"  # within a Korean syllable
        or after in "\u0e33\u0eb3"
        or before in "\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4"  # Thai and Lao vowels
    )


def inside_word(text: str, at: int) -> bool:
    """Say whether a position is inside a word, a number or a sign."""
    return 0 < at < len(text) and (inside_sign(text, at) or _INSIDE.match(text, at) is not None)


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend the span `start` to `end` to the borders of words, numbers and signs."""
    while inside_word(text, start):
        start -= 1
    while inside_word(text, end):
        end += 1
    return start, end


def _border_before(text: str, at: int) -> int:
    """Return the last border between words up to a position; between signs, where none is near."""
    border = at
    while border > at // 2 and inside_word(text, border):
        border -= 1
    if border > at // 2:
        return border
    while at > 1 and inside_sign(text, at):
        at -= 1
    return at


def safe_cell(value: object) -> object:
    """Return text for a cell of a CSV file: on one line, and after an apostrophe where a spreadsheet would
    take it for a formula. Numbers stay."""
    if not isinstance(value, str):
        return value
    line = visible(value).replace("\n", " ")
    return f"'{line}" if line.lstrip().startswith(_COMPUTED) else line


def without_secrets(path: object) -> str:
    """Remove the user's name, the password and the signature from a URL; a path stays."""
    return _SECRETS.sub("", str(path)) if "://" in str(path) else str(path)


def clipped(text: str, limit: int) -> str:
    """Remove the middle of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = _border_before(text, limit // 2)
    behind = len(text) - limit // 2
    while behind < len(text) and inside_sign(text, behind):
        behind += 1
    return f"{text[:head].rstrip()} … ({behind - head:,} characters) … {text[behind:]}"


def exact(text: str) -> str:
    """Return a plain str: subclasses can have methods of their own, such as markup that nothing escapes."""
    return str.__str__(text)


def encodable(text: str) -> str:
    """Replace each lone surrogate, which nothing can encode, by a replacement character; as long."""
    return _SURROGATE.sub("\ufffd", text)


def surrogate_in(text: str) -> int | None:
    """Return the position of a lone surrogate, which no file and no tokenizer can hold; None without one."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """Replace what the patterns match by spaces; line breaks stay."""
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text
