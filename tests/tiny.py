"""Tiny random models and tokenizers: everything the tests need without a download."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lrp4rag.example import Example
from tests.lrp.tiny_families import FAMILIES, TINY, randomise

BOS, START, END = "<s>", "<|im_start|>", "<|im_end|>"
CONTROLS = (BOS, START, END)

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# What the tokenizer learns its merges from; any English text does.
CORPUS = [
    "Briefly answer the following question: output: passage 1: passage 2: passage 3:",
    "Bear in mind that your response should be strictly based on the following passages:",
    "the bridge was opened in the year and the river runs under the old stone bridge",
    "user assistant system the question the answer the passages do not contain the information",
]


@dataclass(frozen=True)
class Tokens:
    """What propagation needs of an encoded example."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]

    @property
    def ids(self) -> torch.Tensor:
        """What the model is given: the last response token predicts nothing that is explained."""
        return torch.tensor([[*self.prompt_ids, *self.response_ids[:-1]]])


def random_tokens(n: int, t: int, vocabulary: int = 97, seed: int = 0) -> Tokens:
    generator = torch.Generator().manual_seed(1000 * n + t + seed)
    ids = torch.randint(vocabulary, (n + t,), generator=generator).tolist()
    return Tokens(tuple(ids[:n]), tuple(ids[n:]))


def tiny_config(**changes: Any) -> LlamaConfig:
    return LlamaConfig(**(TINY | changes))


def tiny_llama(
    config: LlamaConfig | None = None,
    *,
    biased: bool = False,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> LlamaForCausalLM:
    """A Llama whose weights are large enough that every non-linearity is far from linear."""
    config = config or tiny_config(attention_bias=biased, mlp_bias=biased)
    model = LlamaForCausalLM(config).to(dtype).eval()
    randomise(model, FAMILIES["llama"], seed)
    return model


def tiny_tokenizer(
    chat_template: str | None = CHATML,
    *,
    bos: bool = False,
    vocabulary: int = 420,
    extra: tuple[str, ...] = (),
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with control tokens; `bos`: it writes one, as Llama's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[*CONTROLS, *extra],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=END,
        pad_token=END,
        additional_special_tokens=[START, *extra],
        chat_template=chat_template,
    )


def save_tiny_reader(
    folder: Path,
    *,
    tokenizer: PreTrainedTokenizerFast | None = None,
    seed: int = 0,
    window: int = 512,
    **config: Any,
) -> Path:
    """A model folder that `load_reader` takes: two layers, float32."""
    tokenizer = tokenizer or tiny_tokenizer()
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": 2,
        "max_position_embeddings": window,
        "eos_token_id": tokenizer.eos_token_id,
    }
    model = tiny_llama(tiny_config(**(shape | config)), dtype=torch.float32, seed=seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def bridge_example(k: int = 0, **changes: Any) -> Example:
    """A small example; `k` makes it another one."""
    fields: dict[str, Any] = {
        "question": f"When was bridge {k} opened?",
        "passages": [
            f"The old stone bridge {k} was opened in {1900 + k}.",
            "The river runs under it to the sea.",
            f"A café №{k} stands near the bridge.",
        ],
        "response": f"It was opened in {1900 + k}.",
        "id": f"bridge-{k}",
    }
    return Example(**(fields | changes))


def save_tiny_gguf(path: Path, seed: int = 0) -> Path:
    """A tiny Llama with its tokenizer as a GGUF file, float32."""
    import gguf

    tokenizer = tiny_tokenizer()
    config = tiny_config(
        vocab_size=len(tokenizer), num_hidden_layers=1, hidden_size=32, num_attention_heads=4
    )
    weights = tiny_llama(config, dtype=torch.float32, seed=seed).state_dict()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    backend = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in CONTROLS else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in backend["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(CHATML)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weight in weights.items():
        count = next((heads[part] for part in heads if part in name), None)
        # GGUF holds the two halves of what the rotary embedding turns interleaved.
        stored = (
            weight if count is None else weight.unflatten(0, (count, 2, -1)).transpose(1, 2).flatten(0, 2)
        )
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), stored.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
