"""Speed of generating with relevance against plain generation, in one run.

    python -m benchmarks.stream [--json]

One round runs every way once, so that the ratios, which are taken within rounds, hold on a noisy
machine; the medians over the rounds are reported. The ways:

    generate            plain Hugging Face `generate`, greedy
    stream              `lrp4rag.lrp.stream.stream` with one tangent (R_response)
    recording           `lrp4rag.lrp.stream.recording` inside `generate`, one tangent
    stream_segments     `stream` with one tangent for each of several segments
    recording_segments  `recording` with the same

Keys of --json, WAY being any of these:

    WAY_over_generate             tokens per second over those of `generate`, prompt included
    WAY_later_over_generate       seconds of a token after the first, over those of `generate`
    WAY_tokens_per_second         prompt included
    WAY_first_seconds             from the call to the first token: the prompt is read
    WAY_later_seconds             a later token, on average
    prompt, new, segments, rounds, threads, device, dtype    the settings
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import torch
from transformers import StoppingCriteria

from benchmarks.common import Example
from benchmarks.devices import now
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.stream import recording, stream
from lrp4rag.reader import load_reader
from lrp4rag.reader.reader import DTYPES

WAYS = ("generate", "stream", "recording", "stream_segments", "recording_segments")


@dataclass(frozen=True, slots=True)
class Pace:
    """When the tokens of a generation came, in seconds: `first` after its start, the others each `later`."""

    first: float
    later: float
    tokens: int

    @classmethod
    def of(cls, marks: list[float]) -> Pace:
        """From the start's mark and one for each token."""
        tokens = len(marks) - 1
        return cls(marks[1] - marks[0], (marks[-1] - marks[1]) / (tokens - 1), tokens)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / (self.first + (self.tokens - 1) * self.later)


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
    """What every way does: `new` tokens after a prompt, whatever they are (nothing ends them early)."""

    model: Any
    prompt_ids: tuple[int, ...]
    new: int
    segments: int

    @property
    def device(self) -> torch.device:
        return torch.device(self.model.device)

    def weights(self, tangents: int) -> torch.Tensor:
        """One tangent for each of `tangents` equal parts of the prompt, (tangents, n)."""
        part = torch.arange(len(self.prompt_ids)) * tangents // len(self.prompt_ids)
        return (part == torch.arange(tangents)[:, None]).float()

    def generate(self, *criteria: StoppingCriteria) -> Pace:
        ids = torch.tensor([self.prompt_ids], device=self.device)
        clock = Clock(self.device)
        self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=self.new,
            min_new_tokens=self.new,
            do_sample=False,
            pad_token_id=0,
            stopping_criteria=[*criteria, clock],
        )
        return Pace.of(clock.marks)

    def stream(self, tangents: int) -> Pace:
        with relevance_mode(self.model) as flow:
            marks = [now(self.device)]
            weights = self.weights(tangents)
            for _ in stream(flow, self.prompt_ids, weights, max_new_tokens=self.new, stop_ids=()):
                marks.append(now(self.device))
        return Pace.of(marks)

    def recording(self, tangents: int) -> Pace:
        with relevance_mode(self.model) as flow, recording(flow, self.weights(tangents)) as record:
            return self.generate(record)

    def ways(self) -> dict[str, Callable[[], Pace]]:
        return {
            "generate": self.generate,
            "stream": lambda: self.stream(1),
            "recording": lambda: self.recording(1),
            "stream_segments": lambda: self.stream(self.segments),
            "recording_segments": lambda: self.recording(self.segments),
        }


def measure(task: Task, rounds: int) -> dict[str, Any]:
    ways = task.ways()
    for way in ways.values():
        way()  # the first time, kernels are chosen and the patched logits are checked
    paces: dict[str, list[Pace]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            paces[name].append(way())
    plain = paces["generate"]
    result: dict[str, Any] = {}
    for name, own in paces.items():
        pairs = list(zip(own, plain, strict=True))
        rates = [one.tokens_per_second / other.tokens_per_second for one, other in pairs]
        result[f"{name}_over_generate"] = statistics.median(rates)
        result[f"{name}_later_over_generate"] = statistics.median(
            one.later / other.later for one, other in pairs
        )
        result[f"{name}_tokens_per_second"] = statistics.median(one.tokens_per_second for one in own)
        result[f"{name}_first_seconds"] = statistics.median(one.first for one in own)
        result[f"{name}_later_seconds"] = statistics.median(one.later for one in own)
    settings = {"prompt": len(task.prompt_ids), "new": task.new, "segments": task.segments, "rounds": rounds}
    return result | settings | {"threads": torch.get_num_threads(), "device": str(task.device)}


def lines(result: dict[str, Any]) -> list[str]:
    text = [
        f"{result['prompt']} prompt and {result['new']} new tokens, {result['dtype']} on {result['device']}, "
        f"{result['threads']} threads, medians of {result['rounds']} rounds",
        f"{'':20} {'tokens/s':>9} {'/ generate':>11} {'first token':>12} {'later token':>12} "
        f"{'/ generate':>11}",
    ]
    for name in WAYS:
        text.append(
            f"{name:20} {result[f'{name}_tokens_per_second']:9.2f} {result[f'{name}_over_generate']:11.2f} "
            f"{result[f'{name}_first_seconds']:10.3f} s {result[f'{name}_later_seconds'] * 1000:9.1f} ms "
            f"{result[f'{name}_later_over_generate']:11.2f}"
        )
    return text


@click.command(context_settings={"max_content_width": 110})
@click.option("--prompt", default=400, show_default=True, type=click.IntRange(5), help="Prompt tokens.")
@click.option("--new", default=128, show_default=True, type=click.IntRange(2), help="Generated tokens.")
@click.option(
    "--segments", default=5, show_default=True, type=click.IntRange(1), help="Tangents of the second kind."
)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of all ways.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:K.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(list(DTYPES)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(prompt: int, new: int, segments: int, rounds: int, device: str, dtype: str, as_json: bool) -> None:
    """Speed of generating with relevance against plain `generate`, on the default reader.

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
    silence()
    model = load_reader(device=device, dtype=dtype).model.requires_grad_(False)
    example = Example.random(prompt, 1, model.config.vocab_size)
    result = measure(Task(model, example.prompt_ids, new, segments), rounds) | {"dtype": dtype}
    click.echo(json.dumps(result, indent=2) if as_json else "\n".join(lines(result)))


def silence() -> None:
    """No progress bars or advice from transformers between the figures."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
