"""The cache holds what Hugging Face's own holds, and its branches do not disturb each other."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from lrp4rag.lrp.cache import ROOM, fork, new_cache
from tests.tiny import random_tokens, tiny_llama


def read(model, cache: DynamicCache, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]), past_key_values=cache, use_cache=True).logits[0, -1]


def test_it_holds_what_hugging_faces_holds() -> None:
    """Long parts and single tokens, past the end of the room and back to long parts."""
    model, ids = tiny_llama(), random_tokens(2 * ROOM + 40, 1).prompt_ids
    ours, theirs = new_cache(model.config), DynamicCache(config=model.config)
    ends = [7, *range(8, 9 + ROOM + 5), ROOM + 30, *range(ROOM + 31, len(ids) + 1)]
    start = 0
    for end in ends:
        assert torch.equal(read(model, ours, ids[start:end]), read(model, theirs, ids[start:end]))
        start = end
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        assert one.get_seq_length() == other.get_seq_length() == len(ids)
        assert torch.equal(one.keys, other.keys)
        assert torch.equal(one.values, other.values)


def test_branches_do_not_disturb_each_other() -> None:
    model, ids = tiny_llama(), random_tokens(12, 1).prompt_ids
    trunk = new_cache(model.config)
    read(model, trunk, ids[:9])
    read(model, trunk, ids[9:10])  # now it has room, into which branches must not write
    alone = {}
    for token in (3, 5):
        fresh = new_cache(model.config)
        read(model, fresh, (*ids[:10], token))
        alone[token] = read(model, fresh, (7,))
    first, second = fork(trunk), fork(trunk)
    read(model, first, (3,))
    read(model, second, (5,))
    read(model, trunk, (11,))
    assert torch.allclose(read(model, first, (7,)), alone[3], rtol=0, atol=1e-12)
    assert torch.allclose(read(model, second, (7,)), alone[5], rtol=0, atol=1e-12)
