"""Padded batches and shared prompts give what the loop gives; a cache grows and branches."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from lrp4rag.lrp import cache, prefix, relevance_mode
from lrp4rag.lrp.cache import fork, new_cache
from lrp4rag.reader.placement import cache_option
from tests.lrp.checks import assert_close, composites, model_of, random_weights, some_families
from tests.tiny import Tokens, random_tokens


@some_families
@composites
def test_a_padded_batch_equals_the_loop(name: str, composite: str) -> None:
    """In the order of the examples, also of more than are read at once."""
    batch = [random_tokens(n, t) for n, t in ((19, 4), (8, 6), (25, 1), (3, 2))]
    weights = [
        random_weights(count, len(tokens.prompt_ids))
        for count, tokens in zip((2, 3, 1, 2), batch, strict=True)
    ]
    with relevance_mode(model_of(name), composite) as flow:
        loop = [flow.push(tokens, tangents) for tokens, tangents in zip(batch, weights, strict=True)]
        for at_once in (3, 4):
            for actual, expected in zip(flow.push_batch(batch, weights, at_once=at_once), loop, strict=True):
                assert_close(actual, expected, 1e-6)


@some_families
@composites
def test_responses_that_share_a_prompt_equal_the_loop(name: str, composite: str, monkeypatch) -> None:
    """Tangents join where they begin: all at once, one after the other, later, and out of order."""
    monkeypatch.setattr(prefix, "STAGE", 4)
    prompt = random_tokens(19, 1).prompt_ids
    batch = [Tokens(prompt, random_tokens(1, t, seed=t).response_ids) for t in (6, 1, 3)]
    weights = random_weights(5, 19)
    staged = weights.clone()
    for row, start in enumerate((0, 3, 9, 9, 17)):
        staged[row, :start] = 0
    with relevance_mode(model_of(name), composite) as flow:
        for tangents in (weights, staged, staged[1:], staged.flip(0)):
            loop = [flow.push(tokens, tangents) for tokens in batch]
            for actual, expected in zip(flow.push_shared(batch, tangents), loop, strict=True):
                assert_close(actual, expected, 1e-6)


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
