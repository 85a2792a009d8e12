"""Text that can be encoded."""

from __future__ import annotations

import re

_HALVES = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """Return the text with a replacement character for each half of one, which nothing can encode; as
    long."""
    return _HALVES.sub("\ufffd", text)
