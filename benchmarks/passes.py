"""Time and memory of push and pull against plain forward and backward passes, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import command
from benchmarks.command import Report, benchmark, count, gigabytes, table
from benchmarks.devices import model_of, shape
from benchmarks.harness import (
    Example,
    apart,
    equal_parts,
    graph_of,
    in_rounds,
    peak_of,
    plain_forward,
    seconds,
)
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Sizes

CHUNKS = 6
"""Chunks of rows of R* that are pulled, spread evenly over the response; their mean stands for all."""
TITLES = {
    "forward": "plain forward",
    "R_response": "R_response (one push)",
    "per_passage": "relevance by passage",
    "R_prompt": "R_prompt (one pull, replay included)",
    "pull_row": "one row of R*",
    "backward_row": "one row by autograd, kept graph",
    "forward_backward_row": "one row by autograd, its forward included",
}


@dataclass(frozen=True)
class Setup:
    """One model, and what is asked of it. Passes return seconds, without what users do once, such as entering
    relevance mode."""

    model: Any
    example: Example
    segments: int
    cotangents: int

    def clock(self, function: Callable[[], object]) -> float:
        return seconds(function, torch.device(self.model.device))

    def passes(self) -> dict[str, Callable[[], float]]:
        graph, parts = self.graph(), equal_parts(len(self.example.prompt_ids), self.segments)
        return {
            "forward": self.forward,
            "R_response": lambda: self.push(self.example.mean_prompt),
            "per_passage": lambda: self.push(parts),
            "R_prompt": self.pull_prompt,
            "pull_row": self.pull_row,
            "backward_row": lambda: self.clock(lambda: self.backward(graph)),
            "forward_backward_row": lambda: self.clock(lambda: self.backward(self.graph())),
        }

    def forward(self) -> float:
        return self.clock(lambda: plain_forward(self.model, self.example))

    def push(self, weights: Tensor) -> float:
        with relevance_mode(self.model) as flow:
            return self.clock(lambda: flow.push(self.example, weights))

    def pull_prompt(self) -> float:
        with relevance_mode(self.model) as flow:
            return self.clock(lambda: flow.pull(self.example, self.example.mean_response))

    def pull_row(self) -> float:
        rows = torch.eye(len(self.example.response_ids)).split(self.cotangents)
        chosen = rows[:: max(1, len(rows) // CHUNKS)]
        with relevance_mode(self.model, sizes=Sizes(cotangents=self.cotangents)) as flow:
            flow.pull(self.example, chosen[0][:1])  # the replay itself is one push, not a row
            taken = [self.clock(partial(flow.pull, self.example, chunk)) for chunk in chosen]
        return sum(taken) / sum(len(chunk) for chunk in chosen)

    def graph(self) -> tuple[Tensor, Tensor]:
        return graph_of(self.model, self.example.inputs, len(self.example.response_ids))

    def backward(self, graph: tuple[Tensor, Tensor]) -> Tensor:
        """One row of R* by autograd, of the middle token; any other costs the same: none is cut short."""
        j = len(self.example.response_ids) // 2
        embeddings, logits = graph
        return torch.autograd.grad(logits[j, self.example.response_ids[j]], embeddings, retain_graph=True)[0]


def measure_passes(setup: Setup, rounds: int) -> dict[str, dict[str, float]]:
    """Every pass with a plain forward just before it, so that ratios are of neighbours."""

    def beside_a_forward(way: Callable[[], float]) -> tuple[float, float]:
        plain = setup.forward()
        return way(), plain

    ways = {name: partial(beside_a_forward, way) for name, way in setup.passes().items()}
    return {
        name: {
            "seconds": statistics.median(taken for taken, _ in pairs),
            "over_forward": statistics.median(taken / plain for taken, plain in pairs),
        }
        for name, pairs in in_rounds(ways, rounds).items()
    }


def peak_bytes(what: str, model: tuple[str, str, str], prompt: int, response: int) -> int:
    """Peak memory of a forward or a push; `model` is a shape, a device and a dtype."""
    loaded = model_of(*model)
    setup = Setup(loaded, Example.random(prompt, response, loaded.config.vocab_size), 1, 1)
    calls: dict[str, Callable[[], object]] = {
        "forward": setup.forward,
        "push": partial(setup.push, setup.example.mean_prompt),
    }
    return peak_of(calls[what], torch.device(loaded.device))


@benchmark
@shape
@command.device
@command.dtype
@count("--prompt", 400, "Prompt tokens.", least=5)
@count("--response", 240, "Response tokens.", least=2)
@count("--segments", 5, "Passages, one tangent each.")
@count("--cotangents", 8, "Rows of R* pulled at once.")
@command.rounds(default=5)
def main(
    shape: str,
    device: str,
    dtype: str,
    prompt: int,
    response: int,
    segments: int,
    cotangents: int,
    rounds: int,
) -> Report:
    """R_response, relevance by passage, R_prompt and rows of R* against plain passes of the same model.

    \b
    Examples:
      python -m benchmarks.passes                                                    ten minutes on 2 cores
      python -m benchmarks.passes --shape llama-2-7b --device cuda --dtype bfloat16  on one GPU
      python -m benchmarks.passes --shape tiny --prompt 20 --response 8 --rounds 1   the same steps, small
    """
    model = model_of(shape, device, dtype)
    setup = Setup(model, Example.random(prompt, response, model.config.vocab_size), segments, cotangents)
    passes = measure_passes(setup, rounds)
    memory = {
        what: apart(peak_bytes, what, (shape, device, dtype), prompt, response)
        for what in ("forward", "push")
    }
    taken = {name: one["seconds"] for name, one in passes.items()}
    matrix = taken["R_prompt"] + (response - 1) * taken["pull_row"]  # R_prompt is a replay and one row
    ratios = {
        "push_over_forward": passes["R_response"]["over_forward"],
        "backwards_over_push": response * taken["backward_row"] / taken["R_response"],
        "pull_row_over_forward": passes["pull_row"]["over_forward"],
        "rows_over_matrix": response * taken["forward_backward_row"] / matrix,
        "peak_memory_over_forward": memory["push"] / memory["forward"],
    }
    rows = [
        (TITLES[name], f"{one['seconds'] * 1000:.1f}", f"{one['over_forward']:.2f}")
        for name, one in passes.items()
    ]
    text = [
        f"peak memory: {gigabytes(memory['forward'])} of a forward, {gigabytes(memory['push'])} of a push",
        "",
        *table(("pass", "ms", "plain forwards"), rows),
        "",
        *table(("ratio", "measured"), [(name, f"{value:.2f}") for name, value in ratios.items()]),
    ]
    peaks = {f"{what}_peak_bytes": peak for what, peak in memory.items()}
    return {**ratios, "passes": [{"name": name, **one} for name, one in passes.items()], **peaks}, text


if __name__ == "__main__":
    main()
