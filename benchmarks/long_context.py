"""Peak memory and time of push, pull and verdicts as prompts grow, and how well memory is planned."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count as numbers
from typing import Any

import click

from benchmarks.command import Report, benchmark, count, listed, table
from benchmarks.harness import Example, apart, exponent, forget_peak, peak_resident, seconds
from lrp4rag import Detector
from lrp4rag import Example as Answer
from lrp4rag.data import load_examples
from lrp4rag.lrp import Flow, relevance_mode
from lrp4rag.lrp.memory import Budget, Shape, Sizes, pull_bytes, push_bytes
from lrp4rag.reader import load_reader
from lrp4rag.training.sets import EVERYDAY
from lrp4rag.util.errors import LRP4RAGError

GB = 10**9
DETECTORS = {"verdict": "default", "texts": "text"}
"""What judges, by what is done."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One pass: what, over how long a prompt, within how much memory (None: default sizes)."""

    what: str
    prompt: int
    response: int
    limit: int | None
    tangents: int = 1


def run_here(cell: Cell) -> dict[str, Any]:
    """Load the reader, warm up on a few tokens, and do the pass once, in this process."""
    if cell.what in DETECTORS:
        return judge_here(cell)
    model = load_reader(device="cpu").model.requires_grad_(False)
    example = Example.random(cell.prompt, cell.response, model.config.vocab_size)
    with relevance_mode(model) as flow:
        go(flow, Example.random(8, 2, model.config.vocab_size), cell)
    forget_peak()
    with relevance_mode(model, max_memory=cell.limit) as flow:
        resident = peak_resident()
        needs = partial(needed, Shape.of(model), cell)
        sizes = Budget(model, max_memory=cell.limit).plan(needs)
        taken = seconds(lambda: go(flow, example, cell))
    peak, estimate = peak_resident(), needs(sizes)
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


def judge_here(cell: Cell) -> dict[str, Any]:
    """Judge an answer with all its evidence, after a warm-up beside its own passages only."""
    detector = Detector.load(DETECTORS[cell.what], device="cpu")
    tokenizer = load_reader(device="cpu").tokenizer  # tokens of all prompts are those of the default reader
    first, *others = load_examples(EVERYDAY)
    detector.judge(first)
    example = lengthened(first, [text for one in others for text in one.passages], cell.prompt, tokenizer)
    forget_peak()
    resident = peak_resident()
    found: list[Any] = []
    taken = seconds(lambda: found.append(detector.judge(example)))
    peak = peak_resident()
    return {
        "seconds": taken,
        "peak_bytes": peak,
        "resident_bytes": resident,
        "allocated_bytes": peak - resident,
        "passages": len(example.passages),
        "tokens_read": len(found[0].encoded.prompt_ids),
        "error": None,
    }


def lengthened(example: Answer, others: list[str], tokens: int, tokenizer: Any) -> Answer:
    """Return an answer with further passages, until its prompt has about so many tokens. Those that come
    round again are told apart by a number."""
    passages = list(example.passages)
    length = len(tokenizer(example.prompt)["input_ids"])
    for turn in numbers():
        for text in dict.fromkeys(others):
            length += len(tokenizer(text)["input_ids"])
            if length > tokens:
                return Answer(example.question, passages, example.response)
            passages.append(f"{text} Item {turn}." if turn else text)
    raise AssertionError("turns have no end")


def go(flow: Flow, example: Example, cell: Cell) -> None:
    if cell.what == "push":
        flow.push(example, example.mean_prompt.expand(cell.tangents, -1))
    else:
        flow.pull(example, example.mean_response)
        flow.forget()


def needed(shape: Shape, cell: Cell, sizes: Sizes) -> int:
    """The bytes that a pass is expected to need."""
    length = cell.prompt + cell.response
    if cell.what == "push":
        return push_bytes(shape, length, cell.tangents, sizes)
    return pull_bytes(shape, length, 1, sizes)


