"""Units in all their spellings."""

from __future__ import annotations

from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.units import MONEY, PERCENT, POUNDS, UNITS

_SIGNS_BEFORE = ("$", "us$", "a$", "c$", "\u00a3", "\u00a5")


def test_every_unit_stands_after_digits() -> None:
    for written in sorted({*UNITS, *MONEY, *PERCENT, *POUNDS}.difference(_SIGNS_BEFORE)):
        (found,) = find_quantities(f"4 {written} of it")
        assert found.text == f"4 {written}"
        assert found.unit, written
