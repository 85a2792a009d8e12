"""Several responses at once against one by one: a shared prompt, and batches, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks import command
from benchmarks.command import Result, benchmark, count
from benchmarks.harness import Example, difference, in_rounds, ratio, seconds
from benchmarks.shapes import DEFAULT, model_of
from lrp4rag.lrp import Flow, relevance_mode


def measure(flow: Flow, shared: list[Example], separate: list[Example], rounds: int) -> dict[str, Any]:
    tangents = [example.mean_prompt for example in separate]
    ways: dict[str, Callable[[], list[torch.Tensor]]] = {
        "shared": lambda: flow.push_shared(shared, shared[0].mean_prompt),
        "separate": lambda: [flow.push(example, example.mean_prompt) for example in shared],
        "batch": lambda: flow.push_batch(separate, tangents),
        "loop": lambda: [flow.push(example, example.mean_prompt) for example in separate],
    }
    relevance = {name: way() for name, way in ways.items()}
    device = torch.device(flow.model.device)
    clocked = {name: partial(seconds, way, device) for name, way in ways.items()}
    taken = in_rounds(clocked, rounds)
    n, t, many = len(shared[0].prompt_ids), len(shared[0].response_ids), len(shared)
    return {
        "separate_over_shared": ratio(taken["separate"], taken["shared"]),
        "loop_over_batch": ratio(taken["loop"], taken["batch"]),
        **{f"{name}_seconds": statistics.median(taken[name]) for name in ways},
        "shared_difference": difference(
            torch.cat(relevance["shared"], 1), torch.cat(relevance["separate"], 1)
        ),
        "batch_difference": difference(torch.cat(relevance["batch"], 1), torch.cat(relevance["loop"], 1)),
        "tokens_over_shared": many * (n + t - 1) / (n + many * (t - 1)),
    }


@benchmark
@count("--responses", 4, "Responses at once.", least=2)
@count("--prompt", 500, "Prompt tokens.", least=5)
@count("--response", 200, "Tokens of each response.", least=2)
@command.rounds(default=5)
@command.device
@command.dtype
def main(responses: int, prompt: int, response: int, rounds: int, device: str, dtype: str) -> Result:
    """R_response of several responses at once, against one push for each, on the default reader.

    \b
    push_shared reads a prompt once for all its responses (sampled answers to one question): the gain is
    what of the tokens was the prompt. push_batch puts examples with prompts of their own into one pass:
    worth it where one example does not fill the device, which a CPU's cores are with any.

    \b
    Examples:
      python -m benchmarks.sharing                                 about two minutes on 2 cores
      python -m benchmarks.sharing --prompt 50 --response 10       a quick look
    """
    model = model_of(DEFAULT, device, dtype)
    # Several responses to one prompt; and as many, each with its prompt, whose lengths differ by a fifth.
    examples = [Example.random(prompt, response, model.config.vocab_size, seed) for seed in range(responses)]
    shared = [Example(examples[0].prompt_ids, one.response_ids) for one in examples]
    lengths = [prompt - k * prompt // (5 * responses) for k in range(responses)]
    separate = [
        Example(one.prompt_ids[:n], one.response_ids) for one, n in zip(examples, lengths, strict=True)
    ]
    with relevance_mode(model) as flow:
        return measure(flow, shared, separate, rounds)


if __name__ == "__main__":
    main()
