"""Every way to the linear map of a composite: what holds for a push holds for each of them.

An entry point takes a flow, tokens and the weights (T, N) of tangents, N = n + t - 1, and returns the
relevance (T, t) of the response's tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from lrp4rag.lrp import Flow
from tests.lrp.checks import assert_close, random_weights
from tests.tiny import Tokens, random_tokens

EntryPoint = Callable[[Flow, Tokens, Tensor], Tensor]


def pull(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    return weights @ flow.pull(tokens, all_columns=True).to(weights).T


def pull_kept(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    """The replay of a push, pulled."""
    flow.push(tokens, weights, keep=True)
    relevance = pull(flow, tokens, weights)
    flow.forget()
    return relevance


def padded_batch(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    """Among a longer and a shorter example with fewer tangents."""
    n = len(tokens.prompt_ids)
    batch = [random_tokens(n + 4, 3), tokens, random_tokens(2, 1)]
    others = random_weights(1, n + 4), random_weights(2, 2)
    return flow.push_batch(batch, [others[0], weights, others[1]], at_once=3)[1]


def shared_prompt(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    """Beside another response; relevance of earlier response tokens is no part of it, and is pushed."""
    n, other = len(tokens.prompt_ids), random_tokens(1, 3).response_ids
    batch = [Tokens(tokens.prompt_ids, other), tokens]
    own = weights.clone()
    own[:, :n] = 0
    return flow.push_shared(batch, weights[:, :n])[1] + flow.push(tokens, own)


def prefix(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    n = len(tokens.prompt_ids)
    return flow.prefix(tokens.prompt_ids, weights[:, :n]).push(tokens.response_ids, weights[:, n:])


def token_by_token(flow: Flow, tokens: Tokens, weights: Tensor) -> Tensor:
    n = len(tokens.prompt_ids)
    read = flow.prefix(tokens.prompt_ids, weights[:, :n])
    rows = []
    for j, token in enumerate(tokens.response_ids):
        rows.append(read.push([token]))
        if n + j < weights.shape[1]:
            read.extend([token], weights[:, n + j : n + j + 1])
    return torch.cat(rows, 1)


PUSHES: dict[str, EntryPoint] = {
    "push": lambda flow, tokens, weights: flow.push(tokens, weights),
    "padded batch": padded_batch,
    "shared prompt": shared_prompt,
    "prefix": prefix,
    "token by token": token_by_token,
}
FEW = ("push", "pull", "prefix")
ENTRY_POINTS: dict[str, EntryPoint] = {"pull": pull, "pull of a kept push": pull_kept} | PUSHES


def tangents(n: int, t: int) -> Tensor:
    """Weights (4, N), of which some begin late, so that a prefix can read the prompt in stages."""
    weights = random_weights(4, n + t - 1)
    for row, start in enumerate((0, n // 4, n // 2, n // 2)):
        weights[row, :start] = 0
    return weights


def assert_agree(
    flow: Flow,
    tokens: Tokens,
    expected: Tensor,
    tolerance: float = 1e-10,
    names: Iterable[str] = ENTRY_POINTS,
) -> None:
    """Assert that every entry point gives the relevance that follows from R* over all columns, (t, N)."""
    weights = tangents(len(tokens.prompt_ids), len(tokens.response_ids))
    for name in names:
        assert_close(ENTRY_POINTS[name](flow, tokens, weights), weights @ expected.T, tolerance, name)
