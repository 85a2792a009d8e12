"""`Citation`: where a response cites something, and where in the passages that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Format = Literal[
    "number",
    "passage",
    "footnote",
    "superscript",
    "link",
    "title",
    "id",
    "section",
    "article",
    "standard",
    "study",
    "authority",
    "dated",
    "numbered",
    "address",
    "quotation",
]


class Part(NamedTuple):
    """Characters `start` to `end` (exclusive) of what the reader reads of passage `passage` (an index)."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """Characters `start` to `end` of the response. It cites `parts` of passages; what of it stands in none is
    `missing`, in words.

    A mark (`[1]`, `(Section 4)`) stands behind what it is cited for. One that is `inline` is part of the
    sentence: "passage 2 says that".
    """

    start: int
    end: int
    format: Format
    parts: tuple[Part, ...] = ()
    missing: str = ""
    inline: bool = False

    @property
    def passages(self) -> tuple[int, ...]:
        return tuple(sorted({part.passage for part in self.parts}))
