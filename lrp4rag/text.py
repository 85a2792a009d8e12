"""Text of users, safe to show: no control characters, and no longer than a person reads."""

from __future__ import annotations

import re

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
# Of a URL: what stands before "@" in its host's part, and the query.
_SECRETS = re.compile(r"(?<=://)[^/?#]*@|\?.*", re.DOTALL)
# What starts a formula; also as wide as a Chinese character, which some spreadsheets read alike.
_COMPUTED = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def visible(text: str) -> str:
    """The text with each control character replaced by one that only shows it (ESC by "␛").

    One for one, so that character offsets still hold. Line breaks stay.
    """
    return text.translate(_VISIBLE)


def one_line(text: str, limit: int | None = None) -> str:
    """`visible` text on one line, cut off with an ellipsis after `limit` characters."""
    if limit is not None:
        text = text[: 20 * limit]  # white space collapses, but a line is not made of megabytes
    line = " ".join(visible(text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def safe_cell(value: object) -> object:
    """Text for a cell of a CSV file or its heading: on one line, and after an apostrophe where a spreadsheet
    would take it for a formula. Numbers are no formulas and stay as they are."""
    if not isinstance(value, str):
        return value
    line = visible(value).replace("\n", " ")
    return f"'{line}" if line.lstrip().startswith(_COMPUTED) else line


def without_secrets(place: object) -> str:
    """A path or URL without the user's name, password and signature that a URL may hold."""
    return _SECRETS.sub("", str(place)) if "://" in str(place) else str(place)


def clipped(text: str, limit: int) -> str:
    """The text, its middle left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]} … ({len(text) - 2 * kept:,} characters) … {text[len(text) - kept :]}"


def exact(text: str) -> str:
    """The same characters as a plain str: subclasses can have methods of their own, such as markup that
    nothing escapes."""
    return str.__str__(text)


def surrogate_in(text: str) -> int | None:
    """Where a lone surrogate is, half a character, which no file and no tokenizer can hold; None for none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """The text, as long, with spaces for all that a pattern finds but ends of lines."""
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text
