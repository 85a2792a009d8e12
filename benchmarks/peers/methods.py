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

    Those that get R_response or R_prompt whole have the methods `response`, which returns (t,), and `prompt`,
    which returns (n,), starts from nothing and keeps what units share (a graph, a replay).
    """

    packages: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()
    """Which of response and prompt it gets without going through R* row by row."""
    axis: ClassVar[str] = "row"
    """What a unit is: a row of R* (there are t) or a column (n)."""
    chunk: ClassVar[int] = 1
    """Units that it does at a time."""
    picks: ClassVar[int] = 1
    """How many times `units` is timed in a round."""
    extra_units: ClassVar[int] = 0
    """Passes of a call of `units` that belong to no unit, and are needed once for all of them."""
    agrees_with: str = ""
    """The composite whose relevance this should be; empty where it explains something else."""
    explains: ClassVar[str] = "the response token's logit"

    def __init__(self, model: Any, example: Example, folder: str = "", composite: str = "") -> None:
        """`folder` is where the model was loaded from; `composite` is for `Ours` only."""
        self.model, self.example, self.folder, self.composite = model, example, folder, composite
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

    def units(self, first: int, count: int) -> Tensor:
        """Rows (count, n) of R*, or columns (t, count)."""
        return torch.stack([self.row(j) for j in range(first, first + count)])

    def row(self, j: int) -> Tensor:
        """Relevance (n,) for response token j, where rows are computed one at a time."""
        raise NotImplementedError

    def forget(self) -> None:
        """Free what is kept."""


class Ours(Peer):
    """lrp4rag: one pushed tangent, one pulled cotangent, and chunks of eight rows. Public API only."""

    packages = ("lrp4rag",)
    whole = ("response", "prompt")
    chunk = 8  # what `pull` without weights does at a time

    def set_up(self) -> None:
        self.agrees_with = self.composite
        self._open = ExitStack()
        self._known: Any = None
        self._flow()  # checks the logits once, which is not timed

    def forward(self) -> Tensor:
        self._open.close()  # plain means unpatched
        self._known = None
        return super().forward()

    def response(self) -> Tensor:
        relevance: Tensor = self._flow().push(self.example, self.example.mean_prompt)[0]
        return relevance

    def prompt(self) -> Tensor:
        self.forget()
        relevance: Tensor = self._flow().pull(self.example, self.example.mean_response)[0]
        return relevance

    def units(self, first: int, count: int) -> Tensor:
        rows: Tensor = self._flow().pull(self.example, torch.eye(self.t)[first : first + count])
        return rows

    def forget(self) -> None:
        self._flow().forget()

    def _flow(self) -> Any:
        from lrp4rag.lrp import relevance_mode

        if self._known is None:
            self._known = self._open.enter_context(relevance_mode(self.model, self.agrees_with))
        return self._known


class Lxt(Peer):
    """LXT 2 (AttnLRP, Achtibat et al., ICML 2024, arXiv 2402.05602) at its best.

    Efficient mode, sdpa attention, logits of the response rows only, gradients of the embeddings only,
    one graph that is kept: one backward pass per row. R_prompt is one backward pass of the logits' mean.

    `forward` is the patched model without gradients: LXT changes a module's classes for good, and its
    forward pass does the same arithmetic as the plain one.
    """

    packages = ("lxt",)
    whole = ("prompt",)
    picks = 3
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

    def forget(self) -> None:
        self._graph = None

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
    """What captum asks of a tokenizer, for a text that is token ids with blanks between them: the ids are
    handed on as they are, and no text has to be encoded."""

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
    """`LLMGradientAttribution` with Layer Gradient x Activation: t forwards and t backwards."""

    packages = ("captum",)
    explains = "the response token's log-probability"

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
        found = self._method.attribute(TextTokenInput(prefix, IdTokenizer()), target=target)
        row: Tensor = found.token_attr[0, : self.n]
        return row


class CaptumAblation(Peer):
    """`LLMAttribution` with Feature Ablation: one forward per prompt token, all t tokens at once.

    At its best: the whole sequence in one pass (`forward_in_tokens=False`). Columns are timed by
    ablating a few tokens only; every call also runs the unablated sequence.
    """

    packages = ("captum",)
    axis = "column"
    extra_units = 1
    explains = "the change of the log-probability when a prompt token becomes another"

    @torch.no_grad()
    def units(self, first: int, count: int) -> Tensor:
        from captum.attr import FeatureAblation, LLMAttribution, TextTokenInput

        wanted = set(self.example.prompt_ids[first : first + count])
        skipped = [token for token in set(self.example.prompt_ids) if token not in wanted]
        text = " ".join(str(token) for token in self.example.prompt_ids)
        inputs = TextTokenInput(text, IdTokenizer(), skip_tokens=skipped)
        if inputs.n_itp_features != count:
            raise ValueError("captum skips by token id, and a timed token occurs twice in the prompt")
        method = LLMAttribution(FeatureAblation(self.model), IdTokenizer())
        target = torch.tensor(self.example.response_ids)
        columns: Tensor = method.attribute(inputs, target=target, forward_in_tokens=False).token_attr
        return columns


class Inseq(Peer):
    """inseq with `input_x_gradient` of the logit: a forward and a backward pass per response token.

    inseq takes texts, so the example's tokens must survive decoding and encoding; that is checked.
    """

    packages = ("inseq",)
    agrees_with = "paper"

    def set_up(self) -> None:
        import inseq  # type: ignore[import-not-found]
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False)
        ids = [*self.example.prompt_ids, *self.example.response_ids]
        self._prompt, self._text = tokenizer.decode(ids[: self.n]), tokenizer.decode(ids)
        if tokenizer(self._text)["input_ids"] != ids:
            raise ValueError("inseq takes texts, and this example's text encodes to other tokens")
        self._model = inseq.load_model(self.model, "input_x_gradient", tokenizer=tokenizer)

    def units(self, first: int, count: int) -> Tensor:
        start = self.n + first
        output = self._model.attribute(
            self._prompt,
            self._text,
            attr_pos_start=start,
            attr_pos_end=start + count,
            attributed_fn="logit",
            show_progress=False,
        )
        # (tokens, rows, d): inseq leaves the sum over the embedding's entries to its aggregators.
        values: Tensor = output.sequence_attributions[0].target_attributions
        return values[: self.n].sum(-1).T


PEERS: dict[str, type[Peer]] = {
    "ours": Ours,
    "lxt": Lxt,
    "paper-loop": PaperLoop,
    "captum-gradient": CaptumGradient,
    "captum-ablation": CaptumAblation,
    "inseq": Inseq,
}
