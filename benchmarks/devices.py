"""The model that a benchmark runs, on any device; and whether relevance on a device is that on the CPU."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
import torch

from benchmarks import command
from benchmarks.command import Report, benchmark, table
from benchmarks.harness import Example, difference, equal_parts
from lrp4rag.lrp import relevance_mode, stream
from lrp4rag.reader import load_reader
from lrp4rag.reader.reader import DTYPES, check_device
from lrp4rag.util.errors import RelevanceError

DEFAULT = "default"
SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads",
)  # fmt: skip
SHAPES = {
    "llama-3.2-1b": (128256, 2048, 8192, 16, 32, 8),
    "llama-2-7b": (32000, 4096, 11008, 32, 32, 32),
    "llama-3.1-8b": (128256, 4096, 14336, 32, 32, 8),
    "tiny": (300, 64, 160, 2, 4, 2),
}
PROMPT, RESPONSE = 150, 12  # the prompt is longer than one block of attention's queries
TOLERANCE = 1e-3

shape = click.option(
    "--shape",
    default=DEFAULT,
    show_default=True,
    type=click.Choice([DEFAULT, *SHAPES]),
    help="The default reader, or random weights in the shape of a model: they take the same time.",
)


def model_of(shape: str, device: str, dtype: str) -> Any:
    """The model in evaluation mode, without gradients. Random weights are made on the device in their dtype:
    they never exist in float32 or in main memory."""
    from transformers import LlamaConfig, LlamaForCausalLM

    where = torch.device(check_device(device))
    if where.type == "cuda" and where.index is not None:
        torch.cuda.set_device(where)
    if shape == DEFAULT:
        return load_reader(device=device, dtype=dtype).model.requires_grad_(False)
    sizes: dict[str, Any] = dict(zip(SIZES, SHAPES[shape], strict=True))
    sizes |= {"eos_token_id": None, "pad_token_id": None, "max_position_embeddings": 4096}
    config = LlamaConfig(**sizes, tie_word_embeddings=shape == "llama-3.2-1b")
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(DTYPES[dtype])
        with where:
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval().requires_grad_(False)


def quantities(model: Any) -> dict[str, torch.Tensor]:
    """Relevance of one example, by every way through a model."""
    example = Example.random(PROMPT, RESPONSE, model.config.vocab_size)
    other = Example(example.prompt_ids, example.response_ids[::-1][: RESPONSE // 2])
    parts = equal_parts(PROMPT, 3)
    with relevance_mode(model) as flow:
        relevance = {
            "by part": flow.push(example, parts),
            "R_prompt": flow.pull(example, example.mean_response),
            "R*": flow.pull(example),
            "shared prefix": torch.cat(flow.push_shared([example, other], parts), 1),
            "batch": torch.cat(flow.push_batch([example, other], [parts, parts]), 1),
        }
        streamed = list(stream(flow, example.prompt_ids, parts, max_new_tokens=4, stop_ids=()))
    relevance["stream"] = torch.from_numpy(np.stack([token.relevance for token in streamed]))
    return {name: values.cpu() for name, values in relevance.items()}


@benchmark
@shape
@command.device
def main(shape: str, device: str) -> Report:
    """Is relevance on a device what it is on the CPU? R*, prefixes, batches and streams, in float32.

    \b
    Examples:
      python -m benchmarks.devices --device cuda                  the default reader, a minute
      python -m benchmarks.devices --device cuda --shape tiny     random weights, seconds
    """
    where = torch.device(check_device(device))
    model = model_of(shape, "cpu", "float32")
    here, there = quantities(model), quantities(model.to(where))
    differences = {name: difference(there[name], values) for name, values in here.items()}
    wrong = [f"{name} by {value:.0e}" for name, value in differences.items() if not value <= TOLERANCE]
    if wrong:
        raise RelevanceError(f"relevance on {where} differs from the CPU's: {', '.join(wrong)}")
    rows = [(name, f"{value:.0e}") for name, value in differences.items()]
    return {"differences": differences}, table(("", "largest difference from the CPU"), rows)


if __name__ == "__main__":
    main()
