"""Relevance of the default reader on a device against that on the CPU, both in float32."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.common import Example
from lrp4rag.errors import InputError
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.stream import stream
from lrp4rag.reader import load_reader

PROMPT, RESPONSE = 150, 12


def check(device: torch.device) -> dict[str, float] | None:
    """The largest difference of each quantity over its largest value; None without the default reader.

    The prompt is longer than one block of attention's queries.
    """
    try:
        here, there = quantities("cpu"), quantities(str(device))
    except InputError:
        return None
    return {
        name: float((values - here[name]).abs().max() / here[name].abs().max())
        for name, values in there.items()
    }


def quantities(device: str) -> dict[str, torch.Tensor]:
    model = load_reader(device=device).model.requires_grad_(False)
    example = Example.random(PROMPT, RESPONSE, model.config.vocab_size)
    other = Example(example.prompt_ids, example.response_ids[::-1][: RESPONSE // 2])
    segments = (torch.arange(PROMPT) * 3 // PROMPT == torch.arange(3)[:, None]).float()
    with relevance_mode(model) as flow:
        found = {
            "by segment": flow.push(example, segments),
            "R_prompt": flow.pull(example, torch.full((1, RESPONSE), 1 / RESPONSE)),
            "R*": flow.pull(example),
            "shared prefix": torch.cat(flow.push_shared([example, other], segments), 1),
            "batch": torch.cat(flow.push_batch([example, other], [segments, segments]), 1),
        }
        tokens = list(stream(flow, example.prompt_ids, segments, max_new_tokens=4, stop_ids=()))
        found["stream"] = torch.from_numpy(np.stack([token.relevance for token in tokens]))
    return {name: values.cpu() for name, values in found.items()}
