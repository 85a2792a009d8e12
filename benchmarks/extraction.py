"""What extraction costs, and what sharing prompts, one stack for two composites, bfloat16, and leaving out
the tangents of prompt bins that have not begun save.

    python -m benchmarks.extraction [--json]

Keys of --json (each ratio is taken within rounds; the median is reported):

    separate_over_shared     seconds of the signals of each response by itself, over those with one prompt
    two_stacks_over_one      pushing attnlrp's and cp_lrp's tangents one after the other, over one stack
    float32_over_bfloat16    the shared way in both
    all_over_begun           R*, every bin's tangent from the first token, over from where it begins
    signals_seconds, prompt_seconds, sentences_seconds, matrix_seconds    a response, in bfloat16: the signals
                             (prompt shared), R_prompt, a row for each of nine sentences, R* at 64 x 16
    hours_for                hours of 3,356 such responses in one process: signals and R_prompt, sentences, R*
    responses, prompt, response, rounds, threads    the settings
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any
from unittest import mock

import click
import torch

from benchmarks.common import timed
from benchmarks.stream import silence
from lrp4rag.lrp import CP_LRP, Flow, prefix, relevance_mode
from lrp4rag.lrp.attribute import segment_weights
from lrp4rag.lrp.resample import resampling_matrix
from lrp4rag.lrp.signals import ORIGINS, PromptSignals
from lrp4rag.reader import Encoded, Reader, load_reader
from lrp4rag.training.sentences import pull_prompt, pull_sentences

RAGTRUTH_ROWS = 3356
SENTENCES = 9


def responses_to_one_prompt(reader: Reader, count: int, prompt: int, response: int) -> list[Encoded]:
    """Random tokens: three passages, a question and a template; responses of nine sentences."""
    vocabulary = reader.model.config.vocab_size
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (prompt + count * response,), generator=generator).tolist()
    segments = [min(4, 5 * i // prompt) for i in range(prompt)]
    letters = "".join("\n" if j % (response // SENTENCES) == 0 else "x" for j in range(response))
    return [
        Encoded(
            prompt_ids=tuple(ids[:prompt]),
            response_ids=tuple(ids[prompt + k * response : prompt + (k + 1) * response]),
            text="x" * prompt,
            response=letters,
            prompt_offsets=tuple((i, i + 1) for i in range(prompt)),
            response_offsets=tuple((j, j + 1) for j in range(response)),
            segments=tuple(segments),
            segment_names=("template", "question", "passage 1", "passage 2", "passage 3"),
        )
        for k in range(count)
    ]


def signals(flow: Flow, batch: list[Encoded]) -> None:
    prompt = PromptSignals(flow, batch[0], batch[0])
    for one in batch:
        prompt.of(one)


def separately(flow: Flow, batch: list[Encoded]) -> None:
    for one in batch:
        signals(flow, [one])


def matrix(flow: Flow, batch: list[Encoded]) -> None:
    flow.push_shared(batch, torch.from_numpy(resampling_matrix(len(batch[0].prompt_ids), 16)))


def matrix_of_all(flow: Flow, batch: list[Encoded]) -> None:
    with mock.patch.object(prefix, "STAGE", len(batch[0].prompt_ids)):
        matrix(flow, batch)


def two_stacks(reader: Reader, batch: list[Encoded]) -> None:
    for composite, count in (("attnlrp", len(batch[0].segment_names)), ("cp_lrp", len(ORIGINS))):
        with relevance_mode(reader.model, composite) as flow:
            flow.push_shared(batch, segment_weights(batch[0])[:count])


def one_stack(flow: Flow, batch: list[Encoded]) -> None:
    weights = segment_weights(batch[0])
    both = torch.cat([weights, weights[: len(ORIGINS)]])
    composites = [flow.composite] * len(weights) + [CP_LRP] * len(ORIGINS)
    read = flow.prefix(batch[0].prompt_ids, both, composites=composites)
    for one in batch:
        read.push(one.response_ids)


def measure(readers: dict[str, Reader], batch: list[Encoded], rounds: int) -> dict[str, Any]:
    taken: dict[str, list[float]] = {}

    def note(name: str, call: Callable[[], object]) -> None:
        taken.setdefault(name, []).append(timed(call))

    reader = readers["bfloat16"]
    for _ in range(rounds + 1):  # the first to warm up
        with relevance_mode(reader.model) as flow:
            note("shared", lambda: signals(flow, batch))
            note("separate", lambda: separately(flow, batch))
            note("one", lambda: one_stack(flow, batch))
            note("prompt", lambda: pull_prompt(flow, batch[0]))
            note("sentences", lambda: pull_sentences(flow, batch[0]))
            note("matrix", lambda: matrix(flow, batch))
            note("all bins", lambda: matrix_of_all(flow, batch))
        note("two", lambda: two_stacks(reader, batch))
        with relevance_mode(readers["float32"].model) as flow:
            note("float32", lambda: signals(flow, batch))
    median = {name: statistics.median(values[1:]) for name, values in taken.items()}
    ratios = {
        "separate_over_shared": ("separate", "shared"),
        "two_stacks_over_one": ("two", "one"),
        "float32_over_bfloat16": ("float32", "shared"),
        "all_over_begun": ("all bins", "matrix"),
    }
    count = len(batch)
    each = {
        "signals_seconds": median["shared"] / count,
        "prompt_seconds": median["prompt"],
        "sentences_seconds": median["sentences"],
        "matrix_seconds": median["matrix"] / count,
    }
    hours = RAGTRUTH_ROWS / 3600
    return {
        **{
            key: statistics.median(a / b for a, b in zip(taken[one][1:], taken[other][1:], strict=True))
            for key, (one, other) in ratios.items()
        },
        **each,
        "hours_for": {
            "signals and R_prompt": hours * (each["signals_seconds"] + each["prompt_seconds"]),
            "sentences": hours * each["sentences_seconds"],
            "matrix": hours * each["matrix_seconds"],
        },
    }


@click.command(context_settings={"max_content_width": 110})
@click.option("--responses", default=4, show_default=True, type=click.IntRange(2), help="To one prompt.")
@click.option("--prompt", default=454, show_default=True, type=click.IntRange(10), help="Prompt tokens.")
@click.option("--response", default=188, show_default=True, type=click.IntRange(16), help="Tokens of each.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Rounds of all ways.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(responses: int, prompt: int, response: int, rounds: int, as_json: bool) -> None:
    """Extraction of several responses to one prompt on the default reader (lengths: RAGTruth QA's means).

    \b
    Examples:
      python -m benchmarks.extraction                              about five minutes on 2 cores
      python -m benchmarks.extraction --prompt 50 --response 16    a quick look
    """
    silence()
    readers = {dtype: load_reader(dtype=dtype) for dtype in ("bfloat16", "float32")}
    batch = responses_to_one_prompt(readers["float32"], responses, prompt, response)
    result = measure(readers, batch, rounds)
    result |= {"responses": responses, "prompt": prompt, "response": response, "rounds": rounds}
    result |= {"threads": torch.get_num_threads()}
    click.echo(json.dumps(result, indent=2) if as_json else "\n".join(lines(result)))


def lines(result: dict[str, Any]) -> list[str]:
    hours = result["hours_for"]
    return [
        f"{result['responses']} responses of {result['response']} tokens to a prompt of {result['prompt']}, "
        f"{result['threads']} threads",
        f"one prompt shared: {result['separate_over_shared']:.2f} times faster than one by one",
        f"attnlrp and cp_lrp in one stack: {result['two_stacks_over_one']:.2f} times faster than in two",
        f"bfloat16: {result['float32_over_bfloat16']:.2f} times faster than float32",
        f"tangents of R*'s bins from where they begin: {result['all_over_begun']:.2f} times faster than "
        "from the first token",
        f"a response: signals {result['signals_seconds']:.2f} s, R_prompt {result['prompt_seconds']:.2f} s, "
        f"sentences {result['sentences_seconds']:.2f} s, R* at 64 x 16 {result['matrix_seconds']:.2f} s",
        f"{RAGTRUTH_ROWS:,} responses: {hours['signals and R_prompt']:.1f} h for signals and R_prompt, "
        f"{hours['sentences']:.1f} h for sentences, {hours['matrix']:.1f} h for R*",
    ]


if __name__ == "__main__":
    main()
