"""`Citation`: a citation of a response, and the parts of passages that it cites."""

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
    """Characters `start` to `end` (exclusive) of the text that the reader model gets of passage `passage` (an
    index)."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """Characters `start` to `end` of the response, which cite `parts` of passages; `missing` names, in words,
    what no passage has of it.

    A mark (`[1]`, `(Section 4)`) stands after its claim. An `inline` citation is part of the sentence:
    "passage 2 says that".
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
