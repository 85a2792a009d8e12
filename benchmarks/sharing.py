"""Several responses at once against one by one: a shared prompt, and batches, in one run.

    python -m benchmarks.sharing [--json]

Keys of --json (each ratio is taken within rounds; the median is reported):

    separate_over_shared       seconds of one push a response, over those of one `push_shared`
    loop_over_batch            the same for responses with prompts of their own, over `push_batch`
    shared_seconds, separate_seconds, batch_seconds, loop_seconds    what the ratios are made of
    shared_difference, batch_difference    largest difference from the separate pushes, relative to the
                                           largest relevance
    tokens_over_shared         tokens that separate pushes read, over those that the shared one reads:
                               what the first ratio would be if time went with tokens
    responses, prompt, response, rounds, threads, device, dtype    the settings
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

import click
import torch

from benchmarks.common import Example
from benchmarks.devices import seconds
from benchmarks.stream import silence
from lrp4rag.lrp import Flow, relevance_mode
from lrp4rag.reader import load_reader
from lrp4rag.reader.reader import DTYPES


def shared_examples(responses: int, prompt: int, response: int, vocabulary: int) -> list[Example]:
    """Several responses to one prompt."""
    whole = Example.random(prompt, responses * response, vocabulary)
    parts = [whole.response_ids[k * response : (k + 1) * response] for k in range(responses)]
    return [Example(whole.prompt_ids, part) for part in parts]


def own_examples(responses: int, prompt: int, response: int, vocabulary: int) -> list[Example]:
    """As many, each with a prompt of its own, of lengths that differ by up to a fifth."""
    whole = Example.random(responses * prompt, responses * response, vocabulary)
    examples = []
    for k in range(responses):
        end = (k + 1) * prompt - k * prompt // (5 * responses)
        ids = whole.prompt_ids[k * prompt : end]
        examples.append(Example(ids, whole.response_ids[k * response : (k + 1) * response]))
    return examples


def mean_weights(example: Example) -> torch.Tensor:
    n = len(example.prompt_ids)
    return torch.full((1, n), 1 / n)


def difference(some: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    """The largest difference, relative to the largest value."""
    one, other = torch.cat(some, 1), torch.cat(others, 1)
    return float((one - other).abs().max() / other.abs().max())


def measure(
    flow: Flow, shared: list[Example], own: list[Example], rounds: int, device: torch.device
) -> dict[str, Any]:
    weights, own_weights = mean_weights(shared[0]), [mean_weights(example) for example in own]
    ways: dict[str, Callable[[], list[torch.Tensor]]] = {
        "shared": lambda: flow.push_shared(shared, weights),
        "separate": lambda: [flow.push(example, weights) for example in shared],
        "batch": lambda: flow.push_batch(own, own_weights),
        "loop": lambda: [flow.push(*pair) for pair in zip(own, own_weights, strict=True)],
    }
    found = {name: way() for name, way in ways.items()}  # and warm up
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(seconds(way, device))
    pairs = {"separate_over_shared": ("separate", "shared"), "loop_over_batch": ("loop", "batch")}
    ratios = {
        key: statistics.median(a / b for a, b in zip(taken[one], taken[other], strict=True))
        for key, (one, other) in pairs.items()
    }
    n, t, count = len(shared[0].prompt_ids), len(shared[0].response_ids), len(shared)
    return {
        **ratios,
        **{f"{name}_seconds": statistics.median(values) for name, values in taken.items()},
        "shared_difference": difference(found["shared"], found["separate"]),
        "batch_difference": difference(found["batch"], found["loop"]),
        "tokens_over_shared": count * (n + t - 1) / (n + count * (t - 1)),
    }


@click.command(context_settings={"max_content_width": 110})
@click.option("--responses", default=4, show_default=True, type=click.IntRange(2), help="Responses at once.")
@click.option("--prompt", default=500, show_default=True, type=click.IntRange(5), help="Prompt tokens.")
@click.option("--response", default=200, show_default=True, type=click.IntRange(2), help="Tokens of each.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of all ways.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:K.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(list(DTYPES)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(
    responses: int, prompt: int, response: int, rounds: int, device: str, dtype: str, as_json: bool
) -> None:
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
    silence()
    model = load_reader(device=device, dtype=dtype).model.requires_grad_(False)
    sizes = (responses, prompt, response, model.config.vocab_size)
    with relevance_mode(model) as flow:
        result = measure(flow, shared_examples(*sizes), own_examples(*sizes), rounds, torch.device(device))
    result |= {"responses": responses, "prompt": prompt, "response": response, "rounds": rounds}
    result |= {"threads": torch.get_num_threads(), "device": device, "dtype": dtype}
    click.echo(json.dumps(result, indent=2) if as_json else "\n".join(lines(result)))


def lines(result: dict[str, Any]) -> list[str]:
    return [
        f"{result['responses']} responses of {result['response']} tokens, prompts of {result['prompt']}, "
        f"{result['dtype']} on {result['device']}, {result['threads']} threads",
        f"one prompt: separate pushes {result['separate_seconds']:.2f} s, shared "
        f"{result['shared_seconds']:.2f} s: {result['separate_over_shared']:.2f} times faster "
        f"({result['tokens_over_shared']:.2f} times fewer tokens); "
        f"largest difference {result['shared_difference']:.0e}",
        f"own prompts: a loop {result['loop_seconds']:.2f} s, a batch {result['batch_seconds']:.2f} s: "
        f"{result['loop_over_batch']:.2f} times faster; largest difference {result['batch_difference']:.0e}",
    ]


if __name__ == "__main__":
    main()
