"""Edits that make a faithful response wrong with respect to its passages, by kind."""

from __future__ import annotations

from lrp4rag.training.pairs.edit import Maker
from lrp4rag.training.pairs.meaning import conditions, negations
from lrp4rag.training.pairs.other_values import dates_and_units, names, numbers
from lrp4rag.training.pairs.statements import inventions, misattributions, refusals

HARMFUL: dict[str, Maker] = {
    "number": numbers,
    "name": names,
    "date or unit": dates_and_units,
    "negation": negations,
    "condition": conditions,
    "refusal": refusals,
    "misattributed": misattributions,
    "invention": inventions,
}
"""Kinds of faults, with what makes them."""
