"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def trim_heap() -> None:
    """Give back what glibc keeps of freed memory, which lies in pieces between what is still held: each pass
    is over another number of tokens, and leaves others. Nothing is done with another C library."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], Any] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
