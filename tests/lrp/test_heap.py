"""Freed memory is given back to the system."""

from __future__ import annotations

import psutil
import pytest
import torch

from lrp4rag.lrp import memory
from lrp4rag.lrp.memory import _malloc_trim, trim_heap, trim_now_and_then


@pytest.mark.skipif(_malloc_trim() is None, reason="this C library has no malloc_trim")
def test_what_lies_between_held_pieces_is_given_back() -> None:
    process = psutil.Process()
    pieces = [torch.ones(25_000) for _ in range(2_000)]  # 200 MB, each too small for a mapping of its own
    held = pieces[::50]
    del pieces
    before = process.memory_info().rss
    trim_heap()
    assert before - process.memory_info().rss > 100e6
    assert len(held) == 40


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrp4rag.lrp.memory._malloc_trim", lambda: None)
    trim_heap()


def test_it_is_given_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "trim_heap", lambda: trimmed.append(1))
    for _ in range(5 * memory.TRIM_EVERY):
        trim_now_and_then()
    assert len(trimmed) == 5
