"""Time and memory of push and pull against plain forward and backward passes, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import command
from benchmarks.command import Result, benchmark, count, gigabytes, table
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
from benchmarks.shapes import model_of, shape
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Sizes

CHUNKS = 6
"""Chunks of rows of R* that are pulled, spread evenly over the response; their mean stands for all."""


def forward(model: Any, example: Example) -> float:
    return seconds(partial(plain_forward, model, example), model.device)


def push(model: Any, example: Example, weights: Tensor) -> float:
    """Seconds without what users do once, such as entering relevance mode."""
    with relevance_mode(model) as flow:
        return seconds(lambda: flow.push(example, weights), model.device)


def pull_prompt(model: Any, example: Example) -> float:
    with relevance_mode(model) as flow:
        return seconds(lambda: flow.pull(example, example.mean_response), model.device)


def pull_row(model: Any, example: Example, cotangents: int) -> float:
    """Seconds of a row of R*, on average."""
    rows = torch.eye(len(example.response_ids)).split(cotangents)
    chosen = rows[:: max(1, len(rows) // CHUNKS)]
    with relevance_mode(model, sizes=Sizes(cotangents=cotangents)) as flow:
        flow.pull(example, chosen[0][:1])  # the replay itself is one push, not a row
        taken = [seconds(partial(flow.pull, example, chunk), model.device) for chunk in chosen]
    return sum(taken) / sum(len(chunk) for chunk in chosen)


def backward(model: Any, example: Example, graph: tuple[Tensor, Tensor] | None = None) -> float:
    """Seconds of a row of R* by autograd, of the middle token; any other costs the same. Without a graph its
    forward is included."""
    j = len(example.response_ids) // 2

    def row() -> Tensor:
        known = graph_of(model, example.inputs, len(example.response_ids)) if graph is None else graph
        embeddings, logits = known
        return torch.autograd.grad(logits[j, example.response_ids[j]], embeddings, retain_graph=True)[0]

    return seconds(row, model.device)


def passes(model: Any, example: Example, segments: int, cotangents: int) -> dict[str, Callable[[], float]]:
    graph = graph_of(model, example.inputs, len(example.response_ids))
    parts = equal_parts(len(example.prompt_ids), segments)
    return {
        "forward": partial(forward, model, example),
        "R_response": partial(push, model, example, example.mean_prompt),
        "per_passage": partial(push, model, example, parts),
        "R_prompt": partial(pull_prompt, model, example),
        "pull_row": partial(pull_row, model, example, cotangents),
        "backward_row": partial(backward, model, example, graph),
        "forward_backward_row": partial(backward, model, example),
    }


def peak_bytes(kind: str, model: tuple[str, str, str], prompt: int, response: int) -> int:
    """Peak memory of a forward or a push; `model` is a shape, a device and a dtype."""
    loaded = model_of(*model)
    example = Example.random(prompt, response, loaded.config.vocab_size)
    calls = {
        "forward": partial(forward, loaded, example),
        "push": partial(push, loaded, example, example.mean_prompt),
    }
    return peak_of(calls[kind], loaded.device)


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
) -> Result:
    """R_response, relevance by passage, R_prompt and rows of R* against plain passes of the same model.

    \b
    Examples:
      python -m benchmarks.passes                                                    ten minutes on 2 cores
      python -m benchmarks.passes --shape llama-2-7b --device cuda --dtype bfloat16  on one GPU
      python -m benchmarks.passes --shape tiny --prompt 20 --response 8 --rounds 1   the same steps, small
    """
    model = model_of(shape, device, dtype)
    example = Example.random(prompt, response, model.config.vocab_size)
    ways = {  # each with a plain forward just before it, so that ratios are of neighbours
        name: lambda way=way: (forward(model, example), way())
        for name, way in passes(model, example, segments, cotangents).items()
    }
    measured = {
        name: {
            "seconds": statistics.median(taken for _, taken in pairs),
            "over_forward": statistics.median(taken / plain for plain, taken in pairs),
        }
        for name, pairs in in_rounds(ways, rounds).items()
    }
    memory = {
        kind: apart(peak_bytes, kind, (shape, device, dtype), prompt, response)
        for kind in ("forward", "push")
    }
    taken = {name: one["seconds"] for name, one in measured.items()}
    matrix = taken["R_prompt"] + (response - 1) * taken["pull_row"]  # R_prompt is a replay and one row
    ratios = {
        "push_over_forward": measured["R_response"]["over_forward"],
        "backwards_over_push": response * taken["backward_row"] / taken["R_response"],
        "pull_row_over_forward": measured["pull_row"]["over_forward"],
        "rows_over_matrix": response * taken["forward_backward_row"] / matrix,
        "peak_memory_over_forward": memory["push"] / memory["forward"],
    }
    rows = [
        (name, f"{one['seconds'] * 1000:.1f}", f"{one['over_forward']:.2f}") for name, one in measured.items()
    ]
    text = [
        f"peak memory: {gigabytes(memory['forward'])} of a forward, {gigabytes(memory['push'])} of a push",
        "",
        *table(("pass", "ms", "plain forwards"), rows),
        "",
        *table(("ratio", "measured"), [(name, f"{value:.2f}") for name, value in ratios.items()]),
    ]
    peaks = {f"{kind}_peak_bytes": peak for kind, peak in memory.items()}
    return {**ratios, "passes": [{"name": name, **one} for name, one in measured.items()], **peaks}, text


if __name__ == "__main__":
    main()
