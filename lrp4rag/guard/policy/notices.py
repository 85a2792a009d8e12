"""Put notices in the place of withheld text, so that the Markdown around it stays whole."""

from __future__ import annotations

import re

from lrp4rag.util.sentences import Piece

_STRUCTURE = re.compile(r"[\s`~|:*_=>+#-]*")
"""Lines of a table's head, fences and rules: they say nothing."""
_ITEM = re.compile(r"[\s>]*(?:[-*+•‣◦▪]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})")


def says_nothing(piece: Piece) -> bool:
    """Say whether a piece is white space, or marks of Markdown only."""
    return _STRUCTURE.fullmatch(piece.text) is not None


def in_place(piece: Piece, notice: str) -> str:
    """Return the notice (none where it is empty) with what of the piece is Markdown: the fence that it opens,
    the row or the item that it is, and the white space after it."""
    text = piece.text
    fence = _FENCE.match(text) if piece.kind == "code" else None
    opened = f"{fence[0]}\n" if fence else ""
    if not notice:
        return opened
    gap = text[len(text.rstrip()) :] or " "
    if piece.kind == "table row":
        return f"| {notice} {'|' * max(1, text.count('|') - 1)}{gap}"
    item = _ITEM.match(text)
    return f"{opened or (item[0] if item else '')}{notice}{gap}"


def marked(piece: Piece, mark: str) -> str:
    """Return the piece with a mark at its end: in the last cell of a row, and none behind a fence."""
    body = piece.text.rstrip()
    gap = piece.text[len(body) :]
    if piece.kind == "code" and _FENCE.match(body):
        return piece.text
    if piece.kind == "table row" and len(body) > 1 and body.endswith("|"):
        return f"{body[:-1].rstrip()}{mark} |{gap}"
    return f"{body}{mark}{gap}"
