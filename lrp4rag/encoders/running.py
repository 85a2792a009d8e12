"""What running any encoder over many texts shares: batches of like lengths, and the fastest precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOKENS_A_BATCH = 4096


def batches(lengths: Sequence[int], tokens: int = TOKENS_A_BATCH) -> Iterator[NDArray[np.intp]]:
    """Numbers of texts, shortest first, so that a padded batch has at most so many tokens, or one text."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens:
            yield order[start:end]
            start = end


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch draws from this seed inside, and goes on as before after it."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def autocast(device: str | None = None) -> AbstractContextManager[Any]:
    """bfloat16 where this device is faster in it."""
    import torch

    from lrp4rag.generator.reader import check_device, fastest_dtype

    found = check_device(device)
    fast = fastest_dtype(found) == "bfloat16"
    return torch.autocast(found.split(":")[0], dtype=torch.bfloat16, enabled=fast)
