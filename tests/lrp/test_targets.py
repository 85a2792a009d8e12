"""What is explained: contrasts are differences of relevance, also where logits are soft-capped."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.lrp import TARGETS, Target, relevance_mode
from lrp4rag.lrp.readout import target_named
from tests.lrp.checks import assert_close, composites, logits_of, model_of, random_weights
from tests.lrp.detached import detached
from tests.tiny import Tokens, random_tokens

TOKENS = random_tokens(17, 5)

with_and_without_caps = pytest.mark.parametrize("name", ["llama", "gemma2"])


def relevance_of(name: str, composite: str, target: str | Target) -> torch.Tensor:
    with relevance_mode(model_of(name), composite, target=target) as flow:
        return flow.pull(TOKENS, all_columns=True)


@with_and_without_caps
@composites
def test_a_contrast_is_the_difference_of_relevance(name: str, composite: str) -> None:
    """The mean logit's relevance agrees with the reference."""
    response, largest, mean = (
        relevance_of(name, composite, target) for target in ("response", "largest", "mean")
    )
    assert_close(relevance_of(name, composite, "response-mean"), response - mean, 1e-8)
    assert_close(relevance_of(name, composite, "response-largest"), response - largest, 1e-8)
    assert_close(relevance_of(name, composite, "largest-mean"), largest - mean, 1e-8)
    model = model_of(name)
    with detached(model, composite):
        embeddings = model.get_input_embeddings()(TOKENS.ids).detach().requires_grad_()
        means = model(inputs_embeds=embeddings, use_cache=False).logits[0, 16:].mean(-1)
        rows = [
            (embeddings * torch.autograd.grad(one, embeddings, retain_graph=True)[0])[0].sum(-1)
            for one in means
        ]
    assert_close(mean, torch.stack(rows).detach(), 1e-10)


@with_and_without_caps
@composites
def test_one_token_rather_than_another(name: str, composite: str) -> None:
    """The other tokens' relevance is what replaying them in the response's place gives, at each position."""
    others = (3, 50, 96, 0, 41)
    contrast = relevance_of(name, composite, Target("response", others))
    own = relevance_of(name, composite, "response")
    for j, other in enumerate(others):
        changed = Tokens(TOKENS.prompt_ids, (*TOKENS.response_ids[:j], other))
        with relevance_mode(model_of(name), composite) as flow:
            row = flow.pull(changed, all_columns=True)[j]
        assert_close(contrast[j, : len(row)], own[j, : len(row)] - row, 1e-8)


@with_and_without_caps
def test_all_targets_from_one_replay_explain_the_models_own_values(name: str) -> None:
    model, weights, replays = model_of(name), random_weights(2, 17), []
    logits = logits_of(model, TOKENS.ids)[0, 16:]
    own = logits.gather(1, torch.tensor(TOKENS.response_ids)[:, None])[:, 0]
    values = {
        "response": own,
        "largest": logits.max(-1).values,
        "mean": logits.mean(-1),
        "response-mean": own - logits.mean(-1),
        "response-largest": own - logits.max(-1).values,
        "largest-mean": logits.max(-1).values - logits.mean(-1),
    }
    assert set(values) == set(TARGETS)
    expected = []
    for target, value in values.items():
        with relevance_mode(model, target=target) as flow:
            expected.append(flow.push(TOKENS, weights))
            assert_close(flow.explained_logits, value, 1e-6)
            assert flow.target == target
    handle = model.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
    with relevance_mode(model) as flow:
        replays.clear()
        actual = flow.read(TOKENS, weights, list(values))
    handle.remove()
    assert len(replays) == 1
    assert_close(actual, torch.stack(expected), 1e-10)


def test_one_other_token_stands_for_all() -> None:
    repeated = Target("response", (7,) * 5)
    single = relevance_of("llama", "attnlrp", Target("response", (7,)))
    assert torch.equal(single, relevance_of("llama", "attnlrp", repeated))
    assert repeated.name == "response-tokens:7,7,7,7,7"


@pytest.mark.parametrize(
    ("minus", "message"), [((1, 2), "one for each of 5, not 2"), ((97,), "0 to 96"), ((-1,), "0 to 96")]
)
def test_bad_contrasts(minus: tuple[int, ...], message: str) -> None:
    with pytest.raises(LRP4RAGError, match=message):
        relevance_of("llama", "attnlrp", Target("response", minus))


def test_unknown_targets_are_named() -> None:
    with pytest.raises(InputError, match=r"'mean-response'.*response-mean"):
        target_named("mean-response")
