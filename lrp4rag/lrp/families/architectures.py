"""The supported architectures: where each keeps its parts, as far as it differs from Llama."""

from dataclasses import replace

from lrp4rag.lrp.families.family import Family

# Llama 2 and 3.x, and all that ships as `LlamaForCausalLM` (SmolLM2, TinyLlama, ...). Mistral and Qwen2
# name their parts alike; Qwen2's biases and Mistral's sliding window need no names.
LLAMA = Family(name="llama", architectures=("LlamaForCausalLM",))
MISTRAL = Family(name="mistral", architectures=("MistralForCausalLM",))
QWEN2 = Family(name="qwen2", architectures=("Qwen2ForCausalLM",))

# Norms of queries and keys, head by head.
QWEN3 = Family(
    name="qwen3",
    architectures=("Qwen3ForCausalLM",),
    query_norm="self_attn.q_norm",
    key_norm="self_attn.k_norm",
)

# One fused layer for query, key and value, another for gate and up; also Phi-4.
PHI3 = Family(
    name="phi3",
    architectures=("Phi3ForCausalLM",),
    fused_qkv="self_attn.qkv_proj",
    fused_gate_up="mlp.gate_up_proj",
)

# Norms before and after attention and MLP, whose weights are an offset from 1. Gemma 2 soft-caps scores and
# logits; Gemma 3 (text) normalises queries and keys instead.
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

# Some layers do not turn queries and keys by their positions.
SMOLLM3 = Family(name="smollm3", architectures=("SmolLM3ForCausalLM",), uses_rotary="self_attn.use_rope")

# Mixtures of experts; Qwen3-MoE with the norms of Qwen3.
MIXTRAL = Family(
    name="mixtral", architectures=("MixtralForCausalLM",), router="mlp.gate", experts="mlp.experts"
)
QWEN3_MOE = replace(
    QWEN3,
    name="qwen3_moe",
    architectures=("Qwen3MoeForCausalLM",),
    router="mlp.gate",
    experts="mlp.experts",
)

FAMILIES: tuple[Family, ...] = (
    LLAMA,
    MISTRAL,
    QWEN2,
    QWEN3,
    PHI3,
    GEMMA2,
    GEMMA3,
    SMOLLM3,
    MIXTRAL,
    QWEN3_MOE,
)
