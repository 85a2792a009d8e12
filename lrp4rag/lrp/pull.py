"""Pull cotangents from the logits back to the embeddings, layer by layer: the transpose of a push.

Every part is transposed by hand, at the primal activations of a tape, so that no graph is held. Cotangents
are (C, n, d), for one example, cut short after the last explained position.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lrp4rag.lrp.experts import ExpertsRule
from lrp4rag.lrp.families.family import Block
from lrp4rag.lrp.memory import Sizes
from lrp4rag.lrp.replay import Replayer, Tape
from lrp4rag.lrp.rules import accumulate
from lrp4rag.lrp.stack import LayerTape, Rotary, raise_not_finite

Visit = Callable[[int, str, Tensor], None]
"""Sees each step of a pull: the layer, the part ("mlp", "attention") and the cotangents before it."""


def pull(
    replayer: Replayer,
    tape: Tape,
    weights: Tensor,
    columns: int,
    sizes: Sizes,
    *,
    layer: int = 0,
    visit: Visit | None = None,
) -> Tensor:
    """Return the relevance (C, columns) for weights (C, t) of the explained logits, back to the input of
    `layer`."""
    weighted = weights.any(0).nonzero()
    first = len(tape.tokens.prompt_ids) - 1
    end = first + (int(weighted[-1]) + 1 if len(weighted) else 1)
    readout = tape.explained.rows
    c = readout.new_zeros((len(weights), end, readout.shape[1]))
    c[:, first:] = weights[:, : end - first, None] * readout[: end - first]
    c = tape.final_norm.pull(c)
    for k in reversed(range(layer, len(replayer.blocks))):
        rules = replayer.rules_of(tape, k, sizes.queries)
        c = c.to(rules.attention_out.device)  # layers may be on several
        for part, back in (("mlp", pull_mlp), ("attention", pull_attention)):
            if visit is not None:
                visit(k, part, c)
            c = back(replayer.blocks[k], rules, c)
        # NaN and Inf both survive a sum, which in float16 overflows where its terms do not.
        if not torch.isfinite(c.sum(dtype=torch.promote_types(c.dtype, torch.float32))):
            raise_not_finite("pull", k, c.dtype)
    values = tape.input_of(layer)
    relevance = (accumulate(c.to(values.device)) * accumulate(values[:end])).sum(-1)
    return F.pad(relevance, (0, max(0, columns - end)))[:, :columns]


def pull_mlp(block: Block, tape: LayerTape, c: Tensor) -> Tensor:
    """Return cotangents of the state between attention and MLP, for those of the layer's output."""
    x = tape.norms["mlp_after"].pull(c) if "mlp_after" in tape.norms else c
    if isinstance(tape.mlp, ExpertsRule):
        x = tape.mlp.pull(x)
    else:
        assert block.dense is not None
        gate, up, down = block.dense
        dgate, dup = tape.mlp.pull(x @ down.matrix)
        x = _added(dgate, gate.matrix, to=dup @ up.matrix)
    return _with_residual(tape, "mlp_norm", x, c)


def pull_attention(block: Block, tape: LayerTape, c: Tensor) -> Tensor:
    """Return cotangents of the layer's input, for those of the state between attention and MLP."""
    x = tape.norms["attention_after"].pull(c) if "attention_after" in tape.norms else c
    _, kv, group, _, e = tape.attention.q.shape
    heads = (x @ block.output.matrix).unflatten(-1, (kv, group, e)).permute(0, 2, 3, 1, 4)
    cq, ck, cv = tape.attention.pull(heads, tape.attention_out)
    x = cv.transpose(1, 2).flatten(2) @ block.value.matrix
    if cq is not None and ck is not None:
        x = _added(_to_projection(cq.flatten(1, 2), tape, "query_norm"), block.query.matrix, to=x)
        x = _added(_to_projection(ck, tape, "key_norm"), block.key.matrix, to=x)
    return _with_residual(tape, "attention_norm", x, c)


def _with_residual(tape: LayerTape, norm: str, x: Tensor, c: Tensor) -> Tensor:
    """Return cotangents of a state: `x` through the norm before a part, where it has one, and `c` past the
    part."""
    return tape.norms[norm].pull(x, add=c) if norm in tape.norms else x + c


def _added(c: Tensor | None, matrix: Tensor, *, to: Tensor) -> Tensor:
    """Compute `to` + c @ matrix, written over `to` without a product of its own."""
    if c is not None:
        to.view(-1, to.shape[-1]).addmm_(c.reshape(-1, c.shape[-1]), matrix)
    return to


def _to_projection(c: Tensor, tape: LayerTape, norm: str) -> Tensor:
    """Map queries or keys as attention sees them, (C, heads, n, e), to their projection's output."""
    if tape.rotary is not None:
        c = _unrotate(c, tape.rotary)
    c = c.transpose(1, 2)
    if norm in tape.norms:
        c = tape.norms[norm].pull(c)
    return c.flatten(2)


def _unrotate(c: Tensor, rotary: Rotary) -> Tensor:
    """Return the transpose of the rotary embedding x cos + rotate_half(x) sin, of the features it turns."""
    cos, sin = (values[0, : c.shape[-2]].to(c.device) for values in rotary)
    turned, rest = c[..., : cos.shape[-1]], c[..., cos.shape[-1] :]
    left, right = (turned * sin).chunk(2, dim=-1)
    turned = turned * cos + torch.cat([right, -left], dim=-1)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned
