"""A tiny random model of every architecture family, on which each of the family's options matters.

Windows are shorter than the test sequences, soft caps bite, norm weights are not the identity, sliding
and full layers, rotary and rotary-free layers, dense and sparse layers all occur, head sizes are not
hidden size / heads where the family allows it. `build("qwen3")` builds one; options of the
configuration can be changed by name.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

from tests.tiny import TINY, randomise

WINDOW = 7
FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class TinyFamily:
    """A class of transformers, and what the tiny configuration sets beyond the common options."""

    model: str
    options: dict[str, Any] = field(default_factory=dict)
    embedding_scale: float = 1.0  # standard deviation of the embedding matrix


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
    "llama": TinyFamily("LlamaForCausalLM"),
    "mistral": TinyFamily("MistralForCausalLM", {"sliding_window": WINDOW, "head_dim": 12}),
    "qwen2": TinyFamily("Qwen2ForCausalLM", _QWEN_WINDOW),
    "qwen3": TinyFamily("Qwen3ForCausalLM", _QWEN_WINDOW | {"head_dim": 12}),
    "phi3": TinyFamily(
        "Phi3ForCausalLM",
        {
            "sliding_window": WINDOW,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        },
    ),
    "gemma2": TinyFamily(
        "Gemma2ForCausalLM",
        _GEMMA | {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0},
        embedding_scale=0.35,
    ),
    "gemma3": TinyFamily(
        "Gemma3ForCausalLM",
        _GEMMA
        | {
            "rope_parameters": {
                SLIDING: {"rope_type": "default", "rope_theta": 100.0},
                FULL: {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
            }
        },
        embedding_scale=0.35,
    ),
    "smollm3": TinyFamily(
        "SmolLM3ForCausalLM",
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
    "qwen3_moe": TinyFamily("Qwen3MoeForCausalLM", _QWEN3_MOE),
    "qwen3_moe_unnormalised": TinyFamily("Qwen3MoeForCausalLM", _QWEN3_MOE | {"norm_topk_prob": False}),
    "mixtral": TinyFamily(
        "MixtralForCausalLM",
        _MOE | {"sliding_window": WINDOW, "num_local_experts": 5, "num_experts_per_tok": 2},
    ),
}


def build(name: str, dtype: torch.dtype = torch.float64, seed: int = 0, **config_changes: Any) -> Any:
    """A model of the family, in evaluation mode, with its own configuration object."""
    family = FAMILIES[name]
    # A copy, since configurations keep and complete the lists and dictionaries they are given.
    options = copy.deepcopy(COMMON | family.options | config_changes)
    model_class = getattr(transformers, family.model)
    model = model_class(model_class.config_class(**options)).to(dtype).eval()
    # Such that non-linearities are far from linear, and float32 norms agree to 1e-6.
    randomise(model, seed, embeddings=family.embedding_scale, others=1.2)
    return model
