"""Relevance at intermediate layers: of the residual stream at the input of a decoder layer."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.errors import LRP4RAGError
from lrp4rag.lrp import relevance_mode
from tests.lrp.checks import assert_close, composites, random_weights
from tests.lrp.detached import detached
from tests.lrp.test_families import BIASED, families, model_of
from tests.tiny import random_tokens

TOKENS = random_tokens(17, 5)


def reference_at(model, composite: str, layer: int) -> torch.Tensor:
    """Gradient x state at the input of a layer, by autograd on the detach arithmetic: (t, N)."""
    kept = []

    def keep(_module, inputs):
        kept.append(inputs[0])

    handle = model.model.layers[layer].register_forward_pre_hook(keep)
    with detached(model, composite):
        embeddings = model.get_input_embeddings()(TOKENS.ids).detach().requires_grad_()
        logits = model(inputs_embeds=embeddings, use_cache=False).logits[0, 16:]
        chosen = logits.gather(1, torch.tensor(TOKENS.response_ids)[:, None])[:, 0]
        rows = [
            (kept[0] * torch.autograd.grad(one, kept[0], retain_graph=True)[0])[0].sum(-1) for one in chosen
        ]
    handle.remove()
    return torch.stack(rows).detach()


@families
@composites
@pytest.mark.parametrize("layer", [1, 2])
def test_push_and_pull_at_a_layer_agree_with_the_reference(name: str, composite: str, layer: int) -> None:
    model, weights = model_of(name), random_weights(2, 21)
    expected = reference_at(model, composite, layer)
    with relevance_mode(model, composite) as flow:
        assert_close(flow.pull(TOKENS, all_columns=True, layer=layer), expected, 1e-10)
        assert_close(flow.push(TOKENS, weights, layer=layer), weights @ expected.T, 1e-10)


@families
def test_cp_lrp_conserves_at_every_layer(name: str) -> None:
    if name in BIASED:
        pytest.skip("biases are sources of their own")
    model = model_of(name)
    with relevance_mode(model, "cp_lrp") as flow:
        for layer in range(len(model.model.layers)):
            total = flow.pull(TOKENS, all_columns=True, layer=layer).sum(1)
            assert_close(total, flow.explained_logits, 1e-6)


def test_layer_zero_is_the_embeddings(llama) -> None:
    with relevance_mode(llama) as flow:
        assert torch.equal(flow.pull(TOKENS, layer=0), flow.pull(TOKENS))


@pytest.mark.parametrize("layer", [-1, 3])
def test_a_layer_that_is_not_there(llama, layer: int) -> None:
    with relevance_mode(llama) as flow:
        with pytest.raises(LRP4RAGError, match="from 0 to 2"):
            flow.push(TOKENS, random_weights(1, 17), layer=layer)
        with pytest.raises(LRP4RAGError, match="from 0 to 2"):
            flow.pull(TOKENS, layer=layer)
