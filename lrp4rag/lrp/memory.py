"""How much is computed at once: sizes, what they cost in memory, and smaller ones when it runs out."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, Literal, TypeVar

import psutil
import torch

from lrp4rag.lrp.rules import QUERY_BLOCK
from lrp4rag.reader.placement import devices_of, visiting_bytes
from lrp4rag.util.errors import LRP4RAGError
from lrp4rag.util.types import require_whole

Result = TypeVar("Result")
TRIM_EVERY = 16
"""Calls of `trim_now_and_then` of which one gives memory back, which takes 20 to 40 ms."""
_CALLS = count(1)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is computed at once. `positions` None: the whole prompt; `queries` None: QUERY_BLOCK.

    `tape` is what a replay keeps for `pull`: the rules of every layer, or only the layers' inputs, from which
    these are computed again (a forward pass for each chunk of cotangents, a sixth of the memory or less).
    """

    queries: int | None = None
    tangents: int = 8
    cotangents: int = 8
    positions: int | None = None
    tape: Literal["rules", "inputs"] = "rules"

    def halved(self) -> Sizes | None:
        """Return the next smaller sizes, or None where they are the smallest."""
        smaller = Sizes(
            queries=_half(self.block, 8),
            tangents=_half(self.tangents, 1),
            cotangents=_half(self.cotangents, 1),
            positions=_half(self.positions or 8192, 128),
            tape="inputs",
        )
        return None if smaller == self else smaller

    def steps(self) -> list[Sizes]:
        """Return sizes with one thing smaller."""
        less = self.halved() or self
        fields = ("queries", "tangents", "cotangents", "positions", "tape")
        changed = [replace(self, **{name: getattr(less, name)}) for name in fields]
        return [sizes for sizes in changed if sizes != self]

    @property
    def block(self) -> int:
        return self.queries or QUERY_BLOCK


