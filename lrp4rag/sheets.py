"""Text of users in files that spreadsheets open: they compute none of it."""

from __future__ import annotations

from lrp4rag.text import visible

# Also as wide as a Chinese character, which some spreadsheets read alike.
_COMPUTED = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def safe_cell(value: str) -> str:
    """The text for a cell or a heading: on one line, and after an apostrophe where a spreadsheet would take
    it for a formula. For text only; numbers are no formulas."""
    line = visible(value).replace("\n", " ")
    return f"'{line}" if line.lstrip().startswith(_COMPUTED) else line
