"""A tiny random network, and pairs that it can learn: a colour is the passages', or it is wrong."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BertModel

from lrp4rag.reader.comparer import Network, Pair
from lrp4rag.training.labelled_pairs import LabelledPair, Told
from tests.experiments.systems.tiny import tiny_config, tiny_wordpiece

COLOURS = ("red", "blue")


def tiny_network(dtype: torch.dtype = torch.float32, *, seed: int = 0) -> tuple[Network, Any]:
    """What `new_network` returns: the same encoder whenever it is called, and new heads."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = tiny_config(hidden_size=16, intermediate_size=16, initializer_range=0.1)
        config._attn_implementation = "eager"
        encoder = BertModel(config, add_pooling_layer=False).to(dtype)
    return Network(encoder), tiny_wordpiece()


def coloured(there: str, said: str, source: str, name: str, kind: str = "name") -> LabelledPair:
    claim, label = f"the bridge is {said}", "e" if there == said else "c"
    spans = None if name == "claims" else ((14, len(claim)),) if label == "c" else ()
    told: Told = "e" if label == "e" else "c"
    pair = Pair(f"the old bridge is {there}", "", claim)
    return LabelledPair(pair, told, spans, source, name, kind if label == "c" else "")


def answers(sources: int = 8) -> list[LabelledPair]:
    return [
        coloured(there, said, f"question {number}", name)
        for number in range(sources)
        for name in ("everyday", "ragtruth")
        for there in COLOURS
        for said in COLOURS
    ]


def claims() -> list[LabelledPair]:
    return [coloured(there, said, f"{there} {said}", "claims") for there in COLOURS for said in COLOURS] * 3
