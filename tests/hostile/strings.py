"""What users' data may hold, by accident or on purpose."""

from __future__ import annotations

import unicodedata

CONTROLS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x00nul",
    "bell\x07",
    "back\x08\x08\x08\x08",
    "over\rwritten",
    "del\x7f",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "\u2028line",
    "\x0b\x0c",
]
MARKUP = ["[bold]b[/bold]", "[/INST]", "[/]", "[link=http://x]y[/link]", ":smile:", "\\[x]", "[[[", "]"]
TEXTS = [*CONTROLS, *MARKUP]


def obeyed(text: str) -> str:
    """The characters of an output that a terminal would obey, or that reorder the text around them."""
    bidi = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    return "".join(
        char
        for char in text
        if char != "\n" and (unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in bidi)
    )
