"""From an encoded example to its `Relevance`: which tangents and cotangents each result costs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from lrp4rag.lrp.composites import ATTNLRP, Composite
from lrp4rag.lrp.families import require_pull
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.readout import Target
from lrp4rag.lrp.relevance import Relevance, as_array
from lrp4rag.lrp.replay import pad_columns
from lrp4rag.lrp.resampling import MODES, Mode, resampling_matrix
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.reader.reader import Reader
from lrp4rag.util.errors import InputError
from lrp4rag.util.types import require_kind, require_whole


def attribute(
    reader: Reader,
    encoded: Encoded,
    *,
    composite: str | Composite = ATTNLRP,
    target: str | Target = "response",
    segments: bool = False,
    prompt: bool = False,
    matrix: bool = False,
    resampled: tuple[int, int] | None = None,
    mode: Mode = "interpolate",
    own: bool = False,
    layer: int = 0,
    max_memory: int | None = None,
    flow: Flow | None = None,
    keep: bool = False,
) -> Relevance:
    """Attribute a response to its prompt.

    Passes of the model: R_response costs one tangent; `segments` one tangent each, and R_response is then
    free; `prompt` one cotangent; `matrix` one for each response token; `resampled=(L_r, L_p)` min(L_r, L_p)
    of either; `own`, relevance to the response's earlier tokens, one tangent. `layer` asks for relevance at
    the input of that decoder layer, `max_memory` (bytes) for passes that fit. The composite and target of a
    `flow` that is open on the reader's model hold; `keep` leaves it the replay for a further `flow.pull`.
    Raises `InputError` for arguments of another kind.
    """
    require_kind(reader, "reader", Reader)
    require_kind(encoded, "encoded", Encoded)
    require_kind(flow, "flow", Flow, type(None))
    switches = {"segments": segments, "prompt": prompt, "matrix": matrix, "own": own, "keep": keep}
    for name, value in switches.items():
        require_kind(value, name, bool)
    require_whole(layer, "layer", 0)
    if resampled is not None:
        require_kind(resampled, "resampled", tuple, list)
        if len(resampled) != 2:
            raise InputError("two lengths are needed: of the response and of the prompt", field="resampled")
        for length in resampled:
            require_whole(length, "resampled", 1)
    if mode not in MODES:
        raise InputError(f"'{mode}' is none of {', '.join(MODES)}", field="mode")
    if not encoded.response_ids:
        raise InputError("the response has no tokens", field="response")
    opening = relevance_mode(reader.model, composite, target=target, max_memory=max_memory)
    with reader.lock, opening if flow is None else nullcontext(flow) as active:
        pulls = prompt or matrix or (resampled is not None and resampled[0] < resampled[1])
        if pulls:  # before the push, which is not cheap either
            require_pull(reader.model)
        keep = keep or (pulls and not layer)  # at a layer, pulling needs another kind of replay
        weights = segment_weights(encoded) if segments else prompt_mean(encoded)
        count = len(weights)
        if own:
            own_tangents = own_weights(encoded)
            weights = torch.cat([pad_columns(weights, own_tangents.shape[1]), own_tangents])
        pushed = active.push(encoded, weights, keep=keep, layer=layer)
        prompt_part = pushed[:count]
        response = prompt_part.sum(0) / len(encoded.prompt_ids) if segments else prompt_part[0]
        full = active.pull(encoded, layer=layer) if matrix else None
        column_means = None
        if prompt:
            column_means = full.mean(0) if full is not None else pull_mean(active, encoded, layer)
        small = None if resampled is None else _resampled(active, encoded, full, resampled, mode, layer)
        return Relevance(
            encoded=encoded,
            composite=active.composite.name,
            target=active.target,
            reader=reader.identity.as_dict(),
            logits=as_array(active.explained_logits),
            response=as_array(response),
            by_segment=as_array(prompt_part) if segments else None,
            prompt=None if column_means is None else as_array(column_means),
            matrix=None if full is None else as_array(full),
            resampled=None if small is None else as_array(small),
            own=as_array(pushed[count]) if own else None,
            layer=layer,
        )


def prompt_mean(encoded: Encoded) -> Tensor:
    """Return the one tangent (1, n) whose relevance is R_response."""
    n = len(encoded.prompt_ids)
    return torch.full((1, n), 1 / n, dtype=torch.float64)


def segment_weights(encoded: Encoded) -> Tensor:
    """Return one tangent per segment (segments, n): 1 on the segment's tokens."""
    segments = torch.tensor(encoded.segments)
    return (segments == torch.arange(len(encoded.segment_names))[:, None]).double()


def own_weights(encoded: Encoded) -> Tensor:
    """Return the one tangent (1, N) of the response's earlier tokens."""
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    return torch.cat([torch.zeros(n), torch.ones(t - 1)]).double()[None]


def span_weights(encoded: Encoded, spans: Sequence[tuple[int, int]]) -> Tensor:
    """Return one cotangent per character span of the response (spans, t): the mean over its tokens."""
    rows = [tokens_in(encoded.response_offsets, [span]) for span in spans]
    weights = torch.from_numpy(np.array(rows, dtype=bool).reshape(-1, len(encoded.response_ids))).double()
    return weights / weights.sum(1, keepdim=True).clamp(min=1)


def pull_mean(flow: Flow, encoded: Encoded, layer: int = 0) -> Tensor:
    """Pull R_prompt (n): one cotangent, with equal weights for the response's tokens."""
    count = len(encoded.response_ids)
    return flow.pull(encoded, torch.full((1, count), 1 / count, dtype=torch.float64), layer=layer)[0]


def _resampled(
    flow: Flow, encoded: Encoded, full: Tensor | None, shape: tuple[int, int], mode: Mode, layer: int
) -> Tensor:
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    rows = torch.from_numpy(resampling_matrix(t, shape[0], mode))
    columns = torch.from_numpy(resampling_matrix(n, shape[1], mode))
    if full is not None:
        return rows @ full.cpu().double() @ columns.T
    if shape[0] < shape[1]:
        return flow.pull(encoded, rows, layer=layer).cpu().double() @ columns.T
    return rows @ flow.push(encoded, columns, layer=layer).T.cpu().double()
