"""A tiny random model of every architecture family, on which each of the family's options matters.

Windows are shorter than the test sequences, soft caps bite, norm weights are not the identity, sliding
and full layers, rotary and rotary-free layers, dense and sparse layers all occur, head sizes are not
hidden size / heads where the family allows it. `build("qwen3")` builds one; options of the
configuration can be changed by name.

A further family is one entry of `FAMILIES`: what the tests need to know of its class stands there.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import nn

WINDOW = 7
FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class TinyFamily:
    """A class of transformers, its norms, and what the tiny configuration sets beyond the common options."""

    model: str
    norm: str  # the class of its norms
    options: dict[str, Any] = field(default_factory=dict)
    offset: float = 0.0  # norms multiply by offset + weight
    embedding_scale: float = 1.0  # standard deviation of the embedding matrix


TINY: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": None,
    "pad_token_id": None,
}

COMMON: dict[str, Any] = TINY | {"rms_norm_eps": 0.01}  # large enough that a wrong one shows

# Qwen: layers from `max_window_layers` on slide; the other layers see everything.
_QWEN_WINDOW = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}

_GEMMA = {
    "num_hidden_layers": 4,
    "head_dim": 16,
    "query_pre_attn_scalar": 24,  # not the head size
    "sliding_window": WINDOW,
    "layer_types": [SLIDING, FULL, SLIDING, FULL],
    "tie_word_embeddings": True,
}

_MOE = {"experts_implementation": "eager"}  # the default, grouped matmul, rejects float64

_QWEN3_MOE = _MOE | {
    "head_dim": 12,
    "use_sliding_window": True,
    "sliding_window": WINDOW,
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "mlp_only_layers": [1],
}

FAMILIES: dict[str, TinyFamily] = {
    "llama": TinyFamily("LlamaForCausalLM", "LlamaRMSNorm"),
    "llama_biased": TinyFamily(
        "LlamaForCausalLM", "LlamaRMSNorm", {"attention_bias": True, "mlp_bias": True}
    ),
    "mistral": TinyFamily("MistralForCausalLM", "MistralRMSNorm", {"sliding_window": WINDOW, "head_dim": 12}),
    "qwen2": TinyFamily("Qwen2ForCausalLM", "Qwen2RMSNorm", _QWEN_WINDOW),
    "qwen3": TinyFamily("Qwen3ForCausalLM", "Qwen3RMSNorm", _QWEN_WINDOW | {"head_dim": 12}),
    "phi3": TinyFamily(
        "Phi3ForCausalLM",
        "Phi3RMSNorm",
        {
            "sliding_window": WINDOW,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        },
    ),
    "gemma2": TinyFamily(
        "Gemma2ForCausalLM",
        "Gemma2RMSNorm",
        _GEMMA | {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0},
        offset=1.0,
        embedding_scale=0.35,
    ),
    "gemma3": TinyFamily(
        "Gemma3ForCausalLM",
        "Gemma3RMSNorm",
        _GEMMA
        | {
            "rope_parameters": {
                SLIDING: {"rope_type": "default", "rope_theta": 100.0},
                FULL: {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
            }
        },
        offset=1.0,
        embedding_scale=0.35,
    ),
    "smollm3": TinyFamily(
        "SmolLM3ForCausalLM",
        "SmolLM3RMSNorm",
        {
            "num_hidden_layers": 4,
            "no_rope_layers": [1, 0, 1, 0],  # 1: with rotary; every pair of rotary and window occurs
            "layer_types": [FULL, SLIDING, SLIDING, FULL],
            "use_sliding_window": True,
            "sliding_window": WINDOW,
            "tie_word_embeddings": True,
        },
        embedding_scale=0.35,
    ),
    "qwen3_moe": TinyFamily("Qwen3MoeForCausalLM", "Qwen3MoeRMSNorm", _QWEN3_MOE),
    "qwen3_moe_unnormalised": TinyFamily(
        "Qwen3MoeForCausalLM", "Qwen3MoeRMSNorm", _QWEN3_MOE | {"norm_topk_prob": False}
    ),
    "mixtral": TinyFamily(
        "MixtralForCausalLM",
        "MixtralRMSNorm",
        _MOE | {"sliding_window": WINDOW, "num_local_experts": 5, "num_experts_per_tok": 2},
    ),
}


def family_of(model: Any) -> TinyFamily:
    """Return the entry of a model's class."""
    return next(family for family in FAMILIES.values() if family.model == type(model).__name__)


def randomise(model: nn.Module, family: TinyFamily, seed: int = 0, *, others: float = 1.5) -> None:
    """Fill the model with random weights; `others` is the scale of what matrices put out."""
    generator = torch.Generator().manual_seed(seed)

    def noise(like: torch.Tensor) -> torch.Tensor:
        return torch.randn(like.shape, generator=generator, dtype=torch.float64)

    norms = {id(module.weight) for module in model.modules() if type(module).__name__ == family.norm}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if id(weight) in norms:  # not the identity, or a forgotten norm weight goes unseen
                weight.copy_(1 - family.offset + 0.3 * noise(weight))
            elif name.endswith("bias"):
                weight.copy_(0.5 * noise(weight))
            elif "embed_tokens" in name:
                weight.copy_(family.embedding_scale * noise(weight))
            else:  # experts are 3-D: the last dimension is what a matrix reads
                weight.copy_(others * noise(weight) / weight.shape[-1] ** 0.5)


def build(name: str, dtype: torch.dtype = torch.float64, seed: int = 0, **config_changes: Any) -> Any:
    """A model of the family, in evaluation mode, with its own configuration object."""
    family = FAMILIES[name]
    # A copy, since configurations keep and complete the lists and dictionaries they are given.
    options = copy.deepcopy(COMMON | family.options | config_changes)
    model_class = getattr(transformers, family.model)
    model = model_class(model_class.config_class(**options)).to(dtype).eval()
    # Such that non-linearities are far from linear, and float32 norms agree to 1e-6.
    randomise(model, family, seed, others=1.2)
    return model
