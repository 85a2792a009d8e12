"""`Disguise`: characters of an answer that make it look like what it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.guard.checks.plain import LETTERS, is_latin, is_mixed
from lrp4rag.util.text import one_line

Trick = Literal["invisible", "reordered", "mixed", "wide"]

_WORD = re.compile(r"\S+")
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Scripts that need such marks."""
_INVISIBLE = re.compile(
    "[\u200b\u2060-\u2064\u180e\ufeff\U000e0000-\U000e007f]|(?<=[!-~])[\u200c\u200d](?=[!-~])"
)
"""Characters that no script needs; joiners between signs of ASCII only, since many scripts need them."""
_WIDE = re.compile("[\uff01-\uff5e]")
_WRITTEN_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uff66-\uff9f]")
_WORDS: dict[Trick, str] = {
    "invisible": "has characters that cannot be seen",
    "reordered": "has marks that show it in another order",
    "mixed": "has letters that look like others",
    "wide": "has full-width signs among others",
}
QUOTED = 60


@dataclass(frozen=True, slots=True)
class Disguise:
    """One finding of kind "disguised" for each word that has invisible characters, marks that reorder text,
    letters that look like Latin letters, or full-width signs in a text that has no script of their width. A
    word that a passage or the question has too is not reported."""

    name: ClassVar[str] = "disguise"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings in the order of the response. Raises `OverBudget`."""
        text = inputs.response or ""
        if text.startswith("\ufeff"):
            text = f" {text[1:]}"  # a file begins with it, and nobody is deceived
        if text.isascii():
            return []
        sources = "\n".join([inputs.question, *(source.read for source in inputs.sources)])
        findings = []
        for start, end, trick in _tricks(text, inputs.tick):
            word = text[start:end]
            if word not in sources:
                shown = one_line(_INVISIBLE.sub("\u00b7", word), QUOTED)
                words = f'"{shown}" {_WORDS[trick]}: it may read otherwise than it looks.'
                findings.append(
                    Finding(self.name, "disguised", words, start=start, end=end, details={"trick": trick})
                )
        return findings


def _tricks(text: str, tick: Callable[[], None]) -> Iterator[tuple[int, int, Trick]]:
    narrow = not _WRITTEN_WIDE.search(text)
    latin = is_latin(text)
    for match in _WORD.finditer(text):
        tick()
        word = match[0]
        if word.isascii():
            continue
        if not _REORDERING.isdisjoint(word) and not _RIGHT_TO_LEFT.search(word):
            yield *match.span(), "reordered"
        elif _INVISIBLE.search(word):
            yield *match.span(), "invisible"
        elif narrow and _WIDE.search(word):
            yield *match.span(), "wide"
        elif any(is_mixed(letters[0], latin=latin) for letters in LETTERS.finditer(word)):
            yield *match.span(), "mixed"
