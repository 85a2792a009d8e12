"""Peak memory and time of push and pull as prompts grow, and how well memory is planned.

    python -m benchmarks.long_context [--json]

Every cell runs in a fresh process, whose peak is VmHWM (Linux) while it pushes once, model included.
`estimate` is what `lrp4rag.lrp.memory` expects a pass to allocate at the sizes that were planned;
`allocated` is the peak less what the process held before the pass.

Keys of --json: `cells`, a list of

    what                 push, or pull (of one R_prompt cotangent, its replay included)
    prompt, response     tokens
    limit_bytes          `max_memory` of `relevance_mode`; null: default sizes
    seconds              of the pass
    peak_bytes           of the process
    resident_bytes       of the process before the pass
    allocated_bytes      peak less resident
    estimate_bytes       by memory.push_bytes or memory.pull_bytes
    estimate_over_allocated
    sizes                what was planned: queries, tangents, cotangents, positions, tape
    error                why there is nothing else, or null

and `exponents`, a list of {what, limit_bytes, exponent}: the power of the prompt's length with which
`allocated_bytes` grows (least squares on logarithms; 2 would be the square); and `threads`, `tangents`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np
import torch

from benchmarks.common import Example, forget_peak, peak_resident, timed
from benchmarks.stream import silence
from lrp4rag.errors import LRP4RAGError
from lrp4rag.lrp import Flow, relevance_mode
from lrp4rag.lrp.memory import Shape, Sizes, plan, pull_bytes, push_bytes, used_bytes
from lrp4rag.lrp.propagate import PULL_CHUNK, PUSH_CHUNK
from lrp4rag.reader import load_reader

GB = 10**9


@dataclass(frozen=True, slots=True)
class Cell:
    """One pass: what, over how long a prompt, within how much memory (None: default sizes)."""

    what: str
    prompt: int
    response: int
    limit: int | None
    tangents: int = 1

    def options(self) -> list[str]:
        return ["--only", json.dumps(asdict(self))]


def run_here(cell: Cell) -> dict[str, Any]:
    """Load the reader, warm up on a few tokens, and do the pass once, in this process."""
    model = load_reader(device="cpu").model.requires_grad_(False)
    example = Example.random(cell.prompt, cell.response, model.config.vocab_size)
    few = Example.random(8, 2, model.config.vocab_size)
    with relevance_mode(model) as flow:
        go(flow, few, cell)
    forget_peak()
    with relevance_mode(model, max_memory=cell.limit) as flow:
        resident = peak_resident()
        sizes, estimate = planned(model, cell, resident)
        taken = timed(lambda: go(flow, example, cell))
    peak = peak_resident()
    return {
        "seconds": taken,
        "peak_bytes": peak,
        "resident_bytes": resident,
        "allocated_bytes": peak - resident,
        "estimate_bytes": estimate,
        "estimate_over_allocated": estimate / max(peak - resident, 1),
        "sizes": asdict(sizes),
        "error": None,
    }


def go(flow: Flow, example: Example, cell: Cell) -> None:
    n, t = len(example.prompt_ids), len(example.response_ids)
    if cell.what == "push":
        flow.push(example, torch.full((cell.tangents, n), 1 / n))
    else:
        flow.pull(example, torch.full((1, t), 1 / t))
        flow.forget()


def planned(model: Any, cell: Cell, resident: int) -> tuple[Sizes, int]:
    """The sizes that the flow chooses, and the bytes that they are expected to need."""
    shape, length = Shape.of(model), cell.prompt + cell.response

    def needs(sizes: Sizes) -> int:
        if cell.what == "push":
            return push_bytes(shape, length, cell.tangents, sizes)
        return pull_bytes(shape, length, 1, sizes)

    sizes = Sizes(tangents=PUSH_CHUNK, cotangents=PULL_CHUNK)
    if cell.limit is not None:
        held = used_bytes(torch.device("cpu"))
        sizes = plan(needs, cell.limit - max(held, resident), sizes)
    return sizes, needs(sizes)


def run_apart(cell: Cell) -> dict[str, Any]:
    """`run_here` in a fresh process; a pass that does not fit is a cell with an error."""
    command = [sys.executable, "-m", "benchmarks.long_context", *cell.options()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout)
    else:
        lines = done.stderr.strip().splitlines()
        found = {"error": lines[-1] if lines else f"ended by signal {-done.returncode}"}
    said = {"what": cell.what, "prompt": cell.prompt, "response": cell.response, "limit_bytes": cell.limit}
    return said | found


def cells_of(
    prompts: list[int], response: int, limits: list[float], pull_limit: float, tangents: int
) -> list[Cell]:
    pushed = [None, *(int(limit * GB) for limit in limits)]
    cells = [Cell("push", n, response, limit, tangents) for limit in pushed for n in prompts]
    return cells + [Cell("pull", n, response, int(pull_limit * GB)) for n in prompts]


def exponents(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The power with which allocated memory grows, for each kind of pass with two lengths or more."""
    fits = []
    for what, limit in dict.fromkeys((cell["what"], cell["limit_bytes"]) for cell in cells):
        own = [
            cell
            for cell in cells
            if (cell["what"], cell["limit_bytes"], cell["error"]) == (what, limit, None)
            and cell["allocated_bytes"] > 0
        ]
        if len(own) > 1:
            lengths = np.log([cell["prompt"] for cell in own])
            slope = np.polyfit(lengths, np.log([cell["allocated_bytes"] for cell in own]), 1)[0]
            fits.append({"what": what, "limit_bytes": limit, "exponent": float(slope)})
    return fits


