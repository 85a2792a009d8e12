"""Shared prompts and padded batches give what the loop gives: every family, with windows and without."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.errors import LRP4RAGError
from lrp4rag.lrp import prefix, relevance_mode
from tests.lrp.checks import assert_close, composites, random_weights
from tests.lrp.test_families import families, model_of
from tests.tiny import Tokens, random_tokens

PROMPT = random_tokens(19, 1).prompt_ids
RESPONSES = [random_tokens(1, t, seed=t).response_ids for t in (6, 1, 3)]


@families
@composites
def test_responses_that_share_a_prompt_equal_the_loop(name: str, composite: str) -> None:
    batch, weights = [Tokens(PROMPT, response) for response in RESPONSES], random_weights(3, 19)
    with relevance_mode(model_of(name), composite) as flow:
        expected = [flow.push(tokens, weights) for tokens in batch]
        for actual, one in zip(flow.push_shared(batch, weights), expected, strict=True):
            assert_close(actual, one, 1e-6)


@families
@composites
def test_a_padded_batch_equals_the_loop(name: str, composite: str) -> None:
    batch = [random_tokens(n, t) for n, t in ((19, 4), (8, 6), (25, 1), (3, 2))]
    weights = [
        random_weights(count, len(tokens.prompt_ids))
        for count, tokens in zip((2, 3, 1, 2), batch, strict=True)
    ]
    with relevance_mode(model_of(name), composite) as flow:
        expected = [flow.push(tokens, one) for tokens, one in zip(batch, weights, strict=True)]
        for at_once in (3, 4):
            for actual, one in zip(flow.push_batch(batch, weights, at_once=at_once), expected, strict=True):
                assert_close(actual, one, 1e-6)


@families
def test_a_prefix_that_is_extended_equals_one_read_at_once(name: str) -> None:
    weights = random_weights(2, 19)
    tokens = Tokens(PROMPT, RESPONSES[0])
    with relevance_mode(model_of(name)) as flow:
        expected = flow.push(tokens, weights)
        prefix = flow.prefix(PROMPT[:11], weights[:, :11])
        prefix.extend(PROMPT[11:12], weights[:, 11:12])
        prefix.extend(PROMPT[12:], weights[:, 12:])
        assert prefix.length == 19
        assert_close(prefix.push(tokens.response_ids), expected, 1e-6)
        assert_close(prefix.push(tokens.response_ids), expected, 1e-6)  # it stays where it is


@families
@composites
def test_tangents_that_join_where_they_begin_equal_the_loop(name: str, composite: str, monkeypatch) -> None:
    monkeypatch.setattr(prefix, "STAGE", 4)
    weights = random_weights(5, 19)
    for row, start in enumerate((0, 3, 9, 9, 17)):
        weights[row, :start] = 0
    batch = [Tokens(PROMPT, response) for response in RESPONSES]
    with relevance_mode(model_of(name), composite) as flow:
        for part in (weights, weights[1:], weights.flip(0)):  # from the start, later, out of order
            expected = [flow.push(tokens, part) for tokens in batch]
            for actual, one in zip(flow.push_shared(batch, part), expected, strict=True):
                assert_close(actual, one, 1e-6)


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


def test_weights_of_the_responses_own_tokens(llama) -> None:
    tokens, weights = Tokens(PROMPT, RESPONSES[0]), random_weights(2, 24)
    with relevance_mode(llama) as flow:
        expected = flow.push(tokens, weights)
        prefix = flow.prefix(PROMPT, weights[:, :19])
        assert_close(prefix.push(tokens.response_ids, weights[:, 19:]), expected, 1e-10)


def test_other_prompts_are_refused(llama) -> None:
    batch = [random_tokens(5, 2), random_tokens(6, 2)]
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="one prompt, not 2"):
        flow.push_shared(batch, torch.ones(1, 5))


def test_an_empty_prefix_is_refused(llama) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="at least one token"):
        flow.prefix((), torch.ones(1, 0))


def test_weights_of_another_shape_are_refused(llama) -> None:
    with relevance_mode(llama) as flow:
        prefix = flow.prefix(PROMPT, random_weights(2, 19))
        for shape in ((2, 1), (1, 3), (2, 4)):
            with pytest.raises(LRP4RAGError, match=r"weights must be \(2, 3\)"):
                prefix.extend((1, 2, 3), torch.ones(shape))
        with pytest.raises(LRP4RAGError, match="response has no tokens"):
            prefix.push(())


def test_nothing_to_explain_is_an_error(llama) -> None:
    nothing, weights = Tokens(PROMPT, ()), random_weights(1, 19)
    with relevance_mode(llama) as flow:
        for run in (
            lambda: flow.push(nothing, weights),
            lambda: flow.pull(nothing),
            lambda: flow.push_batch([nothing], [weights]),
        ):
            with pytest.raises(LRP4RAGError, match="response has no tokens"):
                run()
        with pytest.raises(LRP4RAGError, match="at_once must be 1"):
            flow.push_batch([Tokens(PROMPT, (1,))], [weights], at_once=0)
