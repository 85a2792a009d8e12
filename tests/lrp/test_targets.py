"""What is explained: every target against autograd, also where logits are soft-capped."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lrp4rag.lrp import TARGETS, Target, relevance_mode
from lrp4rag.util.errors import InputError, LRP4RAGError
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

with_and_without_caps = pytest.mark.parametrize("name", ["llama", "gemma2"])


@with_and_without_caps
@composites
def test_every_target_agrees_with_the_reference(name: str, composite: str) -> None:
    """A contrast, also with one token rather than another, is the difference of relevance."""
    for target in (*TARGETS.values(), Target("response", OTHERS)):
        of, *minus = target.name.split("-")

        def explain(logits: Tensor, of: str = of, minus: list[str] = minus) -> Tensor:
            return PARTS[of](logits) - sum(PARTS[one](logits) for one in minus)

        values, expected = reference_rows(model_of(name), TOKENS, composite, explain)
        with relevance_mode(model_of(name), composite, target=target) as flow:
            assert_close(flow.pull(TOKENS, all_columns=True), expected, 1e-8)
            assert_close(flow.explained_logits, values, 1e-8)
            assert flow.target == target.name


@with_and_without_caps
def test_all_targets_come_from_one_replay(name: str) -> None:
    model, weights, replays, expected = model_of(name), random_weights(2, 17), [], []
    for target in TARGETS:
        with relevance_mode(model, target=target) as flow:
            expected.append(flow.push(TOKENS, weights))
    with relevance_mode(model) as flow:
        handle = model.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
        actual = flow.read(TOKENS, weights, list(TARGETS))
        handle.remove()
    assert len(replays) == 1
    assert_close(actual, torch.stack(expected), 1e-10)


def test_one_other_token_stands_for_all(llama) -> None:
    one, each = Target("response", (7,)), Target("response", (7,) * 5)
    with relevance_mode(llama) as flow:
        assert torch.equal(*flow.read(TOKENS, random_weights(2, 17), [one, each]))


@pytest.mark.parametrize(
    ("minus", "message"), [((1, 2), "one for each of 5, not 2"), ((97,), "0 to 96"), ((-1,), "0 to 96")]
)
def test_bad_contrasts(llama, minus: tuple[int, ...], message: str) -> None:
    target = Target("response", minus)
    with relevance_mode(llama, target=target) as flow, pytest.raises(LRP4RAGError, match=message):
        flow.pull(TOKENS)


def test_unknown_targets_are_named_with_the_known_ones(llama) -> None:
    named = pytest.raises(InputError, match=r"'mean-response'.*response, largest, mean, response-mean")
    with named, relevance_mode(llama, target="mean-response"):
        pass
