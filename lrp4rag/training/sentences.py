"""What is pulled back: R_prompt of the response, and the relevance of each sentence to every prompt token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrp4rag.lrp.attribute import as_array, pull_mean
from lrp4rag.lrp.granularity import members, response_units
from lrp4rag.lrp.propagate import Flow
from lrp4rag.reader.encoding import Encoded

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """n prompt tokens, s sentences of the response; relevance in logits.

    * `sentences` (s, n): the mean of R* over each sentence's tokens. `spans` (s, 2): its characters.
    * `tokens` (s): how many tokens each has.
    """

    sentences: Array
    spans: Array
    tokens: Array

    @property
    def prompt(self) -> Array:
        """R_prompt (n): every token is in one sentence, so it is their mean, weighted by `tokens`."""
        mean: Array = self.tokens @ self.sentences / self.tokens.sum()
        return mean

    def arrays(self) -> dict[str, Array]:
        return {"sentences": self.sentences, "spans": self.spans, "tokens": self.tokens}


def pull_prompt(flow: Flow, encoded: Encoded) -> Array:
    """R_prompt (n), by one cotangent."""
    prompt = as_array(pull_mean(flow, encoded))
    flow.forget()
    return prompt


def pull_sentences(flow: Flow, encoded: Encoded) -> Sentences:
    """One cotangent for each sentence."""
    units = [unit for unit in response_units(encoded, "sentence") if unit.tokens]
    counts = np.array([len(unit.tokens) for unit in units])
    weights = members(units, len(encoded.response_ids)) / counts[:, None]
    rows = as_array(flow.pull(encoded, torch.from_numpy(weights)))
    flow.forget()
    return Sentences(rows, np.array([(unit.start, unit.end) for unit in units]), counts)
