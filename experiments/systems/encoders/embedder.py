"""`Embedder`: sentences as unit vectors, whose products are their likeness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.encoders.running import outputs
from experiments.systems.encoders.weights import MINILM, load_encoder

LONGEST = 256  # tokens: what all-MiniLM-L6-v2 was trained on


@dataclass(frozen=True, slots=True)
class Embedder:
    """The mean of an encoder's last states over a text's tokens, normalised (sentence-transformers' way)."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str = MINILM, device: str | None = None) -> Embedder:
        """Raises `InputError` where the weights cannot be had."""
        from transformers import AutoModel

        return cls(*load_encoder(name, AutoModel, device=device))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, d); what exceeds `LONGEST` tokens is not read."""
        import torch

        vectors = np.zeros((len(texts), self.model.config.hidden_size), np.float32)
        if not texts:
            return vectors
        encoded = self.tokenizer(list(texts), truncation=True, max_length=LONGEST)
        for chosen, batch, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            inside = batch["attention_mask"][..., None]
            means = (output.last_hidden_state.float() * inside).sum(1) / inside.sum(1)
            vectors[chosen] = torch.nn.functional.normalize(means, dim=-1).cpu().numpy()
        return vectors
