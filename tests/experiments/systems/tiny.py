"""Tiny random BERT encoders, and stand-ins whose numbers are set by hand."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("the", "a", "bridge", "river", "stone", "old", "red", "blue", "dragon", "burned", "is", "was", "it")


def tiny_wordpiece(longest: int = 512) -> PreTrainedTokenizerFast:
    """Words of `WORDS` are tokens; others fall into characters."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*SPECIAL, *WORDS, *characters, *(f"##{one}" for one in characters)]
    vocabulary = {piece: k for k, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=longest,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def tiny_config(**changes: Any) -> BertConfig:
    defaults: dict[str, Any] = {
        "vocab_size": len(tiny_wordpiece()),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "initializer_range": 0.3,  # large enough that another text gives other numbers
    }
    return BertConfig(**(defaults | changes))


def save_tiny_encoder(folder: Path, kind: Any = BertModel, *, seed: int = 0, **config: Any) -> str:
    """A folder that `load_encoder` takes, as safetensors."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        kind(tiny_config(**config)).save_pretrained(folder)
    tiny_wordpiece().save_pretrained(folder)
    return str(folder)


def save_tiny_classifier(folder: Path, *labels: str, seed: int = 0) -> str:
    """Of sequences; without `labels` they have transformers' own names."""
    names: dict[str, Any] = {"id2label": dict(enumerate(labels))} if labels else {"num_labels": 2}
    return save_tiny_encoder(folder, BertForSequenceClassification, seed=seed, **names)


def save_tiny_marker(folder: Path, labels: int = 2) -> str:
    """Of tokens."""
    return save_tiny_encoder(folder, BertForTokenClassification, num_labels=labels)


@dataclass
class Marker:
    """A token classifier's model that gives each word of `worth` its probability, and others `rest`. `seen`
    are the inputs it was given, without padding."""

    worth: dict[str, float]
    rest: float = 0.1
    longest: int = 512
    seen: list[list[int]] = field(default_factory=list)
    device: str = "cpu"

    @property
    def config(self) -> Any:
        return SimpleNamespace(max_position_embeddings=self.longest)

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> Any:
        self.seen += [
            row[: int(mask.sum())].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)
        ]
        vocabulary = tiny_wordpiece().get_vocab()
        probabilities = torch.full(input_ids.shape, self.rest, dtype=torch.float64)
        for word, value in self.worth.items():
            probabilities[input_ids == vocabulary[word]] = value
        return SimpleNamespace(
            logits=torch.stack([torch.zeros_like(probabilities), probabilities.logit()], -1)
        )
