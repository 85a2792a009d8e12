"""Let one thread at a time use a model or tokenizer, whose state all threads share.

A lock belongs to the model, whoever has it: readers and detectors are copied and pickled without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from lrp4rag.util.errors import LRP4RAGError

ATTENTION_HOOK = "_lrp4rag_attention"
"""The attribute that modules have in relevance mode."""

_LOCKS: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_MAKING = threading.Lock()


def lock_of(used: Any) -> threading.RLock:
    """Return the re-entrant lock of a model or a tokenizer."""
    with _MAKING:
        return _LOCKS.setdefault(used, threading.RLock())


class Lockable(Protocol):
    """An object that holds the lock of its model."""

    @property
    def lock(self) -> threading.RLock: ...


L = TypeVar("L", bound=Lockable)
P = ParamSpec("P")
R = TypeVar("R")


def locked(method: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """Decorate a method so that one thread runs it at a time."""

    @wraps(method)
    def call(self: L, /, *args: P.args, **options: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **options)

    return call


def require_plain(model: Any) -> None:
    """Raise `LRP4RAGError` where the model is in relevance mode, in which plain passes see another mask."""
    if any(ATTENTION_HOOK in module.__dict__ for module in model.modules()):
        raise LRP4RAGError(
            "this model is in relevance mode already: inside relevance_mode, by a detector that is open, or "
            "by a stream that has not ended, perhaps of another thread. Leave, close or end that first, or "
            "load the reader once more"
        )
