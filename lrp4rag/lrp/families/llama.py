"""Llama 2 and 3.x, and everything that ships as `LlamaForCausalLM` (SmolLM2, TinyLlama, ...).

Mistral and Qwen2 name their parts alike; Qwen2's biases and Mistral's sliding window need no names.
"""

from lrp4rag.lrp.families.family import Family

LLAMA = Family(name="llama", architectures=("LlamaForCausalLM",))
MISTRAL = Family(name="mistral", architectures=("MistralForCausalLM",))
QWEN2 = Family(name="qwen2", architectures=("Qwen2ForCausalLM",))
