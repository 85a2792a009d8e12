"""What half precision does to relevance: agreement with float32, and time, for each composite.

    python -m benchmarks.precision [--markdown FILE] [--json]

Relevance in bfloat16 and float16 is compared with relevance in float32 of the same reader on the same
examples (examples/*.json and synthetic prompts with a planted passage). Of each example and quantity:

    correlation       Pearson, between the two vectors
    mean_error        mean |a - b| over mean |b|: the mean error, relative to the mean size
    largest_error     max |a - b| over max |b|

Keys of --json: `device`, `device_name`, `threads`, `rounds`, and `rows`, a list of

    composite, dtype, quantity      quantity: response (R_response), prompt (R_prompt), segments (relevance
                                    of each segment for each response token)
    correlation                     median over the examples; lowest_correlation: the lowest
    mean_error, largest_error       medians over the examples; highest_mean_error: the highest
    finite                          whether every value of every example is
    time_over_float32               seconds of the push (response, segments) or pull (prompt) over those in
                                    float32 on the same device: the median over rounds and examples
    examples                        how many

A row in which something is not finite has null in place of figures.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.devices import device_name, seconds
from benchmarks.faithfulness.cases import needle_cases
from benchmarks.faithfulness.methods import Array
from benchmarks.outputs import OutputFile
from benchmarks.stream import silence
from lrp4rag.data import load_examples
from lrp4rag.errors import RelevanceError
from lrp4rag.example import Example
from lrp4rag.files import write_atomically
from lrp4rag.lrp import COMPOSITES, Flow, relevance_mode
from lrp4rag.lrp.attribute import prompt_mean, segment_weights
from lrp4rag.reader import Encoded, Reader, load_reader

EXAMPLES = Path(__file__).parents[1] / "examples"
HALVES = ("bfloat16", "float16")
NAMES = {"response": "R_response", "prompt": "R_prompt", "segments": "by segment"}

Quantity = Callable[[Flow, Encoded], torch.Tensor]


def response(flow: Flow, encoded: Encoded) -> torch.Tensor:
    return flow.push(encoded, prompt_mean(encoded))


def segments(flow: Flow, encoded: Encoded) -> torch.Tensor:
    return flow.push(encoded, segment_weights(encoded))


def prompt(flow: Flow, encoded: Encoded) -> torch.Tensor:
    count = len(encoded.response_ids)
    try:
        return flow.pull(encoded, torch.full((1, count), 1 / count))
    finally:
        flow.forget()  # or the next call would be timed without its replay


QUANTITIES: dict[str, Quantity] = {"response": response, "prompt": prompt, "segments": segments}


@dataclass(frozen=True, slots=True)
class Agreement:
    """One vector of relevance against float32's."""

    correlation: float
    mean_error: float
    largest_error: float

    @classmethod
    def of(cls, found: Array, expected: Array) -> Agreement:
        a, b = (np.asarray(values, dtype=np.float64).ravel() for values in (found, expected))
        error, size = np.abs(a - b), np.abs(b)
        return cls(
            correlation=float(np.corrcoef(a, b)[0, 1]),
            mean_error=float(error.mean() / size.mean()),
            largest_error=float(error.max() / size.max()),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """One quantity of one example: its relevance, None where it was not finite, and seconds."""

    values: Array | None
    seconds: list[float]


def cases(needles: int) -> list[Example]:
    real = [example for path in sorted(EXAMPLES.glob("*.json")) for example in load_examples(path)]
    return real + [case.example for case in needle_cases(needles, seed=0)]


def relevance(
    readers: dict[str, Reader], encoded: list[Encoded], composite: str, rounds: int
) -> dict[tuple[str, str], list[Found]]:
    """By dtype and quantity, one for each example. The dtypes take turns, so that ratios of time hold."""
    found: dict[tuple[str, str], list[Found]] = defaultdict(list)
    with ExitStack() as modes:
        flows = {
            dtype: modes.enter_context(relevance_mode(reader.model, composite))
            for dtype, reader in readers.items()
        }
        for one in encoded:
            for name, quantity in QUANTITIES.items():
                values = {dtype: _values(quantity, flow, one) for dtype, flow in flows.items()}
                taken: dict[str, list[float]] = {dtype: [] for dtype in flows}
                for _ in range(rounds):
                    for dtype, flow in flows.items():
                        if values[dtype] is not None:
                            taken[dtype].append(
                                seconds(partial(quantity, flow, one), readers[dtype].model.device)
                            )
                for dtype in flows:
                    found[dtype, name].append(Found(values[dtype], taken[dtype]))
    return found


def _values(quantity: Quantity, flow: Flow, encoded: Encoded) -> Array | None:
    """None where something is not finite."""
    try:
        values: Array = quantity(flow, encoded).cpu().double().numpy()
    except RelevanceError:
        return None
    return values if np.isfinite(values).all() else None


def row(found: list[Found], expected: list[Found]) -> dict[str, Any]:
    """One row of the table, but for what it is of."""
    pairs = [
        (Agreement.of(one.values, other.values), one, other)
        for one, other in zip(found, expected, strict=True)
        if one.values is not None and other.values is not None
    ]
    finite = len(pairs) == len(found)
    agreements = [pair[0] for pair in pairs]
    ratios = [a / b for _, one, other in pairs for a, b in zip(one.seconds, other.seconds, strict=True)]

    def over(pick: Callable[[list[float]], float], name: str) -> float | None:
        return pick([getattr(one, name) for one in agreements]) if finite else None

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


def measure(
    device: str, dtypes: list[str], composites: list[str], needles: int, rounds: int
) -> list[dict[str, Any]]:
    readers = {dtype: load_reader(device=device, dtype=dtype) for dtype in ("float32", *dtypes)}
    encoded = [readers["float32"].encode(example) for example in cases(needles)]
    rows = []
    for composite in composites:
        found = relevance(readers, encoded, composite, rounds)
        for dtype in dtypes:
            for name in QUANTITIES:
                about = {"composite": composite, "dtype": dtype, "quantity": name}
                rows.append(about | row(found[dtype, name], found["float32", name]))
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    text = [
        "| composite | dtype | relevance | correlation (lowest) | mean error (highest) | largest error | "
        "finite | time / float32 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        figures = ["-"] * 3
        if one["finite"]:
            figures = [
                f"{one['correlation']:.5f} ({one['lowest_correlation']:.5f})",
                f"{one['mean_error']:.2%} ({one['highest_mean_error']:.2%})",
                f"{one['largest_error']:.2%}",
            ]
        ratio = one["time_over_float32"]
        cells = [one["composite"], one["dtype"], NAMES[one["quantity"]], *figures]
        cells += ["yes" if one["finite"] else "no", "-" if ratio is None else f"{ratio:.2f}"]
        text.append(f"| {' | '.join(cells)} |")
    return text


def page(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """The table, with what it was measured on and what its columns are."""
    intro = (
        f"Default reader on {about['device_name']} ({about['device']}, {about['threads']} threads), "
        f"{rows[0]['examples']} examples, {datetime.now(UTC):%Y-%m-%d}; against float32 on the same device. "
        "Medians over the examples. Correlation is Pearson's; the mean error is mean |a - b| over mean |b|, "
        "the largest max |a - b| over max |b|. `python -m benchmarks.precision` makes this table."
    )
    return "\n".join([intro, "", *table(rows)]) + "\n"


@click.command(context_settings={"max_content_width": 110})
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:K.")
@click.option(
    "--dtypes",
    multiple=True,
    type=click.Choice(HALVES),
    help="Only this one (may be repeated). Default: both.",
)
@click.option(
    "--composites",
    multiple=True,
    type=click.Choice(list(COMPOSITES)),
    help="Only this one (may be repeated). Default: all.",
)
@click.option(
    "--needles",
    default=6,
    show_default=True,
    type=click.IntRange(0),
    help="Synthetic prompts beside examples/.",
)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Rounds of timing.")
@click.option("--markdown", type=OutputFile(), help="Write the table to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(
    device: str,
    dtypes: tuple[str, ...],
    composites: tuple[str, ...],
    needles: int,
    rounds: int,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Relevance in bfloat16 and float16 against float32: agreement and time, for each composite.

    \b
    Whatever the dtype, means, exponentials, sums and the final relevance are taken in float32; the
    matrix products are not. Read off whether a dtype is good enough (correlation, errors), safe (finite)
    and worth it (time; below 1 is faster than float32 on the same device).

    \b
    Examples:
      python -m benchmarks.precision --markdown precision.md           about ten minutes on 2 cores
      python -m benchmarks.precision --device cuda                     on a GPU
      python -m benchmarks.precision --composites attnlrp --needles 0 --rounds 1      a quick look
    """
    silence()
    chosen = list(dtypes or HALVES)
    rows = measure(device, chosen, list(composites or COMPOSITES), needles, rounds)
    about = {
        "device": device,
        "device_name": device_name(torch.device(device)),
        "threads": torch.get_num_threads(),
        "rounds": rounds,
    }
    if markdown is not None:
        write_atomically(markdown, page(rows, about))
    click.echo(json.dumps({**about, "rows": rows}, indent=2) if as_json else "\n".join(table(rows)))


if __name__ == "__main__":
    main()
