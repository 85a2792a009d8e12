"""Tangents of two composites in one stack equal those of a stack each; others are refused."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.lrp import ATTNLRP, CP_LRP, PAPER, Composite, relevance_mode
from lrp4rag.lrp.families import one_stack
from lrp4rag.lrp.memory import Sizes
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import NAMES, SPARSE, assert_close, model_of, random_weights, reference_of
from tests.tiny import random_tokens

# Neighbours of one composite, and changes between them.
MIXED = [ATTNLRP, CP_LRP, CP_LRP, ATTNLRP, CP_LRP]
PROMPT = random_tokens(19, 1).prompt_ids
RESPONSE = random_tokens(1, 6, seed=6).response_ids


def test_which_models_let_attnlrp_and_cp_lrp_share() -> None:
    shared = {name for name in NAMES if one_stack(model_of(name), ATTNLRP, CP_LRP)}
    assert shared == set(NAMES) - SPARSE


@pytest.mark.parametrize("name", ["llama_biased", "qwen3", "gemma2"])
@pytest.mark.parametrize("own", [ATTNLRP, CP_LRP], ids=lambda composite: composite.name)
def test_a_mixed_stack_equals_the_reference(name: str, own: Composite) -> None:
    """At once and token by token, of whatever size; later tangents of no composite are the flow's own."""
    tokens, logits, _ = reference_of(name, "attnlrp")
    n, weights = len(tokens.prompt_ids), random_weights(len(MIXED), 21)
    rows = torch.stack([reference_of(name, one.name)[2] for one in MIXED])  # T, t, N
    expected = torch.einsum("tn,tjn->tj", weights, rows)
    alone = weights @ reference_of(name, own.name)[2].T
    for sizes in (None, Sizes(queries=5, positions=7, tangents=2)):
        with relevance_mode(model_of(name), own, sizes=sizes) as flow:
            prefix = flow.prefix(tokens.prompt_ids, weights[:, :n], composites=MIXED)
            assert_close(prefix.push(tokens.response_ids, weights[:, n:]), expected, 1e-10)
            assert_close(flow.explained_logits, logits, 1e-10)
            for j, token in enumerate(tokens.response_ids):
                assert_close(prefix.push([token]), expected[:, j : j + 1], 1e-10)
                if j + 1 < len(tokens.response_ids):
                    prefix.extend([token], weights[:, n + j : n + j + 1])
            assert_close(flow.push(tokens, weights), alone, 1e-10)


def test_a_prefix_without_tangents_reads_only(llama) -> None:
    with relevance_mode(llama) as flow:
        state = flow.prefix(PROMPT).states(RESPONSE)
        assert state.tangents.shape == (0, 1, 6, 48)
        hidden = llama.model(torch.tensor([[*PROMPT, *RESPONSE[:-1]]]), use_cache=False).last_hidden_state
        assert_close(state.primal, hidden[:, 18:].detach(), 1e-10)


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("llama", PAPER, ATTNLRP),
        ("llama", ATTNLRP, PAPER),
        ("gemma2", ATTNLRP, Composite("slopes", 0.5, "frozen", "jacobian", "jacobian")),
        ("mixtral", ATTNLRP, CP_LRP),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_what_cannot_share_a_stack_is_refused(name: str, own: Composite, other: Composite) -> None:
    weights = random_weights(2, 19)
    with relevance_mode(model_of(name), own) as flow:
        with pytest.raises(InputError, match=rf"'{other.name}' and '{own.name}' cannot share one stack"):
            flow.prefix(PROMPT, weights, composites=[own, other])
        for count in (0, 1, 3):
            with pytest.raises(LRP4RAGError, match=rf"2 tangents need 2 composites, got {count}"):
                flow.prefix(PROMPT, weights, composites=[own] * count)