def run_apart(cell: Cell) -> dict[str, Any]:
    """`run_here` in a fresh process; a pass that does not fit is a cell with an error."""
    about = {"what": cell.what, "prompt": cell.prompt, "response": cell.response, "limit_bytes": cell.limit}
    try:
        return about | apart(run_here, cell)
    except (LRP4RAGError, BrokenProcessPool) as error:
        return about | {"error": str(error)}


def row(cell: dict[str, Any]) -> list[str]:
    keys = ("what", "limit_bytes", "prompt", "seconds", "peak_bytes", "estimate_over_allocated", "error")
    return [f"{value:.3g}" if isinstance(value := cell.get(key), float) else str(value) for key in keys]


@benchmark
@listed("--prompts", click.IntRange(1), "1024,2048,4096,8192,16384", "Prompt lengths.")
@listed("--passes", click.Choice(["push", "pull", *DETECTORS]), "push,pull", "What is done.")
@count("--response", 32, "Response tokens.")
@listed("--limits", click.FloatRange(0, min_open=True), "3,2", "Memory for a push, in GB; ',' for none.")
@click.option("--pull-limit", default=6.0, show_default=True, help="Memory for a pull, in GB.")
@count("--tangents", 1, "Tangents of a push.")
def main(
    prompts: tuple[int, ...],
    passes: tuple[str, ...],
    response: int,
    limits: tuple[float, ...],
    pull_limit: float,
    tangents: int,
) -> Report:
    """Peak memory and seconds of a push and a pull, or of a verdict with its evidence, for prompts of growing
    length (default reader, float32).

    \b
    Each pass runs in a process of its own. The first rows have default sizes, the next a limit on the whole
    process (`relevance_mode(model, max_memory=bytes)`), under which the prompt is read in chunks with a
    cache; the last pull one cotangent (R_prompt). Positions beyond the reader's window of 8,192 are
    extrapolated: what is measured is memory and time, not meaning. A "verdict" is that of the detector
    "default", and "texts" that of "text" without a reader, on one answer of the set everyday among passages
    of others.

    \b
    Examples:
      python -m benchmarks.long_context                                  about 40 minutes on 2 quiet cores
      python -m benchmarks.long_context --prompts 1024,2048              a quick look
      python -m benchmarks.long_context --prompts 16384 --limits 6,3,2   the longest only
      python -m benchmarks.long_context --passes verdict,texts           what is judged, not attributed
    """
    pushed = [None, *(int(limit * GB) for limit in limits)]
    planned = [Cell("push", n, response, limit, tangents) for limit in pushed for n in prompts]
    planned += [Cell("pull", n, response, int(pull_limit * GB)) for n in prompts]
    planned += [Cell(what, n, response, None) for what in DETECTORS for n in prompts]
    cells = []
    for cell in (one for one in planned if one.what in passes):
        cells.append(run_apart(cell))
        click.echo(" ".join(row(cells[-1])), err=True)  # while the table grows
    fits = []
    for what, limit in dict.fromkeys((cell["what"], cell["limit_bytes"]) for cell in cells):
        some = [cell for cell in cells if (cell["what"], cell["limit_bytes"]) == (what, limit)]
        fit: dict[str, Any] = {"what": what, "limit_bytes": limit}
        for name, key in (("exponent", "allocated_bytes"), ("time_exponent", "seconds")):
            points = [(cell["prompt"], cell[key]) for cell in some if cell.get(key)]
            if len(points) > 1:
                fit |= {name: exponent(*zip(*points, strict=True)), "points": len(points)}
        if "exponent" in fit:
            fits.append(fit)
    head = ("", "limit", "tokens", "seconds", "peak", "estimate over allocated", "error")
    powers = [
        f"{fit['what']}, {fit['limit_bytes']}: {fit['exponent']:.2f}, {fit['time_exponent']:.2f}"
        for fit in fits
    ]
    about = "allocated memory and time grow with the prompt's length to the powers of: " + "; ".join(powers)
    return {"cells": cells, "exponents": fits}, [*table(head, [row(cell) for cell in cells]), "", about]


if __name__ == "__main__":
    main()
