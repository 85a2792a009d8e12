"""What the layers show: provenance against detach arithmetic, the rest against the plain model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import cache

import pytest
import torch
from torch import Tensor

from experiments.tokens.trace import Trace, Tracer, trace_of
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.composites import CP_LRP
from lrp4rag.lrp.memory import Sizes
from tests.lrp import tiny_families
from tests.lrp.checks import BIASED, assert_close
from tests.lrp.detached import detached
from tests.tiny import random_tokens

pytestmark = pytest.mark.usefixtures("double")

N, T = 23, 6
TOKENS = random_tokens(N, T)
ONE = random_tokens(N, 1)
ORIGINS = torch.arange(N) % 3  # three segments of the prompt; the fourth is the response
NAMES = ("llama", "qwen2", "gemma2")  # sliding layers and biases, and norms of another kind
PART_LAYERS = (0, 2)

families = pytest.mark.parametrize("name", NAMES)

# A sliding layer's cache holds the last keys only, and lookback counts them as if it held all of them.
WINDOWED = pytest.mark.xfail(strict=True, reason="lookback of a response whose prompt exceeds the window")
lookback_families = pytest.mark.parametrize(
    "name", ["llama", *(pytest.param(name, marks=WINDOWED) for name in NAMES[1:])]
)


@cache
def model_of(name: str):
    model = tiny_families.build(name)
    model.set_attn_implementation("eager")
    return model


def weights_of(tokens) -> tuple[Tensor, Tensor]:
    """Tangents of the four segments over the prompt (4, n) and over the response's tokens (4, t - 1)."""
    prompt = (torch.arange(4)[:, None] == ORIGINS).double()
    response = torch.zeros(4, len(tokens.response_ids) - 1, dtype=torch.float64)
    response[3] = 1
    return prompt, response


def tracer(name: str, *, last_only: bool) -> Tracer:
    # The segments' tangents stand behind others, as they do where relevance is pushed too.
    return Tracer(
        prompt=N,
        segments=slice(1, 5),
        part_layers=PART_LAYERS,
        bias=name in BIASED,
        last_only=last_only,
    )


def trace(name: str, tokens, sizes: Sizes | None = None) -> Trace:
    prompt, response = weights_of(tokens)
    before = tracer(name, last_only=True)
    after = tracer(name, last_only=False) if len(tokens.response_ids) > 1 else None
    with relevance_mode(model_of(name), "cp_lrp", sizes=sizes) as flow:
        weights = torch.cat([torch.full((1, N), 0.37, dtype=torch.float64), prompt])
        prefix = flow.prefix(tokens.prompt_ids, weights, composites=[CP_LRP] * 5, observer=before)
        more = torch.cat([torch.zeros_like(response[:1]), response])
        prefix.states(tokens.response_ids, more, observer=after)
    return trace_of(before, after)


@contextmanager
def watched(model) -> Iterator[list[Tensor]]:
    """What each decoder layer puts out, (1, N, d), noted at every call."""
    outputs: list[Tensor] = []

    def note(_module, _inputs, output) -> None:
        outputs.append(output if isinstance(output, Tensor) else output[0])

    with ExitStack() as undo:
        for layer in model.model.layers:
            undo.callback(layer.register_forward_hook(note).remove)
        yield outputs


@cache
def plain(name: str, tokens) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """The plain model where it predicts the response: states (L, d, t), Hugging Face's own, and attention."""
    model = model_of(name)
    with watched(model) as outputs, torch.no_grad():
        result = model(tokens.ids, output_hidden_states=True, output_attentions=True, use_cache=False)
    hidden = torch.stack(outputs)[:, 0, N - 1 :].transpose(1, 2)
    states = tuple(state[0, N - 1 :].T for state in result.hidden_states)
    return hidden, states, torch.stack(result.attentions)[:, 0, :, N - 1 :]


@cache
def parts_by_hand(name: str, tokens) -> Tensor:
    """h_s after each layer (S, L, t, d): derivatives along the segments' embeddings, by autograd."""
    model = model_of(name)
    weights = torch.cat(weights_of(tokens), 1)
    with detached(model, "cp_lrp"), watched(model) as outputs:

        def layers(embeddings: Tensor) -> Tensor:
            outputs.clear()
            model(inputs_embeds=embeddings, use_cache=False)
            return torch.stack(outputs)[:, 0, N - 1 :]

        embeddings = model.get_input_embeddings()(tokens.ids).detach()
        parts = [
            torch.autograd.functional.jvp(layers, embeddings, one[None, :, None] * embeddings)[1]
            for one in weights
        ]
    return torch.stack(parts)


@families
@pytest.mark.parametrize("tokens", [TOKENS, ONE], ids=["six tokens", "one token"])
def test_provenance_and_states_equal_the_reference(name: str, tokens) -> None:
    found, parts, (own, states, _) = trace(name, tokens), parts_by_hand(name, tokens), plain(name, tokens)
    hidden = own.transpose(1, 2)  # L, t, d
    if name in BIASED:
        four = (parts * hidden).sum(-1) / hidden.square().sum(-1)
        assert (four.sum(0) - 1).abs().max() > 0.1  # without the bias they do not add up
        parts = torch.cat([parts, hidden[None] - parts.sum(0)])
    shares = (parts * hidden).sum(-1) / hidden.square().sum(-1)
    assert_close(found.shares, shares.transpose(0, 1), 1e-9)
    assert_close(found.shares.sum(1), torch.ones_like(found.shares[:, 0]), 1e-10)
    assert_close(found.norms, parts.norm(dim=-1).transpose(0, 1), 1e-9)
    assert_close(found.parts, parts[:, list(PART_LAYERS)].mean(2).transpose(0, 1), 1e-9)
    assert_close(found.hidden_mean, own.mean(-1), 1e-10)
    assert_close(found.hidden_last, own[..., -1], 1e-10)
    assert (found.lookback[..., 0] == 1).all()
    for k, state in enumerate(states[1:-1]):  # the last of these is after the final norm
        assert_close(found.hidden_mean[k], state.mean(-1), 1e-10)


@lookback_families
def test_lookback_by_hand(name: str) -> None:
    """Mean attention to a prompt token over the same plus the mean to a response token so far."""
    found, attention = trace(name, TOKENS).lookback, plain(name, TOKENS)[2]
    assert found.shape == (*attention.shape[:2], T)
    for j in range(1, T):
        to_prompt = attention[:, :, j, :N].mean(-1)
        to_response = attention[:, :, j, N : N + j].mean(-1)
        assert_close(found[..., j], to_prompt / (to_prompt + to_response), 1e-9)


@families
@pytest.mark.parametrize("sizes", [Sizes(queries=4), Sizes(queries=2, positions=3)], ids=["blocks", "chunks"])
def test_sizes_do_not_change_the_trace(name: str, sizes: Sizes) -> None:
    expected, found = trace(name, TOKENS), trace(name, TOKENS, sizes)
    for field in fields(Trace):
        assert_close(getattr(found, field.name), getattr(expected, field.name), 1e-10)
