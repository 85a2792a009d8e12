"""`interruptible`: end a pass through a model before it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from lrp4rag.lrp.families import family_of


@contextmanager
def interruptible(model: Any, check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before each decoder layer of each pass; what it raises ends the pass there. It costs a
    call for a layer. Raises `InputError` for an architecture without an adapter."""
    with ExitStack() as undo:
        for block in family_of(model).blocks(model):
            undo.callback(block.layer.register_forward_pre_hook(lambda *_: check()).remove)
        yield
