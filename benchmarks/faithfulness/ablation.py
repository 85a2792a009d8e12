"""(c) Passage ablation: does a passage's relevance tell how much the response needs it?

The drop is that of the response's log-probability when attention to the passage's tokens is masked, in a
plain pass of the unpatched model; positions stay as they were. A passage's relevance is the sum over its
tokens, for the sum of the response's logits. With few passages a prompt, the correlation of one
prompt is coarse, so there are two: the mean of the prompts' own Spearman correlations, and one
Spearman correlation of all passages after each prompt's mean was subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.stats import rankdata

from benchmarks.faithfulness.methods import Array, Attributor
from benchmarks.faithfulness.sample import Sample
from lrp4rag.reader import Reader


def measure_ablation(
    sample: Sample, attributor: Attributor, methods: list[str]
) -> dict[str, dict[str, object]]:
    """Each passage's relevance (logits) and drop (nats)."""
    whole, *without = response_log_probabilities(sample, attributor.reader)
    drops = whole - np.array(without)
    rows: dict[str, dict[str, object]] = {}
    for name in methods:
        relevance = attributor.relevance(name, sample.encoded, sample.response_sum())
        by_passage = [float(relevance[sample.passage(k)].sum()) for k in range(sample.encoded.passages)]
        rows[name] = {
            "spearman": spearman(by_passage, drops),
            "relevance": by_passage,
            "drop": drops.tolist(),
        }
    return rows


@torch.no_grad()
def response_log_probabilities(sample: Sample, reader: Reader) -> Array:
    """Of the whole response, in nats: with all passages, then without each, (1 + passages,)."""
    encoded, model = sample.encoded, reader.model
    device = model.get_input_embeddings().weight.device
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    ids = torch.tensor([*encoded.prompt_ids, *encoded.response_ids], device=device)
    masks = np.ones((1 + encoded.passages, n + t - 1), dtype=np.int64)
    for k in range(encoded.passages):
        masks[1 + k, :n][sample.passage(k)] = 0
    logits = model(
        ids[None, :-1].expand(len(masks), -1),
        attention_mask=torch.from_numpy(masks).to(device),
        position_ids=torch.arange(n + t - 1, device=device)[None].expand(len(masks), -1),
        use_cache=False,
        logits_to_keep=t,
    ).logits
    chosen = ids[n:].expand(len(masks), -1)[..., None]
    totals: Array = logits.double().log_softmax(-1).gather(-1, chosen)[..., 0].sum(-1).cpu().numpy()
    return totals


def spearman(x: Sequence[float] | Array, y: Sequence[float] | Array) -> float:
    """Rank correlation; 0 where one side is constant and so tells nothing."""
    a, b = (rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm else 0.0


def centred(rows: Sequence[Sequence[float]]) -> list[Array]:
    """Each prompt's values without their mean."""
    return [np.asarray(row) - np.mean(row) for row in rows]
