"""Qwen3: norms of queries and keys, head by head."""

from lrp4rag.lrp.families.family import Family

QWEN3 = Family(
    name="qwen3",
    architectures=("Qwen3ForCausalLM",),
    query_norm="self_attn.q_norm",
    key_norm="self_attn.k_norm",
)
