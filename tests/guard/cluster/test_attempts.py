"""Blocks that are begun again and again are counted, and those that end are forgotten."""

from __future__ import annotations

from lrp4rag.guard.cluster.attempts import Attempts


def test_what_ends_is_forgotten() -> None:
    attempts = Attempts()
    assert [attempts.begin(1), attempts.begin(2), attempts.begin(1)] == [1, 1, 2]
    attempts.end(1)
    attempts.end(3)
    assert attempts.begin(1) == 1
