"""Gemma 2 and 3 (text): norms before and after attention and MLP, whose weights are an offset from 1.

Gemma 2 soft-caps its scores and logits; Gemma 3 normalises queries and keys instead.
"""

from dataclasses import replace

from lrp4rag.lrp.families.family import Family

GEMMA2 = Family(
    name="gemma2",
    architectures=("Gemma2ForCausalLM",),
    attention_after="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_after="post_feedforward_layernorm",
    norm_offset=1.0,
)
GEMMA3 = replace(
    GEMMA2,
    name="gemma3",
    architectures=("Gemma3ForCausalLM",),
    query_norm="self_attn.q_norm",
    key_norm="self_attn.k_norm",
    heads_first=True,
)
