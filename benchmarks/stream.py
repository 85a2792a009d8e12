"""Speed of generating with relevance against plain generation, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers import StoppingCriteria

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table
from benchmarks.harness import Example, equal_parts, in_rounds, now, ratio
from benchmarks.shapes import model_of, shape
from lrp4rag.lrp import recording, relevance_mode, stream

WAYS = ("generate", "stream", "recording", "stream_segments", "recording_segments")
Marks = list[float]
"""Seconds on a clock: when a generation began, and when each of its tokens came."""
FIGURES: dict[str, Callable[[Marks], float]] = {
    "tokens_per_second": lambda marks: (len(marks) - 1) / (marks[-1] - marks[0]),
    "first_seconds": lambda marks: marks[1] - marks[0],
    "later_seconds": lambda marks: (marks[-1] - marks[1]) / (len(marks) - 2),
}


class Clock(StoppingCriteria):
    """Marks when `generate` has chosen a token; it never stops."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.marks = [now(device)]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        self.marks.append(now(self._device))
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def generated(model: Any, prompt_ids: tuple[int, ...], new: int, *criteria: StoppingCriteria) -> Marks:
    """Plain Hugging Face `generate`, greedy; no token ends it early."""
    ids = torch.tensor([prompt_ids], device=model.device)
    clock = Clock(model.device)
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new,
        min_new_tokens=new,
        do_sample=False,
        pad_token_id=0,
        stopping_criteria=[*criteria, clock],
    )
    return clock.marks


def streamed(model: Any, prompt_ids: tuple[int, ...], new: int, tangents: int) -> Marks:
    with relevance_mode(model) as flow:
        marks = [now(model.device)]
        weights = equal_parts(len(prompt_ids), tangents)
        for _ in stream(flow, prompt_ids, weights, max_new_tokens=new, stop_ids=()):
            marks.append(now(model.device))
    return marks


def recorded(model: Any, prompt_ids: tuple[int, ...], new: int, tangents: int) -> Marks:
    weights = equal_parts(len(prompt_ids), tangents)
    with relevance_mode(model) as flow, recording(flow, weights) as record:
        return generated(model, prompt_ids, new, record)


def measure(
    model: Any, prompt_ids: tuple[int, ...], new: int, segments: int, rounds: int
) -> dict[str, float]:
    task = (model, prompt_ids, new)
    calls = [partial(generated, *task)]
    calls += [partial(way, *task, tangents) for tangents in (1, segments) for way in (streamed, recorded)]
    figures = {
        name: {figure: [of(marks) for marks in runs] for figure, of in FIGURES.items()}
        for name, runs in in_rounds(dict(zip(WAYS, calls, strict=True)), rounds).items()
    }
    plain, result = figures["generate"], dict[str, float]()
    for name, way in figures.items():
        result[f"{name}_over_generate"] = ratio(way["tokens_per_second"], plain["tokens_per_second"])
        result[f"{name}_later_over_generate"] = ratio(way["later_seconds"], plain["later_seconds"])
        result |= {f"{name}_{figure}": statistics.median(values) for figure, values in way.items()}
    return result


@benchmark
@shape
@command.device
@command.dtype
@count("--prompt", 400, "Prompt tokens.", least=5)
@count("--new", 128, "Generated tokens.", least=2)
@count("--segments", 5, "Tangents of the second kind.")
@command.rounds(default=5)
def main(shape: str, device: str, dtype: str, prompt: int, new: int, segments: int, rounds: int) -> Report:
    """Speed of generating with relevance against plain `generate`.

    \b
    A tangent rides along as one more batch row of every step, so that a token and its relevance come
    together. Read off:
      * tokens/s against generate's: what relevance costs a user who waits for the whole response;
      * first token: the prompt is read with its tangents (about 1 + T plain rows for T tangents);
      * later token: a decoding step, where weights are read from memory once for all rows.

    \b
    Examples:
      python -m benchmarks.stream                          400 prompt and 128 new tokens, a few minutes
      python -m benchmarks.stream --new 16 --rounds 1      a quick look
    """
    model = model_of(shape, device, dtype)
    prompt_ids = Example.random(prompt, 1, model.config.vocab_size).prompt_ids
    result = measure(model, prompt_ids, new, segments, rounds)
    heads = ("tokens_per_second", "over_generate", "first_seconds", "later_seconds", "later_over_generate")
    rows = [(name, *(f"{result[f'{name}_{head}']:.3g}" for head in heads)) for name in WAYS]
    return dict(result), table(("", *(head.replace("_", " ") for head in heads)), rows)


if __name__ == "__main__":
    main()
