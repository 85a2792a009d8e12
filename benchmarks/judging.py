"""What judging costs as users run it: one response, and several responses to one prompt, in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks import command
from benchmarks.command import Result, benchmark, count
from benchmarks.harness import in_rounds, ratio, seconds
from lrp4rag import Detector, Example
from lrp4rag.data import load_examples
from lrp4rag.reader.reader import Reader

EXAMPLE = Path(__file__).parent.parent / "examples" / "hallucinated.json"


def answers(example: Example, number: int) -> list[Example]:
    """So many responses to one prompt: the example's, each a word longer than the one before."""
    words = " Indeed" * number
    return [
        replace(example, id=f"{example.id}-{k}", response=f"{example.response}{words[: 7 * k]}", labels=None)
        for k in range(number)
    ]


@torch.no_grad()
def forward(reader: Reader, example: Example) -> None:
    encoded = reader.encode(example)
    ids = torch.tensor([[*encoded.prompt_ids, *encoded.response_ids]], device=reader.model.device)
    reader.model(ids, use_cache=False, logits_to_keep=len(encoded.response_ids))


def ways(
    detector: Detector, other: Detector | None, answered: list[Example]
) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        "forward": partial(forward, detector.reader, answered[0]),
        "one": partial(detector.judge, answered[0]),
        "verdict": partial(detector.judge, answered[0], evidence=False),
        "together": partial(detector.judge_many, answered, evidence=False),
        "apart": lambda: [detector.judge(one, evidence=False) for one in answered],
    }
    return found if other is None else {**found, "other": partial(other.judge, answered[0])}


@benchmark
@click.option("--detector", "name", default="default", show_default=True, help="A trained detector.")
@click.option("--against", metavar="FOLDER", help="Another detector, which judges the same response.")
@count("--responses", 11, "Responses to one prompt.", least=2)
@click.option(
    "--example",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON or JSONL.  [default: examples/hallucinated.json]",
)
@command.dtype
@command.rounds(default=5)
def main(
    name: str, against: str | None, responses: int, example: str | None, dtype: str, rounds: int
) -> Result:
    """A verdict with all its evidence and without, in plain forwards; N verdicts, together and one by one.

    \b
    Examples:
      python -m benchmarks.judging
      python -m benchmarks.judging --against OLD --rounds 9     the time of two detectors, in one run
    """
    detector = Detector.load(name, dtype=dtype)
    other = None if against is None else Detector.load(against, reader=detector.reader)
    calls = ways(detector, other, answers(load_examples(example or EXAMPLE)[0], responses))
    taken = in_rounds({way: partial(seconds, call) for way, call in calls.items()}, rounds)
    result: dict[str, Any] = {f"{way}_seconds": min(values) for way, values in taken.items()}
    result["one_over_forward"] = ratio(taken["one"], taken["forward"])
    result["verdict_over_forward"] = ratio(taken["verdict"], taken["forward"])
    result["together_over_apart"] = ratio(taken["together"], taken["apart"])
    result["together_over_one"] = ratio(taken["together"], taken["verdict"])
    if other is not None:
        result["one_over_other"] = ratio(taken["one"], taken["other"])
    return result


if __name__ == "__main__":
    main()
