"""What is pulled back from a response: R_prompt, and the relevance of each sentence to every prompt token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrp4rag.generator.encoding import Encoded
from lrp4rag.lrp.granularity import members, response_units
from lrp4rag.lrp.propagate import Flow

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Pulled:
    """n prompt tokens, s sentences of the response; relevance in logits.

    * `prompt` (n): R_prompt, the mean over response tokens.
    * `sentences` (s, n): the mean over each sentence's tokens. `spans` (s, 2): its characters.
    * `tokens` (s): how many tokens each has; weighted by them, `sentences` averages to `prompt`.
    """

    prompt: Array
    sentences: Array
    spans: Array
    tokens: Array

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in ("prompt", "sentences", "spans", "tokens")}


def pulled(flow: Flow, encoded: Encoded) -> Pulled:
    """One cotangent for each sentence; R_prompt is their mean, since every token is in one sentence."""
    units = [unit for unit in response_units(encoded, "sentence") if unit.tokens]
    counts = np.array([len(unit.tokens) for unit in units])
    weights = members(units, len(encoded.response_ids)) / counts[:, None]
    rows = flow.pull(encoded, torch.from_numpy(weights)).detach().to("cpu", torch.float32).numpy()
    flow.forget()
    return Pulled(
        prompt=counts @ rows / counts.sum(),
        sentences=rows,
        spans=np.array([(unit.start, unit.end) for unit in units]),
        tokens=counts,
    )
