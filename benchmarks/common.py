"""What the benchmarks share: an example, a clock, and the peak memory of a process.

Runs in the peers' environments too, so it needs torch and nothing else.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Example:
    """The token ids of a prompt and a response. Their values do not matter for time."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]

    @classmethod
    def random(cls, prompt: int, response: int, vocabulary: int) -> Example:
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(vocabulary, (prompt + response,), generator=generator).tolist()
        return cls(tuple(ids[:prompt]), tuple(ids[prompt:]))

    @property
    def inputs(self) -> torch.Tensor:
        """(1, n + t - 1): the last response token predicts nothing that is explained."""
        return torch.tensor([[*self.prompt_ids, *self.response_ids[:-1]]])


def timed(function: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def forget_peak() -> None:
    """Start the peak anew after loading, which needs more memory than a pass (Linux only)."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)  # what was freed but not given back would count as used
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def peak_resident() -> int:
    """Peak resident memory of this process in bytes, weights included."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
