"""What is read from the final state: the explained logit of each response token, and how likely it is.

The readout is linear in the final state, but for soft caps, so relevance for any target is free with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from lrp4rag.lrp.activations import cap_factor
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families.family import is_plain, plain_matrix
from lrp4rag.lrp.rules import accumulate
from lrp4rag.reader.placement import device_of, weight_of
from lrp4rag.util.errors import InputError, LRP4RAGError

Logit = Literal["response", "largest", "mean"]

PROBED_ROWS = 256


@dataclass(frozen=True, slots=True)
class Target:
    """The explained quantity: logit `of`, less logit `minus` where there is one.

    "response" is the response's own token, "largest" the reader's largest logit (the paper's text), "mean"
    that over the vocabulary. `minus` may also be token ids, one for each response token or for all.
    """

    of: Logit = "response"
    minus: Logit | tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        if self.minus is None:
            return self.of
        if isinstance(self.minus, str):
            return f"{self.of}-{self.minus}"
        return f"{self.of}-tokens:{','.join(str(token) for token in self.minus)}"


_PLAIN = (Target("response"), Target("largest"), Target("mean"))
_CONTRASTS = (Target("response", "mean"), Target("response", "largest"), Target("largest", "mean"))
TARGETS = {target.name: target for target in (*_PLAIN, *_CONTRASTS)}


def target_named(name: str | Target) -> Target:
    """Return the target called `name`; raises `InputError` that lists the known ones."""
    if isinstance(name, Target):
        return name
    if name not in TARGETS:
        raise InputError(f"unknown target '{name}'; choose from {', '.join(TARGETS)}")
    return TARGETS[name]


@dataclass(frozen=True, slots=True)
class Explained:
    """The explained logits (t,), and the row (t, d) that reads each from the final state's tangents."""

    logits: Tensor
    rows: Tensor

    def read(self, tangents: Tensor) -> Tensor:
        """Return relevance (T, t), in logits, of tangents of the final state (T, t, d)."""
        return (accumulate(tangents) * accumulate(self.rows)).sum(-1)


class Readout:
    """The output embedding of a model under a composite."""

    def __init__(self, model: Any, composite: Composite) -> None:
        self.head, self._embedding = model.get_output_embeddings(), model.get_input_embeddings()
        self.composite = composite
        self.cap: float | None = getattr(model.config, "final_logit_softcapping", None)

    @property
    def matrix(self) -> Tensor:
        """(vocabulary, d); loaded each time where the layer is away."""
        return plain_matrix(self.head) if is_plain(self.head) else self._kernel

    @cached_property
    def _kernel(self) -> Tensor:
        table = self._embedding.weight
        return kernel_matrix(self.head, table.shape[1], table.dtype, device_of(self.head))

    @cached_property
    def _mean_row(self) -> Tensor:
        return accumulate(self.matrix).mean(0)

    def capped(self, logits: Tensor) -> Tensor:
        """Return logits as the model puts them out, from those of its output embedding."""
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)

    def explain(
        self, hidden: Tensor, response_ids: Tensor, target: Target, logits: Tensor | None = None
    ) -> Explained:
        """Explain states `hidden` (t, d), whose `logits` (t, vocabulary) may be known."""
        explained = self._logit(target.of, hidden, response_ids, logits)
        if target.minus is None:
            return explained
        if isinstance(target.minus, str):
            contrast = self._logit(target.minus, hidden, response_ids, logits)
        else:
            contrast = self._tokens(hidden, self._contrast_ids(target.minus, response_ids))
        rows = accumulate(explained.rows) - accumulate(contrast.rows)
        return Explained(explained.logits - contrast.logits, rows.to(hidden.dtype))

    def _contrast_ids(self, minus: tuple[int, ...], response_ids: Tensor) -> Tensor:
        if len(minus) not in (1, len(response_ids)):
            raise LRP4RAGError(
                f"a contrast needs one token, or one for each of {len(response_ids)}, not {len(minus)}"
            )
        size = len(self.matrix)
        if not all(0 <= token < size for token in minus):
            raise LRP4RAGError(f"a contrast's token ids must be from 0 to {size - 1}")
        return torch.tensor(minus, device=response_ids.device).expand(len(response_ids))

    def _logit(self, which: Logit, hidden: Tensor, response_ids: Tensor, logits: Tensor | None) -> Explained:
        if which == "response":
            return self._tokens(hidden, response_ids)
        logits = (self.head(hidden) if logits is None else logits).to(hidden.device)
        return self._tokens(hidden, logits.argmax(-1)) if which == "largest" else self._mean(hidden, logits)

    def _tokens(self, hidden: Tensor, ids: Tensor) -> Explained:
        matrix = self.matrix
        rows = matrix[ids.to(matrix.device)].to(hidden.device)
        logits = (accumulate(hidden) * accumulate(rows)).sum(-1)
        if getattr(self.head, "bias", None) is not None:
            bias = weight_of(self.head, "bias")
            logits = logits + bias[ids.to(bias.device)].to(hidden.device)
        if self.cap is None:
            return Explained(logits, rows)
        logits, factor = cap_factor(logits, self.cap, self.composite)
        return Explained(logits, (factor[:, None] * accumulate(rows)).to(hidden.dtype))

    def _mean(self, hidden: Tensor, logits: Tensor) -> Explained:
        if self.cap is None:
            row = self._mean_row.to(hidden)
            return Explained(accumulate(logits).mean(-1), row.expand_as(hidden))
        capped, factor = cap_factor(accumulate(logits), self.cap, self.composite)
        matrix = self.matrix
        rows = (factor.to(matrix) @ matrix / len(matrix)).to(hidden)
        return Explained(capped.mean(-1), rows)


@torch.no_grad()
def kernel_matrix(module: Any, inputs: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return any linear layer's weights (out, in), in the layer's own arithmetic where no other way is
    known."""
    if is_plain(module):
        return plain_matrix(module)
    weight: Any = getattr(module, "weight", None)
    # Every tensor has the method, and on a kernel's packed bytes it gives nonsense: only a class that
    # brings its own, as torchao's do, knows what it holds.
    if isinstance(weight, Tensor) and type(weight).dequantize is not Tensor.dequantize:
        return weight.dequantize()
    bias = module(torch.zeros((1, inputs), dtype=dtype, device=device))
    eye = torch.eye(inputs, dtype=dtype, device=device)
    return torch.cat([(module(rows) - bias).T for rows in eye.split(PROBED_ROWS)], dim=1)