def line(cell: dict[str, Any]) -> str:
    start: str = f"{cell['what']} {limit_text(cell['limit_bytes']):>14} {cell['prompt']:>6} tokens: "
    if cell["error"] is not None:
        return f"{start}{cell['error']}"
    sizes = " ".join(f"{key}={value}" for key, value in cell["sizes"].items() if value is not None)
    return start + (
        f"{cell['seconds']:7.1f} s, peak {cell['peak_bytes'] / GB:5.2f} GB, of it allocated "
        f"{cell['allocated_bytes'] / GB:5.2f} GB (estimate {cell['estimate_over_allocated']:4.2f} of that; "
        f"{sizes})"
    )


def limit_text(limit: int | None) -> str:
    return "default sizes" if limit is None else f"within {limit / GB:g} GB"


class Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers above 0 with commas between them."""

    name = "x,x,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(",") if part)
        except ValueError:
            self.fail(f"'{value}' is not numbers with commas between them", param, ctx)
        if any(number <= 0 for number in numbers):
            self.fail("numbers must be above 0", param, ctx)
        return numbers


@click.command(context_settings={"max_content_width": 110})
@click.option(
    "--prompts",
    type=Numbers(),
    default="1024,2048,4096,8192,16384",
    show_default=True,
    help="Prompt lengths.",
)
@click.option("--response", default=32, show_default=True, type=click.IntRange(1), help="Response tokens.")
@click.option(
    "--limits",
    type=Numbers(),
    default="3,2",
    show_default=True,
    help="Memory for a push, in GB; '' for none.",
)
@click.option("--pull-limit", default=6.0, show_default=True, help="Memory for a pull, in GB.")
@click.option("--tangents", default=1, show_default=True, type=click.IntRange(1), help="Tangents of a push.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
@click.option("--only", hidden=True)
def main(
    prompts: tuple[float, ...],
    response: int,
    limits: tuple[float, ...],
    pull_limit: float,
    tangents: int,
    as_json: bool,
    only: str | None,
) -> None:
    """Peak memory and seconds of a push and a pull for prompts of growing length (default reader, float32).

    \b
    Each pass runs in a process of its own. The first rows have default sizes, the next a limit on the whole
    process (`relevance_mode(model, max_memory=bytes)`), under which the prompt is read in chunks with a
    cache; the last pull one cotangent (R_prompt). Positions beyond the reader's window of 8,192 are
    extrapolated: what is measured is memory and time, not meaning.

    \b
    Examples:
      python -m benchmarks.long_context                                  about 40 minutes on 2 quiet cores
      python -m benchmarks.long_context --prompts 1024,2048              a quick look
      python -m benchmarks.long_context --prompts 16384 --limits 6,3,2   the longest only
    """
    silence()
    if only is not None:
        try:
            click.echo(json.dumps(run_here(Cell(**json.loads(only)))))
        except LRP4RAGError as error:
            raise click.ClickException(str(error)) from error
        return
    results = []
    lengths = [int(prompt) for prompt in prompts]
    for cell in cells_of(lengths, response, list(limits), pull_limit, tangents):
        results.append(run_apart(cell))
        click.echo(line(results[-1]), err=as_json)  # the table, while it grows
    fits = exponents(results)
    if as_json:
        rest = {"exponents": fits, "threads": torch.get_num_threads(), "tangents": tangents}
        click.echo(json.dumps({"cells": results, **rest}, indent=2))
        return
    for fit in fits:
        size = limit_text(fit["limit_bytes"])
        click.echo(f"memory of a {fit['what']}, {size}: prompt length to the power {fit['exponent']:.2f}")


if __name__ == "__main__":
    main()
