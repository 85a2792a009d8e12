"""What is explained: every target against autograd, also where logits are soft-capped."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lrp4rag.lrp import TARGETS, Target, relevance_mode
from lrp4rag.util.errors import LRP4RAGError
from tests.lrp.checks import assert_close, composites, model_of, random_weights
from tests.lrp.detached import of_tokens, reference_rows
from tests.tiny import random_tokens

TOKENS, OTHERS = random_tokens(17, 5), (3, 50, 96, 0, 41)
PARTS = {
    "response": lambda logits: of_tokens(logits, TOKENS.response_ids),
    "largest": lambda logits: logits.max(-1).values,
    "mean": lambda logits: logits.mean(-1),
    "tokens:3,50,96,0,41": lambda logits: of_tokens(logits, OTHERS),
}

CONTRAST = Target("response", OTHERS)
with_and_without_caps = pytest.mark.parametrize("name", ["llama", "gemma2"])


def reference_of(name: str, composite: str, target: Target, layer: int = 0) -> tuple[Tensor, Tensor]:
    """A contrast, also with one token rather than another, is the difference of relevance."""
    of, *minus = target.name.split("-")

    def explain(logits: Tensor) -> Tensor:
        return PARTS[of](logits) - sum(PARTS[one](logits) for one in minus)

    return reference_rows(model_of(name), TOKENS, composite, explain, layer)


@with_and_without_caps
@composites
@pytest.mark.parametrize("target", [*TARGETS.values(), CONTRAST], ids=lambda target: target.name)
def test_every_target_agrees_with_the_reference(name: str, composite: str, target: Target) -> None:
    """As the mode's, of one pull alone, and of a push of several."""
    values, expected = reference_of(name, composite, target)
    weights = random_weights(2, 21)
    with relevance_mode(model_of(name), composite, target=target) as flow:
        assert_close(flow.pull(TOKENS, all_columns=True), expected, 1e-8)
        assert_close(flow.explained_logits, values, 1e-8)
        assert flow.target == target.name
    with relevance_mode(model_of(name), composite) as flow:
        assert_close(flow.pull(TOKENS, all_columns=True, target=target), expected, 1e-8)
        assert_close(flow.read(TOKENS, weights, ["mean", target])[1], weights @ expected.T, 1e-8)
        assert flow.target == "response"


def test_targets_share_a_replay_and_leave_the_modes_own() -> None:
    llama, replays = model_of("llama"), []
    with relevance_mode(llama) as flow:
        own, at_layer = flow.pull(TOKENS), flow.pull(TOKENS, layer=1, target=CONTRAST)
        flow.forget()
        handle = llama.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
        flow.read(TOKENS, random_weights(2, 17), list(TARGETS), keep=True)
        contrast = flow.pull(TOKENS, target=CONTRAST, all_columns=True)
        assert_close(flow.pull(TOKENS), own, 1e-12)
        handle.remove()
    assert len(replays) == 1
    assert_close(contrast, reference_of("llama", "attnlrp", CONTRAST)[1], 1e-8)
    assert_close(at_layer, reference_of("llama", "attnlrp", CONTRAST, 1)[1][:, :17], 1e-8)


def test_one_other_token_stands_for_all(llama) -> None:
    one, each = Target("response", (7,)), Target("response", (7,) * 5)
    with relevance_mode(llama) as flow:
        assert torch.equal(*flow.read(TOKENS, random_weights(2, 17), [one, each]))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("mean-response", "'mean-response'.*response, largest, mean, response-mean"),
        (Target("response", (1, 2)), "one for each of 5, not 2"),
        (Target("response", (97,)), "0 to 96"),
        (Target("response", (-1,)), "0 to 96"),
    ],
    ids=range(4),
)
def test_what_is_no_target_is_refused(llama, target: str | Target, message: str) -> None:
    """As the mode's, and of one pull alone."""
    refused = pytest.raises(LRP4RAGError, match=message)
    with refused, relevance_mode(llama, target=target) as flow:
        flow.pull(TOKENS)
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match=message):
        flow.pull(TOKENS, target=target)
