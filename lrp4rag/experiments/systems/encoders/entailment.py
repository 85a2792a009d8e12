"""`Entailment`: does a premise support a hypothesis? One interface for every model that answers that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders.running import autocast, padded_batches, tokens_read
from lrp4rag.experiments.systems.encoders.t5 import load_hhem, load_minicheck
from lrp4rag.experiments.systems.encoders.weights import identified, load_encoder

LONGEST = 512  # tokens of a pair

Pair = tuple[str, str]
"""Premise and hypothesis."""

SUPPORT = ("entailment", "entail", "supported", "consistent", "factual", "aligned")
"""What the label of support is called."""


class Entailment(Protocol):
    """Anything that gives the probability of support."""

    @property
    def name(self) -> str: ...

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """That each premise supports its hypothesis, (pairs,)."""


PUBLISHED: dict[str, Callable[..., Entailment]] = {"hhem": load_hhem, "minicheck": load_minicheck}
"""Published models that transformers does not load by itself, by their short names."""
PICKLED = ("alignscore", "yzha/AlignScore")


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A sequence classifier that reads premise and hypothesis together; `support` is the number of the label
    that means support, None for a single logit."""

    name: str
    model: Any
    tokenizer: Any
    support: int | None

    @classmethod
    def load(cls, name: str, device: str | None = None) -> CrossEncoder:
        """A hub id or a folder. Raises `InputError` for a model that needs code of its own, has pickled
        weights only, no trained head, or no label that means support."""
        from transformers import AutoModelForSequenceClassification

        model, tokenizer = load_encoder(name, AutoModelForSequenceClassification, device=device, whole=True)
        return cls(identified(name), model, tokenizer, support_label(model.config, name))

    @property
    def longest(self) -> int:
        """Tokens of a pair that are read."""
        return tokens_read(self.model.config, self.tokenizer, LONGEST)

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """What exceeds `longest` is cut off the longer one of a pair."""
        import torch

        found = np.zeros(len(pairs))
        if not pairs:
            return found
        encoded = self.tokenizer(
            *map(list, zip(*pairs, strict=True)), truncation=True, max_length=self.longest
        )
        for chosen, padded in padded_batches(encoded, self.tokenizer, self.model.device):
            with torch.no_grad(), autocast(str(self.model.device)):
                logits = self.model(**padded).logits.float()
            if self.support is None:
                found[chosen] = torch.sigmoid(logits[:, 0]).cpu().numpy()
            else:
                found[chosen] = torch.softmax(logits, -1)[:, self.support].cpu().numpy()
        return found


def load_entailment(name: str, device: str | None = None) -> Entailment:
    """A short name of `PUBLISHED`, or what `CrossEncoder.load` takes, and raises."""
    if name in PICKLED:
        raise InputError(
            "AlignScore's checkpoints are pickled, which is not loaded; convert its three-label head to a "
            "folder with safetensors (labels entailment, neutral, contradiction) and name that"
        )
    return PUBLISHED[name](device=device) if name in PUBLISHED else CrossEncoder.load(name, device)


def support_label(config: Any, name: str) -> int | None:
    """The number of the label that means support, None for a model with one logit.

    Raises `InputError` where no label's name says so; two labels without names are "no" and "yes".
    """
    labels = {int(k): str(label).lower() for k, label in config.id2label.items()}
    if len(labels) == 1:
        return None
    for k, label in labels.items():
        if label in SUPPORT:
            return k
    if len(labels) == 2 and all(label == f"label_{k}" for k, label in labels.items()):
        return 1
    raise InputError(f"no label of '{name}' means support: {', '.join(labels.values())}")
