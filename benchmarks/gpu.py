"""Relevance on one GPU, in the shape of Llama-2-7B with random weights (bfloat16): time and limits.

    python -m benchmarks.gpu [--markdown FILE] [--json]
    python -m benchmarks.gpu --shape tiny --device cpu      the same steps, to try the benchmark itself

Time does not depend on what the weights are; that the relevance is right is checked on the default
reader, float32 on the device against float32 on the CPU. Keys of --json:

    passes    a list of {name, seconds, over_forward, flops, share_of_arithmetic}
              names: forward (plain, logits of the response rows only), R_response (one pushed tangent),
              per_passage (`segments` tangents), R_prompt (one pulled cotangent, replay included),
              matrix (the full R*, replay included), backward_row (one row by autograd on a kept graph),
              forward_backward_row (one row by autograd, its forward included).
              flops: of the matrix products that ran; share_of_arithmetic: flops / seconds over the device's
              peak; null where no peak is known
    streaming what `benchmarks.stream` measures (its keys), and share_of_bandwidth_generate and _stream: bytes
              of the weights that a decoding step reads / seconds over the device's peak
    targets   a list of {name, value, target, met}
    check     {quantity: largest difference over the largest value}, or null without the default reader
    date, device_name, device, dtype, shape, parameters, prompt, response, new, segments, rounds, torch,
    peak_flops, peak_bandwidth, peak_source
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.common import Example
from benchmarks.devices import Limits, device_name, known_limits, seconds
from benchmarks.gpu_check import check
from benchmarks.gpu_report import page
from benchmarks.gpu_shapes import SHAPES, random_model, weights_read
from benchmarks.outputs import OutputFile
from benchmarks.stream import Task, silence
from benchmarks.stream import measure as measure_streaming
from lrp4rag.files import write_atomically
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Sizes
from lrp4rag.reader.reader import DTYPES, check_device

Run = Callable[[Callable[[], object]], float]
"""Calls a function and returns what that took: seconds, or floating-point operations."""


@dataclass(frozen=True)
class Setup:
    """One model on one device, and what is asked of it.

    A pass is given a `Run`, so that what users do once, such as entering relevance mode, is left out.
    """

    model: Any
    example: Example
    segments: int
    cotangents: int

    @property
    def device(self) -> torch.device:
        return torch.device(self.model.device)

    def passes(self) -> dict[str, Callable[[Run], float]]:
        graph, t = self.graph(), len(self.example.response_ids)
        mean = torch.full((1, t), 1 / t)
        return {
            "forward": lambda run: run(self.forward),
            "R_response": lambda run: self.push(1, run),
            "per_passage": lambda run: self.push(self.segments, run),
            "R_prompt": lambda run: self.pull(mean, run),
            "backward_row": lambda run: run(lambda: self.backward(graph)),
            "forward_backward_row": lambda run: run(lambda: self.backward(self.graph())),
            "matrix": lambda run: self.pull(None, run),
        }

    @torch.no_grad()
    def forward(self) -> torch.Tensor:
        kept = len(self.example.response_ids)
        inputs = self.example.inputs.to(self.device)
        logits: torch.Tensor = self.model(inputs, use_cache=False, logits_to_keep=kept).logits
        return logits

    def push(self, tangents: int, run: Run) -> float:
        n = len(self.example.prompt_ids)
        weights = (torch.arange(n) * tangents // n == torch.arange(tangents)[:, None]).float()
        with relevance_mode(self.model) as flow:
            return run(lambda: flow.push(self.example, weights))

    def pull(self, weights: torch.Tensor | None, run: Run) -> float:
        with relevance_mode(self.model, sizes=Sizes(cotangents=self.cotangents)) as flow:
            return run(lambda: flow.pull(self.example, weights))

    def graph(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (t, vocabulary) that remember how they came from the embeddings, which come second."""
        inputs = self.example.inputs.to(self.device)
        embeddings = self.model.get_input_embeddings()(inputs).detach().requires_grad_()
        kept = len(self.example.response_ids)
        output = self.model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=kept)
        return output.logits[0], embeddings

    def backward(self, graph: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """One row of R* by autograd, of the middle token; any other costs the same: none is cut short."""
        j = len(self.example.response_ids) // 2
        logit = graph[0][j, self.example.response_ids[j]]
        return torch.autograd.grad(logit, graph[1], retain_graph=True)[0]


def measure_passes(setup: Setup, rounds: int, peak: float | None) -> list[dict[str, Any]]:
    """Every pass once a round, and the plain forward before each, so that ratios are of neighbours."""
    clock: Run = partial(seconds, device=setup.device)
    ways = setup.passes()
    # Counting fails where modules run between the start of a graph and its end.
    flops = {name: way(count_flops) for name, way in ways.items() if name != "forward_backward_row"}
    flops["forward_backward_row"] = flops["forward"] + flops["backward_row"]
    for way in ways.values():
        way(clock)  # warm up: kernels are chosen, and memory is taken, the first time
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            plain = ways["forward"](clock)
            pairs[name].append((way(clock), plain))
    rows = []
    for name, found in pairs.items():
        median = statistics.median(own for own, _ in found)
        ratio = statistics.median(own / plain for own, plain in found)
        share = None if peak is None else flops[name] / median / peak
        one = {"name": name, "seconds": median, "over_forward": ratio, "flops": flops[name]}
        rows.append({**one, "share_of_arithmetic": share})
    return rows


def count_flops(function: Callable[[], object]) -> float:
    """Floating-point operations of the matrix products of one call."""
    with FlopCounterMode(display=False) as counter:
        function()
    return float(counter.get_total_flops())


def streaming(setup: Setup, new: int, rounds: int, bandwidth: float | None) -> dict[str, Any]:
    task = Task(setup.model, setup.example.prompt_ids, new, setup.segments)
    result = measure_streaming(task, rounds)
    read = weights_read(setup.model)
    for name in ("generate", "stream"):
        share = None if bandwidth is None else read / result[f"{name}_later_seconds"] / bandwidth
        result[f"share_of_bandwidth_{name}"] = share
    return result


def targets(found: list[dict[str, Any]], streamed: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    by_name = {one["name"]: one["seconds"] for one in found}
    over_forward = {one["name"]: one["over_forward"] for one in found}
    faster = {
        kind: rows * by_name[kind] / by_name["matrix"] for kind in ("backward_row", "forward_backward_row")
    }
    judged = [
        ("R_response, in plain forwards", over_forward["R_response"], "at most", 2.2),
        ("a later streamed token, in generate's", streamed["stream_later_over_generate"], "at most", 1.15),
        ("full R*, times faster than rows by autograd, each with its forward",
         faster["forward_backward_row"], "at least", 5.0),
        ("full R*, times faster than rows by autograd on one kept graph",
         faster["backward_row"], "at least", 5.0),
    ]  # fmt: skip
    return [
        {
            "name": name,
            "value": value,
            "target": f"{kind} {goal:g}",
            "met": value <= goal if kind == "at most" else value >= goal,
        }
        for name, value, kind, goal in judged
    ]


def limits_of(device: torch.device, tflops: float | None, bandwidth: float | None) -> Limits | None:
    """What the options say, else what is known of the device."""
    known = known_limits(device_name(device))
    if tflops is None and bandwidth is None:
        return known
    given = known or Limits(float("nan"), float("nan"), "")
    if tflops is not None:
        given = replace(given, flops=tflops * 1e12)
    if bandwidth is not None:
        given = replace(given, bandwidth=bandwidth * 1e12)
    if given.flops != given.flops or given.bandwidth != given.bandwidth:
        raise click.UsageError("this device is not known: give both --tflops and --bandwidth")
    return replace(given, source="given on the command line")


@click.command(context_settings={"max_content_width": 110})
@click.option("--shape", default="llama-2-7b", show_default=True, type=click.Choice(list(SHAPES)))
@click.option("--device", default="cuda", show_default=True, help="cpu, cuda or cuda:K.")
@click.option("--dtype", default="bfloat16", show_default=True, type=click.Choice(list(DTYPES)))
@click.option("--prompt", default=400, show_default=True, type=click.IntRange(5), help="Prompt tokens.")
@click.option("--response", default=240, show_default=True, type=click.IntRange(2), help="Response tokens.")
@click.option("--new", default=128, show_default=True, type=click.IntRange(2), help="Tokens to generate.")
@click.option(
    "--segments", default=5, show_default=True, type=click.IntRange(1), help="Passages, one tangent each."
)
@click.option(
    "--cotangents", default=8, show_default=True, type=click.IntRange(1), help="Rows of R* pulled at once."
)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of all passes.")
@click.option("--tflops", type=float, help="Peak of the device, in dense TFLOP/s of --dtype.")
@click.option("--bandwidth", type=float, help="Peak of the device's memory, in TB/s.")
@click.option("--check/--no-check", "checked", default=True, help="Check relevance on the default reader.")
@click.option("--markdown", type=OutputFile(), help="Write a page for the docs to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(markdown: Path | None, as_json: bool, **options: Any) -> None:
    """R_response, relevance by passage, R_prompt, the full R* and streaming on one GPU.

    \b
    Weights are random, in the shape of a real model, so nothing is downloaded: time is the same. Each pass
    is given in milliseconds, in plain forward passes of the same model, and as a share of what the device
    can do (arithmetic for passes over many tokens, memory bandwidth for decoding steps, which read every
    weight for one token). Peaks are known for H200, H100 and A100; give others with --tflops and
    --bandwidth.

    \b
    Examples:
      python -m benchmarks.gpu --markdown docs/gpu.md             about five minutes on an H200
      python -m benchmarks.gpu --cotangents 32                    more rows of R* at once
      python -m benchmarks.gpu --shape tiny --device cpu --rounds 1 --prompt 20 --response 8 --new 4
    """
    silence()
    result = measure(**options)
    text = page(result)
    if markdown is not None:
        write_atomically(markdown, text)
    click.echo(json.dumps(result, indent=2) if as_json else text)


def measure(
    *,
    shape: str,
    device: str,
    dtype: str,
    prompt: int,
    response: int,
    new: int,
    segments: int,
    cotangents: int,
    rounds: int,
    tflops: float | None,
    bandwidth: float | None,
    checked: bool,
) -> dict[str, Any]:
    where = torch.device(check_device(device))
    if where.type == "cuda" and where.index is not None:
        torch.cuda.set_device(where)
    limits = limits_of(where, tflops, bandwidth)
    agreement = check(where) if checked else None
    model = random_model(shape, where, DTYPES[dtype])
    setup = Setup(model, Example.random(prompt, response, model.config.vocab_size), segments, cotangents)
    found = measure_passes(setup, rounds, None if limits is None else limits.flops)
    streamed = streaming(setup, new, rounds, None if limits is None else limits.bandwidth)
    return {
        "passes": found,
        "streaming": streamed,
        "targets": targets(found, streamed, response),
        "check": agreement,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "device_name": device_name(where),
        "device": str(where),
        "dtype": dtype,
        "shape": shape,
        "parameters": sum(one.numel() for one in model.parameters()),
        "prompt": prompt,
        "response": response,
        "new": new,
        "segments": segments,
        "cotangents": cotangents,
        "rounds": rounds,
        "torch": torch.__version__,
        "peak_flops": None if limits is None else limits.flops,
        "peak_bandwidth": None if limits is None else limits.bandwidth,
        "peak_source": None if limits is None else limits.source,
    }


if __name__ == "__main__":
    main()
