"""All values of a text."""

from __future__ import annotations

from itertools import chain

from lrp4rag.values.codes import find_codes
from lrp4rag.values.dates import find_dates, find_periods, find_times
from lrp4rag.values.names import find_names
from lrp4rag.values.polarity import find_absence, find_polarity, find_references
from lrp4rag.values.quantities import find_quantities
from lrp4rag.values.value import Value, without_overlaps


def find_values(text: str, context: str = "") -> list[Value]:
    """Values in the order of the text, none within another. `context`, such as the passages, tells which
    words are common (see `find_names`) and what "pounds" are (see `find_quantities`).

    Where two overlap, the first of these kinds stays: absence, reference, code, date, time, name, quantity,
    period, polarity.
    """
    found = chain(
        find_absence(text),
        find_references(text),
        find_codes(text),
        find_dates(text),
        find_times(text),
        find_names(text, context),
        find_quantities(text, context),
        find_periods(text),
        find_polarity(text),
    )
    return sorted(without_overlaps(found), key=lambda one: one.start)
