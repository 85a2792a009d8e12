"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

EVERY = 16
"""Calls of which one gives memory back, which takes 20 to 40 ms."""
_CALLS = count(1)


def trim_now_and_then() -> None:
    """Give back memory at every sixteenth call of this process."""
    if next(_CALLS) % EVERY == 0:
        trim_heap()


def trim_heap() -> None:
    """Give back what glibc keeps of freed memory, which lies in pieces between what is still held: each pass
    is over another number of tokens, and leaves others. Nothing is done with another C library."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], Any] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
