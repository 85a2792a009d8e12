"""Models of known shapes with random weights: time does not depend on the values."""

from __future__ import annotations

from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES: dict[str, dict[str, Any]] = {
    "llama-2-7b": {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
    },
    # As deep as the other, so that a step launches as many kernels, and too small for them to take time.
    "launches": {
        "vocab_size": 300,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 32,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 4096,
    },
    "tiny": {
        "vocab_size": 300,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
    },
}


def random_model(shape: str, device: torch.device, dtype: torch.dtype) -> Any:
    """Built on the device in its dtype: the weights never exist in float32 or in main memory."""
    config = LlamaConfig(**SHAPES[shape], tie_word_embeddings=False, eos_token_id=None, pad_token_id=None)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        with torch.device(device):
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval().requires_grad_(False)


def weights_read(model: Any) -> int:
    """Bytes of the weights that a decoding step reads: all but the embeddings, of which it reads a row."""
    table = model.get_input_embeddings().weight
    tied = model.get_output_embeddings().weight is table
    total: int = sum(one.numel() * one.element_size() for one in model.parameters())
    return total if tied else total - table.numel() * table.element_size()
