"""One pass of the reader for ReDeEP: what attention heads read, and residuals around feed-forward parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

TOP_PERCENT = 10
"""Of the prompt's tokens, those with most attention are what a head reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """n prompt and t response tokens, d features; lists have an item for each layer, real ones are float32.

    * `final` (n + t, d): last states, after the final norm.
    * `before`, `after` (1 + t, d): the residual around the layer's feed-forward part, at the prompt's last
      token and the response's.
    * `read` (H, t, n): which prompt tokens each head attends to most where a response token is predicted.
    * `sources` (H, s): the source chunk that each head attends to most from a response chunk's own tokens.
    """

    final: Tensor
    before: list[Tensor]
    after: list[Tensor]
    read: list[Tensor]
    sources: list[Tensor]


def trace_of(model: Any, ids: Tensor, of_chunk: Tensor, of_source: Tensor) -> Trace:
    """Of tokens (1, n + t); `of_chunk` (s, t) and `of_source` (sources, n) average over chunks' tokens.

    Attention is reduced layer by layer, so that only one layer's is held. Raises `InputError` for a model
    whose parts are not known.
    """
    import torch

    from lrp4rag.lrp.families import family_of

    family, hooks = family_of(model), _Hooks(of_chunk, of_source)
    with ExitStack() as stack, torch.no_grad():
        stack.enter_context(_eager(model))
        for block in family.blocks(model):
            for handle in (
                block.attention.register_forward_hook(hooks.attended),
                block.norms["mlp_norm"].register_forward_pre_hook(hooks.entered),
                block.layer.register_forward_hook(hooks.left),
            ):
                stack.callback(handle.remove)
        final = family.part(model, "body")(ids, use_cache=False).last_hidden_state[0].float()
    return Trace(final, hooks.before, hooks.after, hooks.read, hooks.sources)


@dataclass(frozen=True, slots=True, eq=False)
class _Hooks:
    of_chunk: Tensor
    of_source: Tensor
    before: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    read: list[Tensor] = field(default_factory=list)
    sources: list[Tensor] = field(default_factory=list)

    @property
    def first(self) -> int:
        """Where the response's first token is predicted: the prompt's last token."""
        return self.of_source.shape[1] - 1

    def attended(self, _module: Any, _inputs: Any, output: tuple[Tensor, Tensor]) -> None:
        attention = output[1][0, :, self.first :, : self.first + 1].float()
        self.read.append(most_attended(attention[:, :-1]))
        self.sources.append((self.of_chunk @ attention[:, 1:] @ self.of_source.T).argmax(-1))

    def entered(self, _module: Any, inputs: tuple[Tensor, ...]) -> None:
        self.before.append(inputs[0][0, self.first :].float())

    def left(self, _module: Any, _inputs: Any, output: Tensor | tuple[Tensor, ...]) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        self.after.append(hidden[0, self.first :].float())


def most_attended(attention: Tensor) -> Tensor:
    """Of attention (..., n): where the highest `TOP_PERCENT` are (at least one), as booleans."""
    import torch

    count = max(attention.shape[-1] * TOP_PERCENT // 100, 1)
    return torch.zeros_like(attention, dtype=torch.bool).scatter_(-1, attention.topk(count).indices, True)


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Attention that tells its weights. Models may share the configuration that is changed meanwhile."""
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(usual)
