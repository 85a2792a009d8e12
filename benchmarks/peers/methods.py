"""The peers: ways to the relevance of one example, each on a plain Hugging Face model.

Runs in every environment, so only torch and the harness are imported before a peer needs more.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
import warnings
from contextlib import ExitStack
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks.harness import Example, graph_of, plain_forward


class Peer:
    """One way to the relevance of one example: n prompt tokens, t response tokens, R* is t x n.

    Those that get R_response or R_prompt without going through R* row by row have the methods `response`,
    which returns (t,), and `prompt`, which returns (n,).
    """

    packages: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()
    """Which of response and prompt it gets without going through R* row by row."""
    agrees_with: ClassVar[str] = ""
    """The composite whose relevance this should be; empty where it explains something else."""

    def __init__(self, model: Any, example: Example, composite: str = "attnlrp") -> None:
        """`composite` is for `Ours` only."""
        self.model, self.example, self.composite = model, example, composite
        self.n, self.t = len(example.prompt_ids), len(example.response_ids)
        self.set_up()

    def set_up(self) -> None:
        """What is done once, and is not timed."""

    @classmethod
    def prepare(cls) -> None:
        """Import what the peer needs, before a model is loaded."""
        for package in cls.packages:
            importlib.import_module(package)

    def forward(self) -> Tensor:
        """The explained logits (t,) of a plain forward pass."""
        logits = plain_forward(self.model, self.example)
        return logits[torch.arange(self.t), list(self.example.response_ids)]

    def row(self, j: int) -> Tensor:
        """Relevance (n,) for response token j."""
        raise NotImplementedError


class Ours(Peer):
    """lrp4rag: one pushed tangent, one pulled cotangent, and rows of R*. Public API only."""

    packages = ("lrp4rag",)
    whole = ("response", "prompt")

    def set_up(self) -> None:
        from lrp4rag.lrp import relevance_mode

        self._open = ExitStack()
        self._flow: Any = self._open.enter_context(relevance_mode(self.model, self.composite))

    def forward(self) -> Tensor:
        self._open.close()  # plain means unpatched
        logits = super().forward()
        self.set_up()
        return logits

    def response(self) -> Tensor:
        relevance: Tensor = self._flow.push(self.example, self.example.mean_prompt)[0]
        return relevance

    def prompt(self) -> Tensor:
        self._flow.forget()
        relevance: Tensor = self._flow.pull(self.example, self.example.mean_response)[0]
        return relevance

    def row(self, j: int) -> Tensor:
        row: Tensor = self._flow.pull(self.example, torch.eye(self.t)[j : j + 1])[0]
        return row


class Lxt(Peer):
    """LXT 2 (AttnLRP, Achtibat et al., ICML 2024, arXiv 2402.05602) at its best.

    Efficient mode, sdpa attention, logits of the response rows only, gradients of the embeddings only,
    one graph that is kept: one backward pass per row. R_prompt is one backward pass of the logits' mean.

    `forward` is the patched model without gradients: LXT changes a module's classes for good, and its
    forward pass does the same arithmetic as the plain one.
    """

    packages = ("lxt",)
    whole = ("prompt",)
    agrees_with = "attnlrp"

    def set_up(self) -> None:
        if type(self.model).__name__ != "LlamaForCausalLM":
            raise TypeError(f"this benchmark patches Llama only, not {type(self.model).__name__}")
        self._graph: tuple[Tensor, Tensor] | None = None  # embeddings (1, N, d), explained logits (t,)

    @classmethod
    def prepare(cls) -> None:
        """Let LXT patch Llama's classes.

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
        from transformers.models.llama import modeling_llama

        monkey_patch(modeling_llama)

    def prompt(self) -> Tensor:
        self._graph = None  # free the last graph before the next is built
        return self._backward(torch.full((self.t,), 1 / self.t))

    def row(self, j: int) -> Tensor:
        return self._backward(torch.eye(self.t)[j])

    def _backward(self, weights: Tensor) -> Tensor:
        if self._graph is None:
            embeddings, logits = graph_of(self.model, self.example.inputs, self.t)
            self._graph = embeddings, logits[torch.arange(self.t), list(self.example.response_ids)]
        embeddings, explained = self._graph
        (gradient,) = torch.autograd.grad(explained, embeddings, weights, retain_graph=True)
        return (gradient * embeddings.detach())[0, : self.n].sum(-1)


class PaperLoop(Peer):
    """The paper's algorithm (LRP4RAG, arXiv 2408.15533, section 3): a forward and a backward pass for every
    response token, on a prefix that grows by one each time.

    Eqs. 1-4 as written telescope to Gradient x Input, which is what a plain model gives. Tuned where that
    changes nothing: sdpa attention, the last position's logits only, gradients of the embeddings only.
    """

    agrees_with = "paper"

    def row(self, j: int) -> Tensor:
        prefix = torch.tensor([[*self.example.prompt_ids, *self.example.response_ids[:j]]])
        embeddings, logits = graph_of(self.model, prefix, 1)
        (gradient,) = torch.autograd.grad(logits[-1, self.example.response_ids[j]], embeddings)
        return (gradient * embeddings.detach())[0, : self.n].sum(-1)


class IdTokenizer:
    """What captum asks of a tokenizer, for a text that is token ids with blanks between them."""

    def encode(self, text: str, add_special_tokens: bool = True, return_tensors: str | None = None) -> Any:
        ids = [int(word) for word in text.split()]
        return torch.tensor([ids]) if return_tensors else ids

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        offsets = [match.span() for match in re.finditer(r"\d+", text)]
        return {"input_ids": self.encode(text), "offset_mapping": offsets}

    def decode(self, token_ids: Tensor) -> str:
        return " ".join(str(token) for token in token_ids.tolist())

    def convert_ids_to_tokens(self, token_ids: list[int]) -> list[str]:
        return [str(token) for token in token_ids]


class CaptumGradient(Peer):
    """`LLMGradientAttribution` with Layer Gradient x Activation, of the token's log-probability: t forwards
    and t backwards."""

    packages = ("captum",)

    def set_up(self) -> None:
        from captum.attr import LayerGradientXActivation, LLMGradientAttribution

        embeddings = self.model.get_input_embeddings()
        embeddings.weight.requires_grad_(True)  # captum takes the gradient of what this layer gives
        self._method = LLMGradientAttribution(LayerGradientXActivation(self.model, embeddings), IdTokenizer())

    def row(self, j: int) -> Tensor:
        """What one turn of captum's own loop does: the tokens before j as the input, token j explained."""
        from captum.attr import TextTokenInput

        prefix = " ".join(str(token) for token in (*self.example.prompt_ids, *self.example.response_ids[:j]))
        target = torch.tensor(self.example.response_ids[j : j + 1])
        attribution = self._method.attribute(TextTokenInput(prefix, IdTokenizer()), target=target)
        row: Tensor = attribution.token_attr[0, : self.n]
        return row


PEERS: dict[str, type[Peer]] = {
    "ours": Ours,
    "lxt": Lxt,
    "paper-loop": PaperLoop,
    "captum-gradient": CaptumGradient,
}
