"""The model that a benchmark runs, on any device, and a prompt laid out as a verdict's is."""

from __future__ import annotations

from typing import Any

import click
import torch

from benchmarks.harness import Example
from lrp4rag.reader import Encoded, load_reader
from lrp4rag.reader.reader import DTYPES, check_device

DEFAULT = "default"
SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads",
)  # fmt: skip
SHAPES = {
    "smollm2-135m": (49152, 576, 1536, 30, 9, 3),
    "llama-3.2-1b": (128256, 2048, 8192, 16, 32, 8),
    "llama-2-7b": (32000, 4096, 11008, 32, 32, 32),
    "llama-3.1-8b": (128256, 4096, 14336, 32, 32, 8),
    "llama-2-13b": (32000, 5120, 13824, 40, 40, 40),
    "tiny": (300, 64, 160, 2, 4, 2),
}
TIED = ("smollm2-135m", "llama-3.2-1b")
"""Their embeddings are their output's weights."""

# A question of RAGTruth in SmolLM2's chat template: segments in their order, and their share of the prompt.
LAYOUT = ((0, 32), (1, 10), (0, 21), (2, 112), (0, 7), (3, 112), (0, 7), (4, 113), (0, 40))

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
    config = LlamaConfig(**sizes, tie_word_embeddings=shape in TIED)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(DTYPES[dtype])
        with where:
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval().requires_grad_(False)


def laid_out(prompt: int, response: int, vocabulary: int) -> Encoded:
    """Random tokens, in segments as long as RAGTruth's; a letter a token, nine sentences."""
    ids = Example.random(prompt, response, vocabulary)
    named = [segment for segment, length in LAYOUT for _ in range(length)]
    return Encoded(
        prompt_ids=ids.prompt_ids,
        response_ids=ids.response_ids,
        text="x" * prompt,
        response="".join("x" if j % (response // 9) else "\n" for j in range(response)),
        prompt_offsets=tuple((i, i + 1) for i in range(prompt)),
        response_offsets=tuple((j, j + 1) for j in range(response)),
        segments=tuple(named[i * len(named) // prompt] for i in range(prompt)),
        segment_names=("template", "question", "passage 1", "passage 2", "passage 3"),
    )
