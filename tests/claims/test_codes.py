"""Telephone numbers and versions."""

from __future__ import annotations

import pytest

from lrp4rag.claims.codes import find_codes
from lrp4rag.claims.find import find_values


@pytest.mark.parametrize(
    ("text", "written", "key"),
    [
        ("call +44 20 7946 0958 now", "+44 20 7946 0958", "442079460958"),
        ("call (020) 7946 0958 now", "(020) 7946 0958", "02079460958"),
        ("call 555-867-5309 now", "555-867-5309", "5558675309"),
        ("needs version 3.11", "3.11", "3.11"),
        ("needs 3.11.2 or later", "3.11.2", "3.11.2"),
        ("since v2", "v2", "2"),
    ],
)
def test_codes_are_neither_quantities_nor_dates(text: str, written: str, key: str) -> None:
    (found,) = [one for one in find_values(text) if one.kind != "polarity"]
    assert (found.kind, found.unit, found.text, found.key) == ("name", "code", written, (key,))


@pytest.mark.parametrize("text", ["on 3.9.2021", "on 2021-03-05", "3.11 metres", "10-15", "1,200"])
def test_dates_and_quantities_are_no_codes(text: str) -> None:
    assert list(find_codes(text)) == []
