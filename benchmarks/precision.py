"""What half precision does to relevance: agreement with float32, and time, for each composite."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import command
from benchmarks.command import Report, benchmark, count, listed, table
from benchmarks.harness import in_rounds, seconds
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.lrp import COMPOSITES, Flow, relevance_mode
from lrp4rag.lrp.attribution import prompt_mean, segment_weights
from lrp4rag.reader import Encoded, load_reader
from lrp4rag.training.sets import set_path
from lrp4rag.util.errors import RelevanceError

EXAMPLES = Path(__file__).parents[1] / "examples"
REAL = ("grounded.json", "hallucinated.json")
EXACT, DTYPES = "float32", ("bfloat16", "float16")

Array = NDArray[np.float64]
Run = tuple[Array | None, float]
"""Relevance, None where it is not finite, and seconds."""


def prompt(flow: Flow, encoded: Encoded) -> torch.Tensor:
    length = len(encoded.response_ids)
    try:
        return flow.pull(encoded, torch.full((1, length), 1 / length))
    finally:
        flow.forget()  # or the next call would be timed without its replay


QUANTITIES: dict[str, Callable[[Flow, Encoded], torch.Tensor]] = {
    "response": lambda flow, encoded: flow.push(encoded, prompt_mean(encoded)),
    "prompt": prompt,
    "segments": lambda flow, encoded: flow.push(encoded, segment_weights(encoded)),
}


def run(flow: Flow, encoded: Encoded, quantity: str) -> Run:
    found: list[torch.Tensor] = []
    try:
        taken = seconds(lambda: found.append(QUANTITIES[quantity](flow, encoded)), flow.model.device)
    except RelevanceError:
        return None, math.nan
    values: Array = found[0].cpu().double().numpy()
    return (values if np.isfinite(values).all() else None), taken


def agreement(found: Array, expected: Array) -> dict[str, float]:
    """One vector of relevance against float32's."""
    a, b = found.ravel(), expected.ravel()
    error, size = np.abs(a - b), np.abs(b)
    return {
        "correlation": float(np.corrcoef(a, b)[0, 1]),
        "mean_error": float(error.mean() / size.mean()),
        "largest_error": float(error.max() / size.max()),
    }


def row(found: list[list[Run]], exact: list[list[Run]]) -> dict[str, Any]:
    """One row of the table, but for what it is of, from the rounds of each example; `exact` is in float32."""
    pairs = [(one[0][0], other[0][0]) for one, other in zip(found, exact, strict=True)]
    figures = [agreement(a, b) for a, b in pairs if a is not None and b is not None]
    finite = len(figures) == len(pairs)
    ratios = [
        taken / base
        for one, other in zip(found, exact, strict=True)
        for (values, taken), (_, base) in zip(one, other, strict=True)
        if values is not None
    ]

    def over(pick: Callable[[list[float]], float], name: str) -> float | None:
        return pick([one[name] for one in figures]) if finite else None

    return {
        "correlation": over(statistics.median, "correlation"),
        "lowest_correlation": over(min, "correlation"),
        "mean_error": over(statistics.median, "mean_error"),
        "highest_mean_error": over(max, "mean_error"),
        "largest_error": over(statistics.median, "largest_error"),
        "finite": finite,
        "time_over_float32": statistics.median(ratios) if ratios else None,
        "examples": len(found),
    }


def examples_of(more: int) -> list[Example]:
    """Those of examples/, and so many of the bundled set."""
    real = [example for name in REAL for example in load_examples(EXAMPLES / name)]
    answered = [example for example in load_examples(set_path(Path("everyday"))) if example.response]
    return real + answered[:more]


def measure(
    device: str, dtypes: tuple[str, ...], composites: tuple[str, ...], more: int, rounds: int
) -> list[dict[str, Any]]:
    readers = {dtype: load_reader(device=device, dtype=dtype) for dtype in dict.fromkeys((EXACT, *dtypes))}
    encoded = [readers[EXACT].encode(example) for example in examples_of(more)]
    rows = {}
    for composite in composites:
        with ExitStack() as modes:
            flows = {
                dtype: modes.enter_context(relevance_mode(reader.model, composite))
                for dtype, reader in readers.items()
            }
            for quantity in QUANTITIES:
                # The dtypes take turns, so that ratios of time hold.
                found = [
                    in_rounds(
                        {name: partial(run, flow, one, quantity) for name, flow in flows.items()}, rounds
                    )
                    for one in encoded
                ]
                exact = [runs[EXACT] for runs in found]
                for dtype in dtypes:
                    about = {"composite": composite, "dtype": dtype, "quantity": quantity}
                    rows[composite, dtype, quantity] = about | row([runs[dtype] for runs in found], exact)
    return [rows[c, d, q] for c in composites for d in dtypes for q in QUANTITIES]


def lines(rows: list[dict[str, Any]]) -> list[str]:
    head = [key for key in rows[0] if key != "examples"]
    text = [
        [f"{one[key]:.4g}" if isinstance(one[key], float) else str(one[key]) for key in head] for one in rows
    ]
    return table([key.replace("_", " ") for key in head], text)


@benchmark
@command.device
@listed("--dtypes", click.Choice(DTYPES), "bfloat16,float16", "Compared with float32.")
@listed("--composites", click.Choice(list(COMPOSITES)), ",".join(COMPOSITES), "Measured.")
@count("--more", 6, "Examples of the bundled set beside examples/.", least=0)
@command.rounds(default=3)
def main(device: str, dtypes: tuple[str, ...], composites: tuple[str, ...], more: int, rounds: int) -> Report:
    """Relevance in bfloat16 and float16 against float32: agreement and time, for each composite.

    \b
    Whatever the dtype, means, exponentials, sums and the final relevance are taken in float32; the
    matrix products are not. Read off whether a dtype is good enough (correlation, errors), safe (finite)
    and worth it (time; below 1 is faster than float32 on the same device).

    \b
    Examples:
      python -m benchmarks.precision                                            ten minutes on 2 cores
      python -m benchmarks.precision --device cuda                              on a GPU
      python -m benchmarks.precision --composites attnlrp --more 0 --rounds 1         a quick look
    """
    rows = measure(device, dtypes, composites, more, rounds)
    return {"rows": rows}, lines(rows)


if __name__ == "__main__":
    main()
