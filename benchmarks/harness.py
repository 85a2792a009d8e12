"""How every benchmark measures: inputs, clocks, peak memory, rounds, ratios, and processes of their own."""

from __future__ import annotations

import gc
import math
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from lrp4rag.lrp.memory import trim_heap

T = TypeVar("T")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Example:
    """The token ids of a prompt and a response. Their values do not matter for time."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]

    @classmethod
    def random(cls, prompt: int, response: int, vocabulary: int, seed: int = 0) -> Example:
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(vocabulary, (prompt + response,), generator=generator).tolist()
        return cls(tuple(ids[:prompt]), tuple(ids[prompt:]))

    @property
    def inputs(self) -> Tensor:
        """(1, n + t - 1): the last response token predicts nothing that is explained."""
        return torch.tensor([[*self.prompt_ids, *self.response_ids[:-1]]])

    @property
    def mean_prompt(self) -> Tensor:
        """(1, n): the tangent of R_response."""
        return torch.full((1, len(self.prompt_ids)), 1 / len(self.prompt_ids))

    @property
    def mean_response(self) -> Tensor:
        """(1, t): the cotangent of R_prompt."""
        return torch.full((1, len(self.response_ids)), 1 / len(self.response_ids))


def equal_parts(length: int, parts: int) -> Tensor:
    """(parts, length): a tangent of ones on each of `parts` equal parts."""
    return (torch.arange(length) * parts // length == torch.arange(parts)[:, None]).float()


@torch.no_grad()
def plain_forward(model: Any, example: Example) -> Tensor:
    """Logits (t, vocabulary) of the response rows: the pass that ratios compare with."""
    inputs, kept = example.inputs.to(model.device), len(example.response_ids)
    logits: Tensor = model(inputs, use_cache=False, logits_to_keep=kept).logits[0]
    return logits


def graph_of(model: Any, inputs: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """Embeddings (1, N, d) that require gradients, and the last `kept` rows of logits (kept, vocabulary)."""
    embeddings = model.get_input_embeddings()(inputs.to(model.device)).detach().requires_grad_()
    return embeddings, model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=kept).logits[0]


def now(device: torch.device = CPU) -> float:
    """Seconds on a clock, once the device is idle: kernels run later than the calls that launch them."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds(function: Callable[[], object], device: torch.device = CPU) -> float:
    """Seconds that one call takes: by its own events on a GPU, by the wall elsewhere.

    A call that waits for the device in between has those gaps counted too.
    """
    started = now(device)
    if device.type != "cuda":
        function()
        return now() - started
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    stream = torch.cuda.current_stream(device)
    stream.record_event(events[0])
    function()
    stream.record_event(events[1])
    now(device)
    return float(events[0].elapsed_time(events[1])) / 1000


def in_rounds(ways: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """What every way returns in every round. A round runs each way once, so that ratios within rounds hold
    on a noisy machine. The first call of a way chooses kernels and takes memory, and does not count."""
    for way in ways.values():
        way()
    found: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return found


def ratio(some: Sequence[float], others: Sequence[float]) -> float:
    """The median over the rounds of the ratio within a round."""
    return statistics.median(a / b for a, b in zip(some, others, strict=True))


def difference(found: Tensor | Sequence[float], expected: Tensor | Sequence[float]) -> float:
    """The largest difference, over the largest expected value."""
    one, other = (torch.as_tensor(values, dtype=torch.float64) for values in (found, expected))
    return float((one - other).abs().max() / other.abs().max())


def exponent(lengths: Sequence[float], values: Sequence[float]) -> float:
    """The power of the length with which values grow: the slope of their logarithms, by least squares."""
    x, y = [math.log(length) for length in lengths], [math.log(value) for value in values]
    return statistics.linear_regression(x, y).slope


def apart(function: Callable[..., T], *arguments: object) -> T:
    """What a function returns in a fresh process. Raises what it raises there, and `BrokenProcessPool` where
    the process dies."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=silence) as process:
        return process.submit(function, *arguments).result()


def silence() -> None:
    """No progress bars or advice from transformers between the figures."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def peak_of(function: Callable[[], object], device: torch.device = CPU) -> int:
    """Peak bytes while a function runs once: of this process (resident), or on its GPU; weights included."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        function()
        return torch.cuda.max_memory_allocated(device)
    forget_peak()
    function()
    return peak_resident()


def forget_peak() -> None:
    """Start the peak anew after loading, which needs more memory than a pass (Linux only)."""
    gc.collect()
    trim_heap()  # what was freed but not given back would count as used
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def peak_resident() -> int:
    """Peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class ReaderCounter:
    """Forward passes of a reader while it is open, and the tokens that these read."""

    def __init__(self, reader: Any) -> None:
        self._model, self.passes, self.tokens = reader.model, 0, 0

    def __enter__(self) -> ReaderCounter:
        embeddings = self._model.get_input_embeddings()
        self._hook = embeddings.register_forward_pre_hook(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _count(self, module: object, given: tuple[Any, ...]) -> None:
        self.passes += 1
        self.tokens += given[0].numel()