def _half(value: int, least: int) -> int:
    return value if value <= least else max(least, value // 2)


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model decides the memory of a pass, in numbers of values a position (or in bytes)."""

    layers: int
    hidden: int
    heads: int
    head: int
    kv: int
    mlp: int
    bytes: int

    @classmethod
    def of(cls, model: Any) -> Shape:
        config = model.config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        kv = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        mlp = config.intermediate_size
        if top := getattr(config, "num_experts_per_tok", None):
            mlp = top * (getattr(config, "moe_intermediate_size", None) or mlp)
        size = model.get_input_embeddings().weight.element_size()
        layers, hidden, heads = config.num_hidden_layers, config.hidden_size, config.num_attention_heads
        return cls(layers, hidden, heads, head, kv, mlp, size)

    @property
    def attention(self) -> int:
        """Queries, keys and values of one position."""
        return (self.heads + 2 * self.kv) * self.head


# What the passes' small arrays and the allocator take beside the rest, measured.
_OVERHEAD = 50_000_000


def push_bytes(shape: Shape, length: int, tangents: int, sizes: Sizes, *, cached: bool = False) -> int:
    """Estimate peak memory of a push of `tangents` over `length` positions beside the model, to a tenth."""
    rows = 1 + min(tangents, sizes.tangents)
    positions = min(sizes.positions or length, length)
    # The widest layer and its products, attention's stacked keys and values, and one block of scores.
    layer = rows * positions * (2 * shape.mlp + 2 * shape.hidden + shape.attention)
    stacked = rows * length * 4 * shape.kv * shape.head
    cache = rows * length * 2 * shape.kv * shape.head * shape.layers if cached or positions < length else 0
    scores = 4 * shape.heads * min(sizes.block, positions) * length
    final = rows * length * shape.hidden
    return _OVERHEAD + shape.bytes * (layer + stacked + cache + final) + 4 * scores


def tape_bytes(shape: Shape, length: int, sizes: Sizes) -> int:
    """Estimate what a replay keeps for `pull`."""
    rules = 2 * shape.hidden + shape.attention + shape.heads * shape.head + 3 * shape.mlp
    if sizes.tape == "inputs":  # and the rules of one layer, computed again
        return shape.bytes * length * (shape.layers * shape.hidden + rules)
    return shape.bytes * length * shape.layers * rules


def pull_bytes(shape: Shape, length: int, cotangents: int, sizes: Sizes) -> int:
    """Estimate what a pull of `cotangents` over `length` positions allocates at its peak, its tape
    included."""
    rows = min(cotangents, sizes.cotangents)
    layer = rows * length * (3 * shape.mlp // 2 + 3 * shape.hidden + shape.attention)
    scores = (2 + rows) * shape.heads * min(sizes.block, length) * length
    return _OVERHEAD + shape.bytes * layer + 4 * scores + tape_bytes(shape, length, sizes)


def plan(needs: Callable[[Sizes], int], limit: int, sizes: Sizes | None = None) -> Sizes:
    """Choose sizes whose need is at most `limit` bytes: what saves most is made smaller first.

    Raises `LRP4RAGError` with what the smallest ones need, where that is more.
    """
    current = sizes or Sizes()
    while (need := needs(current)) > limit:
        step = min(current.steps(), key=needs, default=current)
        # A shorter pass may need a cache at first, and so save only together with others.
        smaller = step if needs(step) < need else current.halved()
        if smaller is None:
            raise LRP4RAGError(
                f"this needs about {gigabytes(need)} beside the model at the smallest sizes, and "
                f"{gigabytes(max(limit, 0))} may be used; raise max_memory by "
                f"{gigabytes(need - limit)} or shorten the prompt"
            )
        current = smaller
    return current


class Budget:
    """How large the passes of one model may be: the given sizes, or so that the process fits `max_memory`.

    Of a model on several GPUs, `max_memory` is each one's, and the fullest of them decides.
    """

    def __init__(self, model: Any, sizes: Sizes | None = None, max_memory: int | None = None) -> None:
        if max_memory is not None:
            require_whole(max_memory, "max_memory", 1)
        self.shape, self.sizes, self._max_memory = Shape.of(model), sizes or Sizes(), max_memory
        self._gpus = [device for device in devices_of(model) if device.type == "cuda"]
        self._visiting = visiting_bytes(model)
        if max_memory is not None:
            return_memory_early()

    def plan(self, needs: Callable[[Sizes], int]) -> Sizes:
        """Choose sizes at which a pass, that needs so many bytes, fits."""
        if self._max_memory is None:
            return self.sizes
        if self._gpus:
            used = max(int(torch.cuda.memory_allocated(device)) for device in self._gpus)
        else:
            used = int(psutil.Process().memory_info().rss)
        return plan(needs, self._max_memory - used - self._visiting, self.sizes)

    def fitting(self, attempt: Callable[[Sizes], Result], needs: Callable[[Sizes], int]) -> Result:
        """Run `attempt` at sizes that fit, and at smaller ones each time that memory runs out all the same.

        Raises `LRP4RAGError` with what would have fitted when the smallest do not.
        """
        sizes = self.plan(needs)
        while True:
            try:
                return attempt(sizes)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            smaller = sizes.halved()
            if smaller is None:
                raise LRP4RAGError(
                    "out of memory, also at the smallest sizes, which need about "
                    f"{gigabytes(needs(sizes))} beside the model; shorten the prompt, use a smaller dtype "
                    "or reader, or a machine with that much free"
                )
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            sizes = smaller


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    phrases = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed")
    return any(phrase in str(error).lower() for phrase in phrases)


def trim_now_and_then() -> None:
    """Give back memory at every sixteenth call of this process."""
    if next(_CALLS) % TRIM_EVERY == 0:
        trim_heap()


def trim_heap() -> None:
    """Give back what glibc keeps of freed memory, which lies in pieces between what is still held: each pass
    is over another number of tokens, and leaves others. Nothing is done with another C library."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], Any] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def return_memory_early() -> None:
    """Let glibc give back arrays of 4 MB and more as soon as they are free, from now on.

    It otherwise keeps them in pieces that fit nothing new: at 4,000 tokens twice the memory, for an eighth
    of the time less.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):  # only glibc has it
        libc.mallopt(-3, 4 * 2**20)  # M_MMAP_THRESHOLD of malloc.h


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
