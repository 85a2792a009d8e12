"""Where tangents join; a cache grows and branches."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from lrp4rag.lrp import cache, prefix
from lrp4rag.lrp.cache import fork, new_cache
from lrp4rag.reader.placement import cache_option
from tests.tiny import random_tokens


def test_stages_end_with_all_tangents(monkeypatch) -> None:
    monkeypatch.setattr(prefix, "STAGE", 4)
    bins = torch.eye(4).repeat_interleave(3, 1)  # begin at 0, 3, 6, 9
    assert prefix.stages(bins) == [(2, slice(0, 4)), (3, slice(4, 8)), (4, slice(8, 12))]
    assert prefix.stages(bins[:, :3]) == [(4, slice(0, 3))]
    assert prefix.stages(torch.ones(2, 12)) == [(2, slice(0, 12))]
    assert prefix.stages(bins.flip(0)) == [(4, slice(0, 12))]
    assert prefix.stages(bins[2:]) == [(0, slice(0, 4)), (1, slice(4, 8)), (2, slice(8, 12))]
    assert prefix.stages(torch.zeros(2, 9)) == [(0, slice(0, 8)), (2, slice(8, 9))]
    assert prefix.stages(torch.zeros(0, 9)) == [(0, slice(0, 9))]


# The cache holds what Hugging Face's own holds, and its branches do not disturb each other.


def read(model, held: DynamicCache, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=True, **cache_option(model.forward, held)).logits[0, -1]


def test_the_cache_holds_what_hugging_faces_holds(llama, monkeypatch) -> None:
    """Long parts and single tokens, past the end of the room and back to long parts."""
    monkeypatch.setattr(cache, "ROOM", 8)
    ids = random_tokens(40, 1).prompt_ids
    ours, theirs = new_cache(llama.config), DynamicCache(config=llama.config)
    start = 0
    for end in [7, *range(8, 22), 30, *range(31, 41)]:
        assert torch.equal(read(llama, ours, ids[start:end]), read(llama, theirs, ids[start:end]))
        start = end
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        assert one.get_seq_length() == other.get_seq_length() == len(ids)
        assert torch.equal(one.keys, other.keys)
        assert torch.equal(one.values, other.values)


def test_branches_of_a_cache_do_not_disturb_each_other(llama) -> None:
    ids = random_tokens(12, 1).prompt_ids
    trunk = new_cache(llama.config)
    read(llama, trunk, ids[:9])
    read(llama, trunk, ids[9:10])  # now it has room, into which branches must not write
    branches = {token: fork(trunk) for token in (3, 5)}
    for token, branch in branches.items():
        read(llama, branch, (token,))
    read(llama, trunk, (11,))
    for token, branch in branches.items():
        alone = read(llama, new_cache(llama.config), (*ids[:10], token, 7))
        assert torch.allclose(read(llama, branch, (7,)), alone, rtol=0, atol=1e-12)
