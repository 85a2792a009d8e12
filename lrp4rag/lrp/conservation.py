"""Where relevance is lost on its way back: a check of a model, a composite and their rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrp4rag.lrp.composites import ATTNLRP, Composite
from lrp4rag.lrp.flow import relevance_mode
from lrp4rag.lrp.replay import Tokens
from lrp4rag.lrp.rules import accumulate
from lrp4rag.reader.lock import lock_of


@dataclass(frozen=True, slots=True)
class Step:
    """The relevance that enters and leaves one part of the network on the way back, in logits.

    Layers count from 0; the final norm, with the output embedding, is "readout" of the one after the last.
    """

    layer: int
    part: str  # "readout", "mlp" or "attention"
    entering: float
    leaving: float

    @property
    def lost(self) -> float:
        """Relevance that is lost, in logits; negative where it is made."""
        return self.entering - self.leaving


@dataclass(frozen=True, slots=True)
class Conservation:
    """What became of a logit: `steps` from the logit back to the embeddings."""

    composite: str
    logit: float
    steps: tuple[Step, ...]

    @property
    def embeddings(self) -> float:
        """What arrives at the embeddings: the sum of relevance over all input columns."""
        return self.steps[-1].leaving

    @property
    def share(self) -> float:
        """What arrives, over the logit: 1 where everything is conserved."""
        return self.embeddings / self.logit

    def conserves(self, tolerance: float = 1e-3) -> bool:
        """Say whether no step loses or makes more than `tolerance` of what flows through it at most."""
        most = max(abs(step.entering) for step in self.steps)
        return all(abs(step.lost) <= tolerance * most for step in self.steps)

    def worst(self, count: int = 5) -> list[Step]:
        """Return the steps that lose or make most."""
        return sorted(self.steps, key=lambda step: -abs(step.lost))[:count]


class _Probe(NamedTuple):
    """Tokens to check on, where the caller has none."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]


@torch.no_grad()
def check_conservation(
    model: Any, composite: str | Composite = ATTNLRP, tokens: Tokens | None = None
) -> Conservation:
    """Follow the mean logit of a response's tokens back through `model`, and say where relevance is lost.

    Without `tokens`, 24 random ones. Relevance of a state is <state, cotangent>, summed over positions.
    `cp_lrp` conserves exactly on a model without biases: where it does not, an adapter is wrong.
    """
    if tokens is None:
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(model.config.vocab_size, (24,), generator=generator).tolist()
        tokens = _Probe(tuple(ids[:16]), tuple(ids[16:]))
    rows = torch.full((1, len(tokens.response_ids)), 1 / len(tokens.response_ids))
    arrived: list[float] = []
    with lock_of(model), relevance_mode(model, composite) as flow:
        states = _residual_states(flow.replayer.blocks, flow.pull, tokens)

        def visit(layer: int, part: str, c: Tensor) -> None:
            state = states[layer][part][: c.shape[1]]
            arrived.append(float((accumulate(c[0]) * accumulate(state)).sum()))

        relevance = flow.pull(tokens, rows, all_columns=True, visit=visit)
        logit = float(flow.explained_logits.mean())
        count, name = len(flow.replayer.blocks), flow.composite.name
    places = [(count, "readout")]
    places += [(layer, part) for layer in reversed(range(count)) for part in ("mlp", "attention")]
    totals = [logit, *arrived, float(relevance.sum())]
    steps = [
        Step(layer, part, entering, leaving)
        for (layer, part), entering, leaving in zip(places, totals, totals[1:], strict=False)
    ]
    return Conservation(name, logit, tuple(steps))


def _residual_states(blocks: Sequence[Any], pull: Any, tokens: Tokens) -> list[dict[str, Tensor]]:
    """Return for each layer the residual stream (N, d) after attention and after the MLP, of a replay."""
    states: list[dict[str, Tensor]] = [{} for _ in blocks]
    hooks = []

    def before_mlp(of_block: dict[str, Tensor], _module: Any, inputs: tuple[Tensor, ...]) -> None:
        of_block.setdefault("attention", inputs[0][0])

    def after(of_block: dict[str, Tensor], _module: Any, _inputs: Any, output: Any) -> None:
        of_block.setdefault("mlp", output[0] if isinstance(output, Tensor) else output[0][0])

    for block, of_block in zip(blocks, states, strict=True):
        entrance = block.norms.get("mlp_norm", block.mlp)
        hooks.append(entrance.register_forward_pre_hook(partial(before_mlp, of_block)))
        hooks.append(block.layer.register_forward_hook(partial(after, of_block)))
    try:
        pull(tokens, torch.zeros(1, len(tokens.response_ids)))
    finally:
        for hook in hooks:
            hook.remove()
    return states
