"""Write a value as another one is written: the same words with another number."""

from __future__ import annotations

import re

from lrp4rag.claims.quantities import ONES, TEENS
from lrp4rag.claims.value import Value

SMALL_NUMBERS = [*ONES.split("|"), *TEENS.split("|"), "twenty"]
"""Words of 0 to 20."""
_ONES = "|".join(SMALL_NUMBERS[1:10])
DIGITS = re.compile(r"\d[\d,\u202f]*(?:\.\d+)?")
NUMBER_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(SMALL_NUMBERS)})\b(?![ -](?:{_ONES})\b)", re.IGNORECASE)


def as_written(value: Value, rival: Value) -> str | None:
    """Return `value`'s text with the number of `rival`, in digits or words as before; None if that fails."""
    number = DIGITS.search(rival.text) or NUMBER_WORD.search(rival.text)
    written = DIGITS.search(value.text) or NUMBER_WORD.search(value.text)
    if number is None or written is None or number[0].lower() == written[0].lower():
        return None
    return value.text[: written.start()] + cased(number[0], written[0]) + value.text[written.end() :]


def cased(text: str, like: str) -> str:
    """Return the text with a capital where `like` has one."""
    return text.capitalize() if like[:1].isupper() else text


def number_of(value: Value) -> float | None:
    """Return the first number written in a value, in digits or as a word, whatever its unit."""
    return next(iter(numbers_in(value.text)), None)


def numbers_in(text: str) -> list[float]:
    """Return the numbers written in a text: those in digits, then those in words."""
    digits = [float(re.sub(r"[,\u202f]", "", match[0])) for match in DIGITS.finditer(text)]
    words = [SMALL_NUMBERS.index(match[0].lower()) for match in NUMBER_WORD.finditer(text)]
    return [*digits, *map(float, words)]
