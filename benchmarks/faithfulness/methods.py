"""The compared methods under one protocol: (reader, encoded, row weights) -> relevance per prompt token."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.faithfulness.from_captum import feature_ablation, integrated_gradients
from benchmarks.faithfulness.rollout import attention_rollout
from lrp4rag.errors import RelevanceError
from lrp4rag.lrp import relevance_mode
from lrp4rag.reader import Encoded, Reader

Array = NDArray[np.float64]
Method = Callable[[Reader, Encoded, Tensor], Tensor]
"""Weights (t,) over response tokens say what is explained: sum_j w_j z_j. Returns (n,)."""

OURS = ("attnlrp", "cp_lrp", "paper")


def composite(name: str) -> Method:
    """Relevance under one of lrp4rag's composites: one pulled cotangent."""

    def method(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
        with relevance_mode(reader.model, name) as flow:
            return flow.pull(encoded, weights[None])[0]

    return method


def gradient_norm(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """The L2 norm of the gradient by each token's embedding (Simonyan et al. 2014); never negative."""
    model, n = reader.model, len(encoded.prompt_ids)
    table = model.get_input_embeddings()
    last = int(weights.nonzero()[-1])
    ids = torch.tensor([*encoded.prompt_ids, *encoded.response_ids], device=table.weight.device)
    embeddings = table(ids[None, : n + last]).detach().requires_grad_()
    with torch.enable_grad():
        logits = model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=last + 1).logits[0]
        picked = logits.gather(-1, ids[n : n + last + 1, None])[:, 0]
        value = (picked * weights[: last + 1].to(picked)).sum()
        (gradient,) = torch.autograd.grad(value, embeddings)
    norms: Tensor = gradient[0, :n].norm(dim=-1)
    return norms


def random_relevance(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """Uniform noise around zero, the same for the same prompt and response."""
    seed = zlib.crc32(np.array([*encoded.prompt_ids, -1, *encoded.response_ids]).tobytes())
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(len(encoded.prompt_ids), generator=generator, dtype=torch.float64) - 0.5


METHODS: dict[str, Method] = {
    **{name: composite(name) for name in OURS},
    "gradient_norm": gradient_norm,
    "integrated_gradients": integrated_gradients,
    "feature_ablation": feature_ablation,
    "attention_rollout": attention_rollout,
    "random": random_relevance,
}


@dataclass(frozen=True)
class Attributor:
    """The methods on one reader. What was computed is remembered, since experiments share prompts.

    Where the answer is one token, they also share what is explained.
    """

    reader: Reader
    known: dict[Hashable, Array] = field(default_factory=dict)

    def relevance(self, name: str, encoded: Encoded, weights: Tensor) -> Array:
        """The method's relevance (n,), checked: one finite value a prompt token."""
        key = (name, encoded.prompt_ids, encoded.response_ids, tuple(weights.tolist()))
        if key not in self.known:
            values = METHODS[name](self.reader, encoded, weights).detach().to("cpu", torch.float64).numpy()
            if values.shape != (len(encoded.prompt_ids),) or not np.isfinite(values).all():
                raise RelevanceError(f"{name} gave no finite value for each prompt token")
            self.known[key] = values
        return self.known[key]
