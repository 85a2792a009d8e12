"""What the signals of one response cost that a verdict on it rests on, against a plain forward, in one run.

    python -m benchmarks.verdict [--dtype bfloat16] [--out FILE]

One round runs every way once, so that the ratios hold on a noisy machine; of each way the fastest round
counts. The ways:

    forward     the fastest plain Hugging Face forward (sdpa, logits of the response rows only)
    R_response  one tangent, no signals
    fast        `signals_of(..., FAST)`: the passages together, contrasts, likelihood, lookback, states
    segments    each segment, and the likelihood without passages
    full        `signals_of(..., FULL)`: provenance too

Keys of --out, WAY being any of these:

    WAY_over_forward                            its seconds over those of the forward
    WAY_processor_over_forward                  the same of the processor's time, which other work on the
                                                machine disturbs less
    WAY_seconds, WAY_peak_bytes                 the latter of a process of its own, its weights included
    prompt, response, dtype, rounds, threads    the settings
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.common import Example, forget_peak, peak_resident, timed
from benchmarks.extraction import responses_to_one_prompt
from benchmarks.outputs import OutputFile
from benchmarks.push import forward
from benchmarks.stream import silence
from lrp4rag.files import write_atomically
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribute import prompt_mean
from lrp4rag.lrp.signals import FAST, FULL, Wanted, signals_of
from lrp4rag.reader import Encoded, Reader, load_reader
from lrp4rag.reader.reader import DTYPES

WAYS = ("forward", "R_response", "fast", "segments", "full")
SEGMENTS = replace(FULL, provenance=False)
# A question of RAGTruth in SmolLM2's chat template: segments in their order, and their share of the prompt.
LAYOUT = ((0, 32), (1, 10), (0, 21), (2, 112), (0, 7), (3, 112), (0, 7), (4, 113), (0, 40))


def laid_out(reader: Reader, prompt: int, response: int) -> Encoded:
    """Random tokens, in segments as long as RAGTruth's."""
    one = responses_to_one_prompt(reader, 1, prompt, response)[0]
    named = [segment for segment, count in LAYOUT for _ in range(count)]
    return replace(one, segments=tuple(named[i * len(named) // prompt] for i in range(prompt)))


def ways(reader: Reader, one: Encoded) -> dict[str, Callable[[], object]]:
    example = Example(one.prompt_ids, one.response_ids)

    def response() -> None:
        with relevance_mode(reader.model) as flow:
            flow.push(one, prompt_mean(one))

    def signals(wanted: Wanted) -> None:
        with relevance_mode(reader.model) as flow:
            signals_of(flow, one, wanted)

    return {
        "forward": lambda: forward(reader.model, example),
        "R_response": response,
        "fast": lambda: signals(FAST),
        "segments": lambda: signals(SEGMENTS),
        "full": lambda: signals(FULL),
    }


def best_of(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds by the clock, and of the processor, of the fastest call of each."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    calls["R_response"]()  # to warm up: a model's first flow checks its logits
    for _ in range(rounds):
        for name, call in calls.items():
            before = time.process_time()
            seconds = timed(call)
            taken[name].append((seconds, time.process_time() - before))
    return {name: (min(s for s, _ in pairs), min(p for _, p in pairs)) for name, pairs in taken.items()}


def peak_bytes(way: str, prompt: int, response: int, dtype: str) -> int:
    """Peak resident memory of a fresh process that does `way` once."""
    command = [sys.executable, "-m", "benchmarks.verdict", "--only", way, "--dtype", dtype]
    lengths = ["--prompt", str(prompt), "--response", str(response)]
    root = Path(__file__).resolve().parents[1]
    output = subprocess.run([*command, *lengths], check=True, capture_output=True, text=True, cwd=root)
    return int(output.stdout)


def measure(prompt: int, response: int, dtype: str, rounds: int) -> dict[str, Any]:
    reader = load_reader(dtype=dtype)
    calls = ways(reader, laid_out(reader, prompt, response))
    best = best_of(calls, rounds)
    result: dict[str, Any] = {}
    plain_seconds, plain_processor = best["forward"]
    for name, (seconds, processor) in best.items():
        result[f"{name}_over_forward"] = seconds / plain_seconds
        result[f"{name}_processor_over_forward"] = processor / plain_processor
        result[f"{name}_seconds"] = seconds
        result[f"{name}_peak_bytes"] = peak_bytes(name, prompt, response, dtype)
    settings = {"prompt": prompt, "response": response, "dtype": dtype, "rounds": rounds}
    return result | settings | {"threads": torch.get_num_threads()}


def lines(result: dict[str, Any]) -> list[str]:
    head = (
        f"prompt of {result['prompt']} and response of {result['response']} tokens, {result['dtype']}, "
        f"{result['threads']} threads, best of {result['rounds']}"
    )
    rows = [
        f"{name:<12}{result[f'{name}_seconds']:>8.2f} s{result[f'{name}_over_forward']:>16.2f}"
        f"{result[f'{name}_processor_over_forward']:>16.2f}{result[f'{name}_peak_bytes'] / 1e9:>14.2f} GB"
        for name in WAYS
    ]
    return [
        head,
        f"{'':<12}{'seconds':>10}{'plain forwards':>16}{'processor time':>16}{'peak memory':>17}",
        *rows,
    ]


@click.command(context_settings={"max_content_width": 110})
@click.option("--prompt", default=454, show_default=True, type=click.IntRange(20), help="Prompt tokens.")
@click.option("--response", default=188, show_default=True, type=click.IntRange(16), help="Response tokens.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="Reader's.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Rounds of all ways.")
@click.option("--out", type=OutputFile(), help="Also write JSON here.")
@click.option("--only", type=click.Choice(WAYS), hidden=True)
def main(prompt: int, response: int, dtype: str, rounds: int, out: Path | None, only: str | None) -> None:
    """Signals of one response on the default reader (lengths: RAGTruth QA's means)."""
    silence()
    if only is not None:
        reader = load_reader(dtype=dtype)
        call = ways(reader, laid_out(reader, prompt, response))[only]
        forget_peak()
        call()
        click.echo(peak_resident())
        return
    result = measure(prompt, response, dtype, rounds)
    click.echo("\n".join(lines(result)))
    if out is not None:
        write_atomically(out, json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
