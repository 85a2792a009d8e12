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
    responses, prompt, response, rounds, threads, device    the settings
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import torch

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table, threads_and_device
from benchmarks.harness import Example, in_rounds, ratio, seconds
from lrp4rag.lrp import CP_LRP, Flow, prefix, relevance_mode
from lrp4rag.lrp.attribute import segment_weights
from lrp4rag.lrp.resample import resampling_matrix
from lrp4rag.lrp.signals import ORIGINS, PromptSignals
from lrp4rag.reader import Encoded, Reader, load_reader
from lrp4rag.training.sentences import pull_prompt, pull_sentences

RAGTRUTH_ROWS = 3356
SENTENCES = 9
RATIOS = {
    "separate_over_shared": ("separate", "shared"),
    "two_stacks_over_one": ("two", "one"),
    "float32_over_bfloat16": ("float32", "shared"),
    "all_over_begun": ("all bins", "matrix"),
}


def responses_to_one_prompt(reader: Reader, count: int, prompt: int, response: int) -> list[Encoded]:
    """Random tokens: three passages, a question and a template; responses of nine sentences."""
    ids = Example.random(prompt, count * response, reader.model.config.vocab_size)
    letters = "".join("\n" if j % (response // SENTENCES) == 0 else "x" for j in range(response))
    return [
        Encoded(
            prompt_ids=ids.prompt_ids,
            response_ids=ids.response_ids[k * response : (k + 1) * response],
            text="x" * prompt,
            response=letters,
            prompt_offsets=tuple((i, i + 1) for i in range(prompt)),
            response_offsets=tuple((j, j + 1) for j in range(response)),
            segments=tuple(min(4, 5 * i // prompt) for i in range(prompt)),
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


def one_stack(flow: Flow, batch: list[Encoded]) -> None:
    weights = segment_weights(batch[0])
    both = torch.cat([weights, weights[: len(ORIGINS)]])
    composites = [flow.composite] * len(weights) + [CP_LRP] * len(ORIGINS)
    read = flow.prefix(batch[0].prompt_ids, both, composites=composites)
    for one in batch:
        read.push(one.response_ids)


def two_stacks(reader: Reader, batch: list[Encoded]) -> None:
    for composite, tangents in (("attnlrp", len(batch[0].segment_names)), ("cp_lrp", len(ORIGINS))):
        with relevance_mode(reader.model, composite) as flow:
            flow.push_shared(batch, segment_weights(batch[0])[:tangents])


def measure(readers: dict[str, Reader], batch: list[Encoded], rounds: int) -> dict[str, Any]:
    def clocked(dtype: str, call: Callable[[Flow, list[Encoded]], object]) -> float:
        with relevance_mode(readers[dtype].model) as flow:
            return seconds(lambda: call(flow, batch))

    calls = {
        "shared": signals,
        "separate": separately,
        "one": one_stack,
        "prompt": lambda flow, batch: pull_prompt(flow, batch[0]),
        "sentences": lambda flow, batch: pull_sentences(flow, batch[0]),
        "matrix": matrix,
        "all bins": matrix_of_all,
    }
    ways: dict[str, Callable[[], float]] = {
        name: partial(clocked, "bfloat16", call) for name, call in calls.items()
    }
    ways["two"] = lambda: seconds(lambda: two_stacks(readers["bfloat16"], batch))
    ways["float32"] = partial(clocked, "float32", signals)
    taken = in_rounds(ways, rounds)
    median = {name: statistics.median(values) for name, values in taken.items()}
    each = {
        "signals_seconds": median["shared"] / len(batch),
        "prompt_seconds": median["prompt"],
        "sentences_seconds": median["sentences"],
        "matrix_seconds": median["matrix"] / len(batch),
    }
    hours = RAGTRUTH_ROWS / 3600
    return {
        **{key: ratio(taken[one], taken[other]) for key, (one, other) in RATIOS.items()},
        **each,
        "hours_for": {
            "signals and R_prompt": hours * (each["signals_seconds"] + each["prompt_seconds"]),
            "sentences": hours * each["sentences_seconds"],
            "matrix": hours * each["matrix_seconds"],
        },
    }


@benchmark
@count("--responses", 4, "Responses to one prompt.", least=2)
@count("--prompt", 454, "Prompt tokens.", least=10)
@count("--response", 188, "Tokens of each response.", least=16)
@command.rounds(default=3)
def main(responses: int, prompt: int, response: int, rounds: int) -> Report:
    """Extraction of several responses to one prompt on the default reader (lengths: RAGTruth QA's means).

    \b
    Examples:
      python -m benchmarks.extraction                              about five minutes on 2 cores
      python -m benchmarks.extraction --prompt 50 --response 16    a quick look
    """
    readers = {dtype: load_reader(dtype=dtype) for dtype in ("bfloat16", "float32")}
    batch = responses_to_one_prompt(readers["float32"], responses, prompt, response)
    result = measure(readers, batch, rounds)
    result |= {"responses": responses, "prompt": prompt, "response": response, "rounds": rounds}
    result |= threads_and_device()
    rows = [
        *((name, f"{result[name]:.2f}") for name in RATIOS),
        *((name, f"{result[name]:.2f} s") for name in result if name.endswith("_seconds")),
        *((f"{RAGTRUTH_ROWS:,} responses: {what}", f"{time:.1f} h") for what, time in result["hours_for"].items()),
    ]
    about = f"{responses} responses of {response} tokens to a prompt of {prompt}, {result['threads']} threads"
    return result, [about, "", *table(("", "median"), rows)]


if __name__ == "__main__":
    main()
