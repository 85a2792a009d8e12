"""Digits that count nothing: telephone and version numbers. They are names, compared with each other only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.value import Value

_DATE = r"\d\d?\.\d\d?\.\d{4}\b"
_CODE = re.compile(
    r"(?<![\w.])(?:"
    r"\+\d[\d ()/.-]{6,18}\d"  # +44 20 7946 0958
    r"|\(0?\d{2,5}\)[ /-]?\d{3}[\d -]{2,12}\d"  # (020) 7946 0958
    r"|(?:1-)?\d{3}[-.]\d{3}[-.]\d{4}"  # 555-867-5309
    r"|0\d{2,4}[ /-]\d[\d -]{3,12}\d"  # 030 901820
    rf"|[vV]\d+(?:\.\d+)*|(?<=[vV]ersion )\d+(?:\.\d+)*|(?!{_DATE})\d+(?:\.\d+){{2,}}"  # 3.11.2
    r")(?!\w)"
)


def find_codes(text: str) -> Iterator[Value]:
    """Find numbers of telephones and versions; the key is their digits."""
    for match in _CODE.finditer(text):
        yield Value("name", *match.span(), match[0], unit="code", key=(re.sub(r"[^\d.]", "", match[0]),))
