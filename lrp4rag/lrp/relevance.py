"""`Relevance`: the result of attribution, a frozen record of tokens, offsets and float32 arrays."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrp4rag.reader.encoding import Encoded
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import place_at
from lrp4rag.util.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from captum.attr import LLMAttributionResult

Array = NDArray[np.float32]
KIND = "relevance"
DESCRIPTION = ("composite", "target", "reader", "layer")


def as_array(values: Tensor) -> Array:
    """Return a copy as float32 in main memory."""
    return np.array(values.detach().to("cpu", torch.float32).numpy())


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """Relevance between n prompt tokens and t response tokens, in logits.

    Only `response` and `logits` are always there; the others are what attribution was asked for.

    * `response` (t): R_response, the mean of R* over the prompt tokens.
    * `by_segment` (segments, t): the sum of R* over each segment's tokens.
    * `prompt` (n): R_prompt, the mean of R* over the response tokens.
    * `matrix` (t, n): R*.
    * `resampled` (L_r, L_p): R* resampled by `lrp4rag.lrp.resample`.
    * `logits` (t): the explained logits.
    * `own` (t): the sum of R* over the response's earlier tokens.

    With `layer` > 0 relevance is that of the residual stream at the input of that decoder layer, at the
    same positions, rather than of the embeddings.
    """

    encoded: Encoded
    composite: str
    target: str
    reader: dict[str, Any]
    logits: Array
    response: Array
    by_segment: Array | None = None
    prompt: Array | None = None
    matrix: Array | None = None
    resampled: Array | None = None
    own: Array | None = None
    layer: int = 0

    @property
    def total(self) -> Array:
        """The sum of R* over the prompt tokens (t): n R_response, which does not shrink as prompts grow."""
        return self.response * len(self.encoded.prompt_ids)

    @property
    def prompt_tokens(self) -> list[str]:
        return [self.encoded.text[start:end] for start, end in self.encoded.prompt_offsets]

    @property
    def response_tokens(self) -> list[str]:
        return [self.encoded.response[start:end] for start, end in self.encoded.response_offsets]

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Write one safetensors file, its header holding the rest as JSON; whole or not at all.

        `name` is what a store calls it. Raises `LRP4RAGError` for NaN or Inf.
        """
        record = {key: getattr(self, key) for key in DESCRIPTION} | {"encoded": asdict(self.encoded)}
        write_tensors(place_at(path), KIND, self._arrays(), record, name)

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> Relevance:
        """Read what `save` wrote, as this `name` where one is given; raises `InputError` for anything else,
        also where a bit of it has changed."""
        record, arrays = read_tensors(place_at(path), KIND, None, name)
        try:
            description: dict[str, Any] = {key: record[key] for key in DESCRIPTION}
            return cls(Encoded.of(record["encoded"]), **description | arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a relevance file: {error}", path=path) from error

    def to_captum(self) -> LLMAttributionResult:
        """Convert to captum's result type: needs `matrix`, or else `prompt` (its sequence attribution is t
        R_prompt)."""
        from captum.attr import LLMAttributionResult

        if self.matrix is not None:
            summed = self.matrix.sum(0)
        elif self.prompt is not None:
            summed = self.prompt * len(self.response)
        else:
            raise LRP4RAGError("to_captum needs relevance with matrix=True or prompt=True")
        return LLMAttributionResult(
            input_tokens=self.prompt_tokens,
            output_tokens=self.response_tokens,
            seq_attr=torch.tensor(summed),
            token_attr=None if self.matrix is None else torch.tensor(self.matrix),
        )

    def _arrays(self) -> dict[str, Array]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
