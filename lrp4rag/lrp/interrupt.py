"""`interruptible`: end a pass through a model before it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from lrp4rag.lrp.families import family_of
from lrp4rag.reader.lock import lock_of


@contextmanager
def interruptible(model: Any, check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before each decoder layer of each pass; what it raises ends the pass there; passes of
    other threads are not checked. It costs a call for a layer. Raises `InputError` for an architecture
    without an adapter."""
    thread, lock, undo = threading.get_ident(), lock_of(model), ExitStack()

    def hook(*_: object) -> None:
        if threading.get_ident() == thread:
            check()

    try:
        with lock:
            for block in family_of(model).blocks(model):
                undo.callback(block.layer.register_forward_pre_hook(hook).remove)
        yield
    finally:
        with lock:
            undo.close()
