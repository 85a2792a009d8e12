"""Push tangents of the embeddings forwards to the logits, in passes of the patched model.

A response token's relevance is the tangent of its explained logit, read from those of the final state. No
autograd is involved, so no graph is held, and quantised layers and key/value caches work.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lrp4rag.lrp.memory import Sizes, push_bytes
from lrp4rag.lrp.readout import Target
from lrp4rag.lrp.replay import Replayer, Tape, Tokens
from lrp4rag.lrp.stack import raise_not_finite


def push(
    replayer: Replayer,
    tokens: Tokens,
    weights: Tensor,
    targets: Sequence[Target],
    sizes: Sizes,
    *,
    layer: int = 0,
    keep: bool = False,
) -> tuple[Tensor, Tape | None]:
    """Return the relevance (targets, T, t) of tangents `weights` (T, N), from one pass; with `keep`, also its
    tape."""
    response = slice(len(tokens.prompt_ids) - 1, None)
    tape = None
    if keep:
        state, tape = replayer.record(tokens, weights, sizes, layer=layer)
        explained = tape.explained
    else:
        embeddings = replayer.embed_all(tokens)
        state = replayer.run(embeddings[None], weights[:, None], sizes, layer=layer)
        explained = replayer.explain(state, 0, response, tokens.response_ids)
    hidden, tangents = state.at(0, response)
    ids = torch.tensor(tokens.response_ids, device=hidden.device)
    values = [
        explained if target == replayer.target else replayer.readout.explain(hidden, ids, target)
        for target in targets
    ]
    relevance = torch.stack([value.read(tangents) for value in values]) * state.scale
    if not torch.isfinite(relevance).all():
        raise_not_finite("push", len(replayer.blocks), hidden.dtype)
    return relevance, tape


def push_padded(replayer: Replayer, batch: Sequence[Tokens], weights: Sequence[Tensor]) -> list[Tensor]:
    """Return the relevance (T, t) of each example of a batch, padded on the right, where causality hides the
    padding."""
    embedded = [replayer.embed_all(tokens) for tokens in batch]
    longest, most = max(map(len, embedded)), max(map(len, weights))
    embeddings = torch.stack([F.pad(each, (0, 0, 0, longest - len(each))) for each in embedded])
    columns = [F.pad(each, (0, longest - each.shape[1], 0, most - len(each))) for each in weights]
    stacked = torch.stack(columns, dim=1).to(embeddings.device)
    budget = replayer.budget
    sizes = budget.plan(lambda sizes: push_bytes(budget.shape, longest * len(batch), most, sizes))
    states = [replayer.run(embeddings, chunk, sizes) for chunk in stacked.split(sizes.tangents)]
    rows = []
    for k, (tokens, tangents) in enumerate(zip(batch, weights, strict=True)):
        first = len(tokens.prompt_ids) - 1
        response = slice(first, first + len(tokens.response_ids))
        explained = replayer.explain(states[0], k, response, tokens.response_ids)
        pushed = [explained.read(state.at(k, response)[1]) * state.scale[:, k, None] for state in states]
        rows.append(torch.cat(pushed)[: len(tangents)])
    return rows
