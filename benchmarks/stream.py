"""Speed of generating with relevance against plain generation, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import StoppingCriteria

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table
from benchmarks.devices import model_of, shape
from benchmarks.harness import Example, equal_parts, in_rounds, now, ratio
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


@dataclass(frozen=True)
class Task:
    """What every way does: `new` tokens after a prompt; no token ends them early."""

    model: Any
    prompt_ids: tuple[int, ...]
    new: int
    segments: int

    def generate(self, *criteria: StoppingCriteria) -> Marks:
        ids = torch.tensor([self.prompt_ids], device=self.model.device)
        clock = Clock(self.model.device)
        self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=self.new,
            min_new_tokens=self.new,
            do_sample=False,
            pad_token_id=0,
            stopping_criteria=[*criteria, clock],
        )
        return clock.marks

    def stream(self, tangents: int) -> Marks:
        weights = equal_parts(len(self.prompt_ids), tangents)
        with relevance_mode(self.model) as flow:
            marks = [now(self.model.device)]
            for _ in stream(flow, self.prompt_ids, weights, max_new_tokens=self.new, stop_ids=()):
                marks.append(now(self.model.device))
        return marks

    def recording(self, tangents: int) -> Marks:
        weights = equal_parts(len(self.prompt_ids), tangents)
        with relevance_mode(self.model) as flow, recording(flow, weights) as record:
            return self.generate(record)

    def ways(self) -> dict[str, Callable[[], Marks]]:
        calls = self.generate, partial(self.stream, 1), partial(self.recording, 1)
        segments = partial(self.stream, self.segments), partial(self.recording, self.segments)
        return dict(zip(WAYS, (*calls, *segments), strict=True))


def measure(task: Task, rounds: int) -> dict[str, Any]:
    found = {
        name: {figure: [of(marks) for marks in runs] for figure, of in FIGURES.items()}
        for name, runs in in_rounds(task.ways(), rounds).items()
    }
    plain = found["generate"]
    result: dict[str, Any] = {}
    for name, figures in found.items():
        result[f"{name}_over_generate"] = ratio(figures["tokens_per_second"], plain["tokens_per_second"])
        result[f"{name}_later_over_generate"] = ratio(figures["later_seconds"], plain["later_seconds"])
        result |= {f"{name}_{figure}": statistics.median(values) for figure, values in figures.items()}
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
      OMP_NUM_THREADS=1 python -m benchmarks.stream        on one core
    """
    model = model_of(shape, device, dtype)
    task = Task(model, Example.random(prompt, 1, model.config.vocab_size).prompt_ids, new, segments)
    result = measure(task, rounds)
    rows = [
        (
            name,
            f"{result[f'{name}_tokens_per_second']:.2f}",
            f"{result[f'{name}_over_generate']:.2f}",
            f"{result[f'{name}_first_seconds']:.3f} s",
            f"{result[f'{name}_later_seconds'] * 1000:.1f} ms",
            f"{result[f'{name}_later_over_generate']:.2f}",
        )
        for name in WAYS
    ]
    head = ("", "tokens/s", "/ generate", "first token", "later token", "/ generate")
    return result, table(head, rows)


if __name__ == "__main__":
    main()
