"""Tiny random models as they are published: of pairs and of tokens, in several families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from tests.experiments.systems.tiny import tiny_config, tiny_wordpiece

HEADS = {
    "bert": "BertForSequenceClassification",
    "roberta": "RobertaForSequenceClassification",
    "deberta-v2": "DebertaV2ForSequenceClassification",
    "modernbert": "ModernBertForTokenClassification",
}


def save_published(
    folder: Path, names: tuple[str, ...], family: str = "bert", *, seed: int = 0, **changes: Any
) -> Path:
    """A folder with a model whose outputs have these names; `changes` are of its configuration."""
    shape = tiny_config().to_dict()
    kept = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    config = transformers.AutoConfig.for_model(
        family,
        **{name: shape[name] for name in kept} | changes,
        **{"pad_token_id": 0, "max_position_embeddings": 64, "id2label": dict(enumerate(names))},
        **{"initializer_range": 0.3, "classifier_dropout": 0.0, "cls_token_id": 2, "sep_token_id": 3},
        **{"bos_token_id": 2, "eos_token_id": 3},
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = getattr(transformers, HEADS[family])(config)
        model.save_pretrained(folder)
    tiny_wordpiece().save_pretrained(folder)
    return folder
