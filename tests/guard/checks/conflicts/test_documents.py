"""Which of two documents is the newer one."""

from __future__ import annotations

import pytest

from lrp4rag.guard.checks.conflicts import newer
from lrp4rag.source import Source


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        (Source("", title="A", version="2.9"), Source("", title="A", version="2.10"), 1),
        (Source("", title="A", version="2.0"), Source("", title="A", version="2"), None),
        (Source("", title="A", version="1"), Source("", title="B", version="2"), None),
        (Source("", effective="2024-05-01T00:00+02:00"), Source("", effective="2024-05-01"), 1),
        (Source("", effective="soon"), Source("", effective="2024-05-01"), None),
        (Source(""), Source(""), None),
    ],
)
def test_the_newer_document_is_that_of_the_later_date_or_higher_version(
    one: Source, other: Source, later: int | None
) -> None:
    assert newer(one, other) == later
