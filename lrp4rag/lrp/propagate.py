"""Push tangents from the prompt to the logits, pull cotangents from the logits to the prompt.

Both directions are the linear map J of a composite, and its transpose (Gradient x Input form of
LRP: Arras et al., arXiv 2502.15886). No autograd is involved, so no graph is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrp4rag.errors import InputError, LRP4RAGError, RelevanceError
from lrp4rag.lrp.composites import ATTNLRP, Composite, composite_named
from lrp4rag.lrp.families import Block, Family
from lrp4rag.lrp.patching import LayerTape, Stack, patched, raise_not_finite
from lrp4rag.lrp.rules import NormRule, accumulate

Target = Literal["response", "largest"]
"""The explained logit: of the response's own token, or the reader's largest (the paper's text)."""

# Tangents pushed at once, and cotangents pulled at once: more cost memory and gain nothing.
PUSH_CHUNK = 8
PULL_CHUNK = 8


class Tokens(Protocol):
    """What propagation needs of an encoded example: the token ids of prompt and response."""

    @property
    def prompt_ids(self) -> tuple[int, ...]: ...
    @property
    def response_ids(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class _Tape:
    """One replay: what `pull` needs to go back from its logits."""

    tokens: Tokens
    embeddings: Tensor  # N, d
    layers: list[LayerTape]
    final_norm: NormRule
    readout: Tensor  # t, d: the row of the output embedding that reads each explained logit
    rotary: tuple[Tensor, Tensor]  # cos and sin, N, e


class Flow:
    """A model in relevance mode; made by `relevance_mode`.

    n is the number of prompt tokens, t of response tokens. Relevance is in logits.
    """

    def __init__(
        self, model: Any, family: Family, stack: Stack, composite: Composite, target: Target
    ) -> None:
        self.model, self.composite, self.target = model, composite, target
        self._family, self._stack = family, stack
        self._tape: _Tape | None = None
        self._explained_logits: Tensor | None = None

    @property
    def explained_logits(self) -> Tensor:
        """The explained logit z_j of each response token (t,), of the last replay."""
        if self._explained_logits is None:
            raise LRP4RAGError("nothing was replayed yet")
        return self._explained_logits

    @torch.no_grad()
    def push(self, tokens: Tokens, weights: Tensor, *, keep: bool = False) -> Tensor:
        """`sum_i weights[:, i] R[j, i]` for every response token j: (T, n) or (T, N) -> (T, t).

        N = n + t - 1 columns also cover the response tokens that later ones can read. One pass of
        the model per `PUSH_CHUNK` tangents. `keep` remembers the replay, so that a `pull` on the
        same tokens need not repeat it (at the price of the activations' memory).
        """
        if weights.ndim != 2 or not len(weights):
            raise LRP4RAGError(f"weights must be (tangents, tokens), got {tuple(weights.shape)}")
        n, t = len(tokens.prompt_ids), len(tokens.response_ids)
        if weights.shape[1] not in (n, n + t - 1):
            raise LRP4RAGError(f"weights must be (any, {n} or {n + t - 1}), got {tuple(weights.shape)}")
        chunks = weights.split(PUSH_CHUNK)
        rows = [self._run(tokens, chunk, keep and not k) for k, chunk in enumerate(chunks)]
        return torch.cat(rows)

    @torch.no_grad()
    def pull(self, tokens: Tokens, weights: Tensor | None = None, *, all_columns: bool = False) -> Tensor:
        """`sum_j weights[:, j] R[j, i]` for every prompt token i: (C, t) -> (C, n).

        Without weights, one cotangent per response token: the full R*, (t, n). With
        `all_columns`, (C, N): earlier response tokens too.
        """
        count = len(tokens.response_ids)
        tape = self._tape_of(tokens)
        if weights is None:
            weights = torch.eye(count, dtype=tape.readout.dtype, device=tape.readout.device)
        if weights.ndim != 2 or weights.shape[1] != count:
            raise LRP4RAGError(f"weights must be (any, {count}), got {tuple(weights.shape)}")
        weights = weights.to(tape.readout)
        columns = tape.embeddings.shape[0] if all_columns else len(tokens.prompt_ids)
        rows = [self._pull_chunk(tape, chunk, columns) for chunk in weights.split(PULL_CHUNK)]
        return torch.cat(rows)

    def forget(self) -> None:
        """Free the replay that a `push(..., keep=True)` or `pull` remembered."""
        self._tape = None

    def _tape_of(self, tokens: Tokens) -> _Tape:
        if self._tape is None or self._tape.tokens is not tokens:
            self._tape = None
            embeddings = self._embed(tokens)
            self._run(tokens, embeddings.new_zeros((0, len(embeddings))), keep=True)
        assert self._tape is not None
        return self._tape

    def _embed(self, tokens: Tokens) -> Tensor:
        ids = (*tokens.prompt_ids, *tokens.response_ids[:-1])
        table = self.model.get_input_embeddings()
        embeddings: Tensor = table(torch.tensor(ids, device=table.weight.device))
        return embeddings

    def _run(self, tokens: Tokens, weights: Tensor, keep: bool) -> Tensor:
        """Replay with tangents `weights` (T, n or N); returns their relevance (T, t)."""
        embeddings = self._embed(tokens)
        weights = F.pad(weights, (0, len(embeddings) - weights.shape[1])).to(embeddings)
        stacked = torch.cat([embeddings[None], weights[:, :, None] * embeddings])
        body, stack = self._family.part(self.model, "body"), self._stack
        layers = [LayerTape() for _ in self._family.blocks(self.model)]
        stack.primal_rows, stack.tape, stack.finite = 1, layers if keep else None, []
        try:
            hidden = body(inputs_embeds=stacked, use_cache=False).last_hidden_state
            final_norm = stack.final_norm
        finally:
            stack.primal_rows, stack.tape, stack.final_norm = 0, None, None
        stack.require_finite(hidden.dtype)
        hidden = hidden[:, len(tokens.prompt_ids) - 1 :]
        readout = self._readout(tokens, hidden[0])
        values = (accumulate(hidden) * accumulate(readout)).sum(-1)
        if not torch.isfinite(values).all():
            raise_not_finite("push", len(layers), hidden.dtype)
        self._explained_logits = values[0]
        if keep:
            assert final_norm is not None
            positions = torch.arange(len(embeddings), device=embeddings.device)[None]
            cos, sin = self._family.part(self.model, "rotary")(embeddings[None], positions)
            self._tape = _Tape(tokens, embeddings, layers, final_norm, readout, (cos[0], sin[0]))
        return values[1:]

    def _readout(self, tokens: Tokens, hidden: Tensor) -> Tensor:
        head = self.model.get_output_embeddings()
        if self.target == "largest":
            ids = head(hidden).argmax(-1)
        else:
            ids = torch.tensor(tokens.response_ids, device=hidden.device)
        return _matrix(head)[ids]

    def _pull_chunk(self, tape: _Tape, weights: Tensor, columns: int) -> Tensor:
        rows = weights.any(0).nonzero()
        first = len(tape.tokens.prompt_ids) - 1
        # Causality: no position after the last row that is asked for can matter.
        end = first + (int(rows[-1]) + 1 if len(rows) else 1)
        c = tape.readout.new_zeros((len(weights), end, tape.readout.shape[1]))
        c[:, first:] = weights[:, : end - first, None] * tape.readout[: end - first]
        c = tape.final_norm.pull(c)
        blocks = list(self._family.blocks(self.model))
        for k in reversed(range(len(blocks))):
            c = _pull_layer(blocks[k], tape.layers[k], tape.rotary, c)
            if not torch.isfinite(c).all():
                raise_not_finite("pull", k, c.dtype)
        relevance = (accumulate(c) * accumulate(tape.embeddings[:end])).sum(-1)
        return F.pad(relevance, (0, max(0, columns - end)))[:, :columns]


def _pull_layer(block: Block, tape: LayerTape, rotary: tuple[Tensor, Tensor], c: Tensor) -> Tensor:
    """Cotangents of a layer's input (C, n, d) for those of its output."""
    dgate, dup = tape.gate.pull(c @ _matrix(block.down))
    x = dup @ _matrix(block.up)
    if dgate is not None:
        x += dgate @ _matrix(block.gate)
    c = c + tape.mlp_norm.pull(x)

    _, kv, group, _, e = tape.attention.q.shape
    heads = (c @ _matrix(block.output)).unflatten(-1, (kv, group, e)).permute(0, 2, 3, 1, 4)
    cq, ck, cv = tape.attention.pull(heads, tape.attention_out)
    x = _merge_heads(cv) @ _matrix(block.value)
    if cq is not None and ck is not None:
        x += _merge_heads(_unrotate(cq, rotary).flatten(1, 2)) @ _matrix(block.query)
        x += _merge_heads(_unrotate(ck, rotary)) @ _matrix(block.key)
    return c + tape.attention_norm.pull(x)


def _merge_heads(x: Tensor) -> Tensor:
    """(C, heads, n, e) -> (C, n, heads * e)."""
    return x.transpose(1, 2).flatten(2)


def _unrotate(c: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """The transpose of the rotary embedding x cos + rotate_half(x) sin, (..., n, e)."""
    cos, sin = (part[: c.shape[-2]] for part in rotary)
    left, right = (c * sin).chunk(2, dim=-1)
    return c * cos + torch.cat([right, -left], dim=-1)


def _matrix(linear: nn.Module) -> Tensor:
    weight = getattr(linear, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or not weight.is_floating_point():
        raise LRP4RAGError(
            f"{type(linear).__name__} has no plain weight matrix (is it quantised?), so relevance "
            "cannot be pulled through it; push needs none"
        )
    return weight


@contextmanager
def relevance_mode(
    model: Any, composite: str | Composite = ATTNLRP, *, target: Target = "response"
) -> Iterator[Flow]:
    """Put one model instance in relevance mode; it is restored on exit, also after an exception.

    Raises `InputError` for an unsupported architecture and `RelevanceError` when the patched
    model's logits differ from the model's own.
    """
    if target not in ("response", "largest"):
        raise InputError(f"unknown target '{target}'; choose from response, largest")
    composite = composite_named(composite)
    checked = _CHECKED.setdefault(model, set())
    if composite.name not in checked:
        _check_logits(model, composite)
        checked.add(composite.name)
    with patched(model, composite) as (family, stack):
        yield Flow(model, family, stack, composite, target)


# Models whose patched logits were found to be their own, by composite: once each is enough.
_CHECKED: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()


@torch.no_grad()
def _check_logits(model: Any, composite: Composite) -> None:
    # Spread over the vocabulary: on the control tokens at its start, half precision is far off itself.
    ids = torch.arange(1, 9, device=model.get_input_embeddings().weight.device)[None]
    ids = ids * model.config.vocab_size // 10
    expected = model(ids, use_cache=False).logits
    with patched(model, composite):
        actual = model(ids, use_cache=False).logits
    error = float((actual - expected).abs().max() / expected.abs().max())
    allowed = 1e-4 if expected.dtype in (torch.float32, torch.float64) else 5e-2
    # Logits that are NaN already are reported by the layer that made them.
    if torch.isfinite(expected).all() and not error <= allowed:
        raise RelevanceError(f"patching changed the logits of this model by {error:.1e} relative")
