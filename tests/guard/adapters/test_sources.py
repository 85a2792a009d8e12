"""Documents of other libraries as passages."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from lrp4rag.guard.adapters.sources import library, source_of
from lrp4rag.source import Source


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, Source("T")),
        ({"title": "Policy", "version": 3.1}, Source("T", title="Policy", version="3.1")),
        ({"effective": date(2024, 1, 1)}, Source("T", effective="2024-01-01")),
        ({"expires": datetime(2024, 1, 1, tzinfo=UTC)}, Source("T", expires="2024-01-01T00:00:00+00:00")),
        ({"source": "hr/policy.pdf", "page": 3}, Source("T", id="hr/policy.pdf")),
        ({"id": "HR-1", "source": "hr/policy.pdf"}, Source("T", id="HR-1")),
        ({"title": ["a"], "version": True, "topic": {"a": 1}, "id": ""}, Source("T")),
        ({"relevance_score": np.float32(0.5)}, Source("T", score=0.5)),
        ({"score": "high"}, Source("T")),
        ({"score": np.nan, "relevance_score": 0.5}, Source("T", score=0.5)),
        ({"score": float("-inf")}, Source("T")),
        ({"score": 10**400}, Source("T")),
    ],
)
def test_what_metadata_say(metadata, expected: Source) -> None:
    assert source_of("T", metadata) == expected


def test_a_score_that_is_given_goes_before_that_of_metadata() -> None:
    assert source_of("T", {"score": 0.1}, score=0.9).score == 0.9
    assert source_of("T", {"score": 0.1}, score=0).score == 0


def test_a_library_that_is_missing_is_named_with_what_installs_it() -> None:
    with (
        pytest.raises(ImportError, match=r"needs no_such: pip install 'lrp4rag\[some\]'"),
        library("no_such", "some"),
    ):
        import no_such.part  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="No module named 'other'"), library("no_such", "some"):
        import other  # noqa: F401
