"""`python -m benchmarks.gpu`: what a plain pass, a push and a pull cost on a GPU, where their time goes, and
whether CUDA graphs or compiled kernels would help the plain pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table
from benchmarks.devices import model_of, shape
from benchmarks.harness import Example, in_rounds, peak_of, plain_forward, ratio, seconds
from lrp4rag.lrp import relevance_mode
from lrp4rag.util.errors import InputError, first_line

KERNELS = 8
"""Of a profile: those that take most."""


def passes(model: Any, example: Example) -> dict[str, Callable[[], object]]:
    """What is measured, each by itself; push and pull enter relevance mode, as a command does."""
    return {
        "forward": lambda: plain_forward(model, example),
        "push": lambda: _in_relevance_mode(model, lambda flow: flow.push(example, example.mean_prompt)),
        "pull": lambda: _in_relevance_mode(model, lambda flow: flow.pull(example, example.mean_response)),
    }


def _in_relevance_mode(model: Any, work: Callable[[Any], object]) -> object:
    with relevance_mode(model) as flow:
        return work(flow)


def profile(work: Callable[[], object], device: torch.device) -> list[dict[str, Any]]:
    """The operators that take most of a call's time, with their part of it."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    there = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    work()
    with profiled(activities=there) as found:
        work()
    name = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    spent = {one.key: (float(getattr(one, name)), one.count) for one in found.key_averages()}
    whole = sum(time for time, _ in spent.values())
    most = sorted(spent, key=lambda key: -spent[key][0])[:KERNELS]
    return [{"operator": key, "part": spent[key][0] / whole, "calls": spent[key][1]} for key in most]


def faster(model: Any, example: Example, rounds: int) -> dict[str, float | str]:
    """Times that a plain pass is faster in a CUDA graph, and compiled; or why there is no figure."""
    device, found = torch.device(model.device), dict[str, float | str]()
    inputs = example.inputs.to(device)

    def plain() -> object:
        return model(inputs, use_cache=False).logits

    for name, make in (("cuda_graph", _graph_of), ("compiled", _compiled)):
        try:
            works = {"plain": plain, name: make(model, inputs)}
            times = in_rounds({of: partial(seconds, work, device) for of, work in works.items()}, rounds)
            found[name] = ratio(times["plain"], times[name])
        except Exception as error:  # a graph may not take what the model does, and a compiler may be missing
            found[name] = f"{type(error).__name__}: {first_line(error)}"
    return found


def _graph_of(model: Any, inputs: torch.Tensor) -> Callable[[], object]:
    if inputs.device.type != "cuda":
        raise InputError("graphs are of GPUs")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # what is captured must have run before
        model(inputs, use_cache=False)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(inputs, use_cache=False)
    return graph.replay


def _compiled(model: Any, inputs: torch.Tensor) -> Callable[[], object]:
    work: Callable[..., object] = torch.compile(model)
    return lambda: work(inputs, use_cache=False)


@benchmark
@shape
@command.device
@count("--prompt", 400, "Prompt tokens.", least=5)
@count("--response", 200, "Response tokens.", least=2)
@command.rounds(default=5)
def main(shape: str, device: str, prompt: int, response: int, rounds: int) -> Report:
    """Time, memory and profile of passes on a device, in float32 and bfloat16.

    \b
    Examples:
      python -m benchmarks.gpu --device cuda --shape llama-3.1-8b --out gpu.json
      python -m benchmarks.gpu --device cpu --shape tiny            (tries the command, where there is no GPU)
    """
    where, found = torch.device(device), dict[str, Any]()
    if where.type == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no GPU here; --device cpu --shape tiny tries the command")
    for dtype in ("float32", "bfloat16"):
        model = model_of(shape, device, dtype)
        example = Example.random(prompt, response, model.config.vocab_size)
        works = passes(model, example)
        clocks = {name: partial(seconds, work, where) for name, work in works.items()}
        times = in_rounds(clocks, rounds)
        found[dtype] = {
            name: {
                "seconds": min(times[name]),
                "over_forward": ratio(times[name], times["forward"]),
                "peak_bytes": peak_of(work, where),
                "profile": profile(work, where),
            }
            for name, work in works.items()
        } | {"faster": faster(model, example, rounds)}
        del model, works, clocks
    rows = [
        _row(dtype, name, one)
        for dtype, all_ in found.items()
        for name, one in all_.items()
        if name != "faster"
    ]
    head = ["dtype", "pass", "ms", "over a forward", "peak, GB", "most of its time"]
    helped = [f"{dtype}, times faster: {of['faster']}" for dtype, of in found.items()]
    return {"passes": found}, [*table(head, rows), "", *helped]


def _row(dtype: str, name: str, one: dict[str, Any]) -> list[str]:
    most = "; ".join(f"{part['operator']} {part['part']:.0%}" for part in one["profile"][:3])
    times = f"{1000 * one['seconds']:.1f}", f"{one['over_forward']:.2f}"
    return [dtype, name, *times, f"{one['peak_bytes'] / 1e9:.2f}", most]


if __name__ == "__main__":
    main()
