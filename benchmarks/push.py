"""Time and memory of push and pull against plain forward and backward passes, in one run.

    python benchmarks/push.py [--json]

Everything runs interleaved on the default reader in float32, so that the ratios hold on a noisy
machine. Keys of --json:

    push_over_forward          R_response of all t tokens, over the fastest plain Hugging Face forward
                               (sdpa, logits of the response rows only)
    backwards_over_push        t one-token backward passes (one graph kept, sdpa, gradients of the
                               embeddings only), over that push
    pull_row_over_forward      one row of the full R*, on average, over the plain forward
    peak_memory_over_forward   peak memory of a process that pushes, over one that runs the forward
    (and *_seconds, *_bytes, prompt, response, threads: what the ratios are made of)
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this file is run by its path

from benchmarks.common import Example, forget_peak, peak_resident, timed
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.propagate import PULL_CHUNK
from lrp4rag.reader import load_reader


def forward(model: Any, example: Example) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model(
            example.inputs, use_cache=False, logits_to_keep=len(example.response_ids)
        ).logits
    return logits


def push(model: Any, example: Example) -> torch.Tensor:
    n = len(example.prompt_ids)
    with relevance_mode(model) as flow:
        return flow.push(example, torch.full((1, n), 1 / n))


def backward_seconds(model: Any, example: Example, rows: int) -> float:
    """Seconds of one backward pass of one response token's logit, on a graph that is kept."""
    embeddings = model.get_input_embeddings()(example.inputs).detach().requires_grad_()
    kept = len(example.response_ids)
    logits = model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=kept).logits[0]
    picks = [round(k * (kept - 1) / (rows - 1)) for k in range(rows)]

    def one(j: int) -> None:
        torch.autograd.grad(logits[j, example.response_ids[j]], embeddings, retain_graph=True)

    one(picks[0])
    return statistics.mean(timed(lambda j=j: one(j)) for j in picks)  # type: ignore[misc]


def pull_seconds(model: Any, example: Example, whole: bool) -> float:
    """Seconds a row of the full R*: of all rows, or of chunks spread evenly over the response."""
    t = len(example.response_ids)
    starts = range(0, t, PULL_CHUNK)
    chosen = starts if whole else starts[:: max(1, len(starts) // 5)]
    with relevance_mode(model) as flow:
        eye = torch.eye(t)
        flow.pull(example, eye[:1])  # the replay itself is one push, not a row
        seconds = [timed(lambda s=s: flow.pull(example, eye[s : s + PULL_CHUNK])) for s in chosen]  # type: ignore[misc]
        rows = sum(len(eye[s : s + PULL_CHUNK]) for s in chosen)
    return sum(seconds) / rows


def peak_bytes(what: str, prompt: int, response: int) -> int:
    """Peak resident memory of a fresh process while it does `what` once, its weights included."""
    command = [sys.executable, __file__, "--prompt", str(prompt), "--response", str(response)]
    output = subprocess.run([*command, "--only", what], check=True, capture_output=True, text=True)
    return int(output.stdout)


def measure(prompt: int, response: int, rounds: int, whole: bool) -> dict[str, float]:
    model = load_reader().model.requires_grad_(False)
    example = Example.random(prompt, response, model.config.vocab_size)
    forward(model, example)
    push(model, example)
    pairs = []
    for _ in range(rounds):
        before, pushed = timed(lambda: forward(model, example)), timed(lambda: push(model, example))
        pairs.append(((before + timed(lambda: forward(model, example))) / 2, pushed))
    plain = statistics.median(pair[0] for pair in pairs)
    pushed = statistics.median(pair[1] for pair in pairs)
    back = backward_seconds(model, example, rows=7)
    near = statistics.median(timed(lambda: forward(model, example)) for _ in range(3))
    pulled = pull_seconds(model, example, whole)
    near = (near + statistics.median(timed(lambda: forward(model, example)) for _ in range(3))) / 2
    memory = {what: peak_bytes(what, prompt, response) for what in ("forward", "push")}
    return {
        "push_over_forward": statistics.median(push / plain for plain, push in pairs),
        "backwards_over_push": back * response / pushed,
        "pull_row_over_forward": pulled / near,
        "peak_memory_over_forward": memory["push"] / memory["forward"],
        "forward_seconds": plain,
        "push_seconds": pushed,
        "backward_seconds": back,
        "pull_row_seconds": pulled,
        "forward_peak_bytes": memory["forward"],
        "push_peak_bytes": memory["push"],
        "prompt": prompt,
        "response": response,
        "threads": torch.get_num_threads(),
    }


@click.command()
@click.option("--prompt", default=400, show_default=True, help="Prompt tokens.")
@click.option("--response", default=240, show_default=True, help="Response tokens.")
@click.option("--rounds", default=5, show_default=True, help="Rounds of forward and push.")
@click.option("--full", is_flag=True, help="Pull every row of R*, not a sample of 40 to 48 rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
@click.option("--only", type=click.Choice(["forward", "push"]), hidden=True)
def main(prompt: int, response: int, rounds: int, full: bool, as_json: bool, only: str | None) -> None:
    """Time and memory of push and pull against plain passes of the default reader (float32)."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if only is not None:
        model = load_reader().model
        example = Example.random(prompt, response, model.config.vocab_size)
        forget_peak()
        {"forward": forward, "push": push}[only](model, example)
        click.echo(peak_resident())
        return
    result = measure(prompt, response, rounds, full)
    if as_json:
        click.echo(json.dumps(result, indent=2))
        return
    click.echo(f"{prompt} prompt and {response} response tokens, float32, {result['threads']} threads")
    click.echo(
        f"plain forward                {result['forward_seconds']:.2f} s, "
        f"peak {result['forward_peak_bytes'] / 1e9:.2f} GB\n"
        f"R_response by one push       {result['push_seconds']:.2f} s, "
        f"peak {result['push_peak_bytes'] / 1e9:.2f} GB\n"
        f"push / forward               {result['push_over_forward']:.2f}\n"
        f"{response} backwards / push        {result['backwards_over_push']:.0f}\n"
        f"a row of R* / forward        {result['pull_row_over_forward']:.2f}\n"
        f"peak memory / forward's      {result['peak_memory_over_forward']:.2f}"
    )


if __name__ == "__main__":
    main()
