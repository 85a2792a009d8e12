"""captum's attribution for language models, by gradients and by ablation.

Both explain log-probabilities, where relevance explains logits, so their numbers are others. Token ids
are given as they are: the tokenizer here only hands them on, so that no text has to be encoded.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import torch
from captum.attr import (
    FeatureAblation,
    LayerGradientXActivation,
    LLMAttribution,
    LLMGradientAttribution,
    TextTokenInput,
)
from torch import Tensor

from benchmarks.harness import Example
from benchmarks.peers.worker import Peer, serve


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
    """`LLMGradientAttribution` with Layer Gradient x Activation: t forwards and t backwards."""

    packages = ("captum",)
    explains = "the response token's log-probability"

    def __init__(self, model: Any, example: Example, task: dict[str, Any]) -> None:
        super().__init__(model, example, task)
        embeddings = model.get_input_embeddings()
        embeddings.weight.requires_grad_(True)  # captum takes the gradient of what this layer gives
        self._method = LLMGradientAttribution(LayerGradientXActivation(model, embeddings), IdTokenizer())

    def units(self, first: int, count: int) -> Tensor:
        return torch.stack([self._row(j) for j in range(first, first + count)])

    def _row(self, j: int) -> Tensor:
        """What one turn of captum's own loop does: the tokens before j as the input, token j explained."""
        prefix = " ".join(str(token) for token in (*self.example.prompt_ids, *self.example.response_ids[:j]))
        inputs = TextTokenInput(prefix, IdTokenizer())
        target = torch.tensor(self.example.response_ids[j : j + 1])
        row: Tensor = self._method.attribute(inputs, target=target).token_attr[0, : self.n]
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

    def __init__(self, model: Any, example: Example, task: dict[str, Any]) -> None:
        super().__init__(model, example, task)
        self._method = LLMAttribution(FeatureAblation(model), IdTokenizer())
        self._text = " ".join(str(token) for token in example.prompt_ids)

    @torch.no_grad()
    def units(self, first: int, count: int) -> Tensor:
        wanted = set(self.example.prompt_ids[first : first + count])
        skipped = [token for token in set(self.example.prompt_ids) if token not in wanted]
        inputs = TextTokenInput(self._text, IdTokenizer(), skip_tokens=skipped)
        if inputs.n_itp_features != count:
            raise ValueError("captum skips by token id, and a timed token occurs twice in the prompt")
        target = torch.tensor(self.example.response_ids)
        columns: Tensor = self._method.attribute(inputs, target=target, forward_in_tokens=False).token_attr
        return columns


if __name__ == "__main__":
    serve({"captum-gradient": CaptumGradient, "captum-ablation": CaptumAblation}[sys.argv[1]])
