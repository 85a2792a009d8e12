"""LXT 2 (AttnLRP, Achtibat et al., ICML 2024, arXiv 2402.05602) at its best.

Efficient mode, sdpa attention, logits of the response rows only, gradients of the embeddings only,
one graph that is kept: one backward pass per row. R_prompt is one backward pass of the logits' mean.

`forward` is the patched model without gradients: LXT changes a module's classes for good, and its
forward pass does the same arithmetic as the plain one.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from typing import Any

import torch
from torch import Tensor
from transformers.models.llama import modeling_llama

from benchmarks.harness import Example
from benchmarks.peers.worker import Peer, serve


class Lxt(Peer):
    packages = ("lxt",)
    whole = ("prompt",)
    picks = 3
    agrees_with = "attnlrp"

    def __init__(self, model: Any, example: Example, task: dict[str, Any]) -> None:
        super().__init__(model, example, task)
        if not isinstance(model, modeling_llama.LlamaForCausalLM):
            raise TypeError(f"this benchmark patches Llama only, not {type(model).__name__}")
        self._graph: tuple[Tensor, Tensor] | None = None  # embeddings (1, N, d), explained logits (t,)

    def prompt(self) -> Tensor:
        self._graph = self._build()
        return self._backward(torch.full((self.t,), 1 / self.t))

    def units(self, first: int, count: int) -> Tensor:
        return torch.stack([self._backward(row) for row in torch.eye(self.t)[first : first + count]])

    def forget(self) -> None:
        self._graph = None

    def _build(self) -> tuple[Tensor, Tensor]:
        self._graph = None  # free the last graph before the next is built
        embeddings = self.model.get_input_embeddings()(self.example.inputs).detach().requires_grad_()
        logits = self.model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=self.t).logits[0]
        return embeddings, logits[torch.arange(self.t), list(self.example.response_ids)]

    def _backward(self, weights: Tensor) -> Tensor:
        self._graph = self._graph or self._build()
        embeddings, logits = self._graph
        (gradient,) = torch.autograd.grad(logits, embeddings, weights, retain_graph=True)
        return (gradient * embeddings.detach())[0, : self.n].sum(-1)


def load() -> None:
    """Import LXT and let it patch Llama's classes.

    LXT imports torchvision for the patches of its vision transformers, which are not used here. Where
    it is missing (its wheels on PyPI need CUDA libraries), an empty module with the one name that LXT
    reads stands in.
    """
    warnings.filterwarnings("ignore", message="'zennit' library is not available")
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        models = types.ModuleType("torchvision.models")
        models.vision_transformer = types.ModuleType("vision_transformer")  # type: ignore[attr-defined]
        models.vision_transformer.nn = torch.nn
        sys.modules["torchvision.models"] = models
        sys.modules["torchvision"] = types.ModuleType("torchvision")
    from lxt.efficient import monkey_patch  # type: ignore[import-not-found]

    monkey_patch(modeling_llama)


if __name__ == "__main__":
    load()
    serve(Lxt)
