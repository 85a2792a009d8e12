"""One decoder layer backwards: the transpose of each part, by hand, at the primal activations of a tape.

Cotangents are (C, n, d), for one example, and may be cut short: positions after n are not reached.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lrp4rag.lrp.experts import ExpertsRule
from lrp4rag.lrp.families import Block
from lrp4rag.lrp.stack import LayerTape, Rotary


def pull_mlp(block: Block, tape: LayerTape, c: Tensor) -> Tensor:
    """Cotangents of the state between attention and MLP, for those of the layer's output."""
    x = tape.norms["mlp_after"].pull(c) if "mlp_after" in tape.norms else c
    if isinstance(tape.mlp, ExpertsRule):
        x = tape.mlp.pull(x)
    else:
        assert block.dense is not None
        gate, up, down = block.dense
        dgate, dup = tape.mlp.pull(x @ down.matrix)
        x = _added(dgate, gate.matrix, to=dup @ up.matrix)
    return tape.norms["mlp_norm"].pull(x, add=c)


def pull_attention(block: Block, tape: LayerTape, c: Tensor) -> Tensor:
    """Cotangents of the layer's input, for those of the state between attention and MLP."""
    x = tape.norms["attention_after"].pull(c) if "attention_after" in tape.norms else c
    _, kv, group, _, e = tape.attention.q.shape
    heads = (x @ block.output.matrix).unflatten(-1, (kv, group, e)).permute(0, 2, 3, 1, 4)
    cq, ck, cv = tape.attention.pull(heads, tape.attention_out)
    x = cv.transpose(1, 2).flatten(2) @ block.value.matrix
    if cq is not None and ck is not None:
        x = _added(_to_projection(cq.flatten(1, 2), tape, "query_norm"), block.query.matrix, to=x)
        x = _added(_to_projection(ck, tape, "key_norm"), block.key.matrix, to=x)
    return tape.norms["attention_norm"].pull(x, add=c)


def _added(c: Tensor | None, matrix: Tensor, *, to: Tensor) -> Tensor:
    """`to` + c @ matrix, written over `to` without a product of its own."""
    if c is not None:
        to.view(-1, to.shape[-1]).addmm_(c.reshape(-1, c.shape[-1]), matrix)
    return to


def _to_projection(c: Tensor, tape: LayerTape, norm: str) -> Tensor:
    """From queries or keys as attention sees them, (C, heads, n, e), to their projection's output."""
    if tape.rotary is not None:
        c = _unrotate(c, tape.rotary)
    c = c.transpose(1, 2)
    if norm in tape.norms:
        c = tape.norms[norm].pull(c)
    return c.flatten(2)


def _unrotate(c: Tensor, rotary: Rotary) -> Tensor:
    """The transpose of the rotary embedding x cos + rotate_half(x) sin, of the features it turns."""
    cos, sin = (part[0, : c.shape[-2]] for part in rotary)
    turned, rest = c[..., : cos.shape[-1]], c[..., cos.shape[-1] :]
    left, right = (turned * sin).chunk(2, dim=-1)
    turned = turned * cos + torch.cat([right, -left], dim=-1)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned
