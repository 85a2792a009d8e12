"""The model that a benchmark runs: the default reader, or random weights in a known shape, on any device."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import click
import torch

from lrp4rag.reader import load_reader
from lrp4rag.reader.reader import DTYPES, check_device

DEFAULT = "default"
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
HEADS = ("num_attention_heads", "num_key_value_heads")
SHAPES = {
    "llama-2-7b": (32000, 4096, 11008, 32, 32, 32),
    "tiny": (300, 64, 160, 2, 4, 2),
}

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
    sizes: dict[str, Any] = dict(zip((*SIZES, *HEADS), SHAPES[shape], strict=True))
    sizes |= {"eos_token_id": None, "pad_token_id": None, "max_position_embeddings": 4096}
    config = LlamaConfig(**sizes, tie_word_embeddings=False)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(DTYPES[dtype])
        with where:
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval().requires_grad_(False)


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model or platform.processor() or platform.machine()
