"""The tiny models test something: their logits are finite and depend on every option of their family."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.lrp.checks import BIASED, families, logits_of, model_of
from tests.lrp.tiny_families import FULL, SLIDING, WINDOW, build
from tests.tiny import random_tokens

IDS = random_tokens(20, 1).ids
ROPE = {"rope_type": "default", "rope_theta": 100.0}

# Same weights, other behaviour: each change must be seen in the logits.
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"rope_parameters": ROPE}),
    ("mistral", {"sliding_window": None}),
    ("qwen2", {"use_sliding_window": False}),
    ("qwen2", {"max_window_layers": 1}),
    ("qwen3", {"use_sliding_window": False}),
    ("phi3", {"sliding_window": None}),
    ("phi3", {"rope_parameters": ROPE | {"rope_theta": 10000.0, "partial_rotary_factor": 1.0}}),
    ("gemma2", {"attn_logit_softcapping": None}),
    ("gemma2", {"final_logit_softcapping": None}),
    ("gemma2", {"sliding_window": 64}),
    ("gemma2", {"query_pre_attn_scalar": 16}),
    ("gemma2", {"layer_types": [FULL, SLIDING, FULL, SLIDING]}),
    ("gemma2", {"hidden_activation": "silu"}),
    ("gemma3", {"sliding_window": 64}),
    ("gemma3", {"final_logit_softcapping": 5.0}),
    ("gemma3", {"layer_types": [FULL, SLIDING, FULL, SLIDING]}),
    ("gemma3", {"rope_parameters": {SLIDING: ROPE, FULL: ROPE}}),
    ("smollm3", {"no_rope_layers": [1, 1, 1, 1]}),
    ("smollm3", {"use_sliding_window": False, "layer_types": [FULL] * 4}),
    ("qwen3_moe", {"use_sliding_window": False}),
    ("qwen3_moe", {"norm_topk_prob": False}),
    ("qwen3_moe", {"num_experts_per_tok": 2}),
    ("mixtral", {"sliding_window": None}),
    ("mixtral", {"num_experts_per_tok": 3}),
]


@cache
def own_logits(name: str) -> Tensor:
    return logits_of(model_of(name), IDS)


@families
def test_logits_are_finite_and_in_float64_and_the_window_is_short(name: str) -> None:
    logits, model = own_logits(name), model_of(name)
    assert logits.dtype == torch.float64
    assert logits.isfinite().all()
    assert logits.std() > 1
    assert getattr(model.config, "sliding_window", WINDOW) == WINDOW < IDS.shape[1]
    assert (name in BIASED) == any("bias" in key for key, _ in model.named_parameters())


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=[f"{name}-{'-'.join(c)}" for name, c in CHANGES])
def test_every_option_changes_the_logits(name: str, change: dict[str, Any]) -> None:
    difference = (logits_of(build(name, **change), IDS) - own_logits(name)).abs()
    assert difference.max() > 0.1


@pytest.mark.parametrize("name", ["qwen3_moe", "mixtral"])
def test_experts_differ_and_all_are_used(name: str) -> None:
    model = model_of(name)
    used: list[Tensor] = []
    block = model.model.layers[0].mlp
    hook = block.gate.register_forward_hook(lambda _module, _inputs, output: used.append(output[2]))
    logits_of(model, IDS)
    hook.remove()
    assert len(used[0].unique()) == model.config.num_experts
    weights = block.experts.gate_up_proj.flatten(1)
    assert torch.cdist(weights, weights).fill_diagonal_(torch.inf).min() > 1
