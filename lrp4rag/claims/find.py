"""All values of a text."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from lrp4rag.claims.codes import find_codes
from lrp4rag.claims.dates import find_dates, find_periods, find_times
from lrp4rag.claims.names import find_names
from lrp4rag.claims.numerals import find_labels
from lrp4rag.claims.polarity import find_absence, find_polarity, find_references
from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.surroundings import NOTHING, Surroundings
from lrp4rag.claims.value import Value, without_overlaps


def find_values(text: str, context: Surroundings = NOTHING) -> list[Value]:
    """Find the values of a text in its order, none within another. `context`, such as the passages, shows
    which words are common (see `find_names`) and what "pounds" are (see `find_quantities`).

    Of two that overlap, the first of these kinds stays: absence, reference, code, date, time, numbered label,
    quantity with a unit, name, plain count, period, polarity.
    """
    if (plain := text.translate(_INVISIBLE)) != text:
        positions = [position for position, sign in enumerate(text) if ord(sign) not in _INVISIBLE]
        return [_placed(value, text, positions) for value in find_values(plain, context)]
    quantities = list(find_quantities(text, context))
    candidates = chain(
        find_absence(text),
        find_references(text),
        find_codes(text),
        find_dates(text),
        find_times(text),
        find_labels(text),
        (value for value in quantities if value.unit not in ("", "ordinal")),
        find_names(text, context),
        quantities,
        find_periods(text),
        find_polarity(text),
    )
    return sorted(without_overlaps(candidates), key=lambda value: value.start)


_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
"""Soft hyphens and white space without width: "3\\u200b0 days" reads "30 days"."""


def _placed(value: Value, text: str, positions: list[int]) -> Value:
    """Return the value with its characters in `text`; `places` maps those of the searched text to it."""
    start, end = positions[value.start], positions[value.end - 1] + 1
    return replace(value, start=start, end=end, text=text[start:end])
