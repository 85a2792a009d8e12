"""`TokenClassifier`: an encoder that finds hallucinated tokens of a response (LettuceDetect's way)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.encoders.running import encoded_pair, outputs, tokens_read
from experiments.systems.encoders.training import IGNORED, Item
from experiments.systems.encoders.weights import identified, load_encoder
from experiments.systems.scoring import PartScores
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.util.errors import InputError

LONGEST = 4096  # tokens of a window: what the published models were trained on


@dataclass(frozen=True, slots=True)
class Window:
    """What is read at once: `context`, and characters `start` to `end` of the response, which are `piece`."""

    context: str
    piece: str
    start: int


@dataclass(frozen=True, slots=True)
class TokenClassifier:
    """A token classifier with two labels, the second for hallucinated tokens."""

    name: str
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str, device: str | None = None) -> TokenClassifier:
        """A hub id or a folder. Raises `InputError` as `load_encoder` does, and where the model has not two
        labels."""
        from transformers import AutoModelForTokenClassification

        model, tokenizer = load_encoder(name, AutoModelForTokenClassification, device=device, whole=True)
        if model.config.num_labels != 2:
            raise InputError(f"'{name}' has {model.config.num_labels} labels of tokens, not 2")
        return cls(identified(name), model, tokenizer)

    @property
    def longest(self) -> int:
        """Tokens of a window that are read."""
        return tokens_read(self.model.config, self.tokenizer, LONGEST)

    def __call__(self, windows: Sequence[Window]) -> list[PartScores]:
        """Of each window's piece: its tokens by their characters in the response, and the probability that
        each is hallucinated."""
        import torch

        if not windows:
            return []
        items, spans, places = zip(
            *(encoded_window(window, self.tokenizer, self.longest) for window in windows), strict=True
        )
        encoded = {name: [item[name] for item in items] for name in items[0]}
        probabilities: dict[int, NDArray[np.float64]] = {}
        for chosen, _, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            shares = torch.softmax(output.logits.float(), -1)[..., 1].double().cpu().numpy()
            probabilities |= {int(k): row[places[k]] for k, row in zip(chosen, shares, strict=True)}
        return [PartScores(span, probabilities[k]) for k, span in enumerate(spans)]


def encoded_window(
    window: Window, tokenizer: Any, longest: int
) -> tuple[Item, NDArray[np.intp], NDArray[np.intp]]:
    """The model's input, the response's characters of each token of the piece (T, 2), and the places of these
    tokens in the input (T,). Context is cut off where both do not fit (see `encoded_pair`)."""
    encoded = encoded_pair(tokenizer, window.context, window.piece, longest, return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")
    places = [k for k, which in enumerate(encoded.sequence_ids(0)) if which == 1]
    spans = np.array([offsets[k] for k in places], dtype=np.intp).reshape(-1, 2) + window.start
    return dict(encoded), spans, np.array(places, dtype=np.intp)


def labelled_window(
    window: Window, annotated: Sequence[tuple[int, int]], tokenizer: Any, longest: int
) -> Item:
    """The input with labels: 1 for tokens of the response that share a character with a span, else 0."""
    item, spans, places = encoded_window(window, tokenizer, longest)
    flags = tokens_in([(int(start), int(end)) for start, end in spans], annotated)
    labels = np.full(len(item["input_ids"]), IGNORED)
    labels[places] = flags
    return {**item, "labels": labels.tolist()}
