"""(b) Perturbation: zero the embeddings of content tokens in the order of relevance, watch the logit.

MoRF zeroes the most relevant first, LeRF the least relevant first (Samek et al. 2017). The area between
the two curves, LeRF - MoRF, is large for an order that knows what the logit depends on. The order
is that of signed relevance; ties, as within a sentence under feature ablation, are in random order.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.faithfulness.methods import Array, Attributor
from benchmarks.faithfulness.replay import Replay
from benchmarks.faithfulness.sample import Sample

POINTS = 10
FRACTIONS = np.linspace(0, 1, POINTS)


def measure_perturbation(
    sample: Sample, attributor: Attributor, methods: list[str]
) -> dict[str, dict[str, object]]:
    """Curves in logits at 10 fractions from 0 to 1 of the content, for the answer's first token."""
    weights = sample.first_answer_token()
    replay = Replay.of(attributor.reader.model, sample.encoded, weights)
    whole, empty = values_without(replay, np.repeat([[False], [True]], int(sample.content.sum()), axis=1))
    rows: dict[str, dict[str, object]] = {}
    for name in methods:
        relevance = attributor.relevance(name, sample.encoded, weights)[sample.content]
        morf, lerf = curves(replay, relevance, float(whole), float(empty))
        rows[name] = {"area": area(morf, lerf), "morf": morf.tolist(), "lerf": lerf.tolist()}
    return rows


def curves(replay: Replay, relevance: Array, whole: float, empty: float) -> tuple[Array, Array]:
    """MoRF and LeRF (10,) each, for relevance of the content tokens (content,).

    Both begin at `whole`, the value with nothing removed, and end at `empty`, with everything removed.
    """
    order = descending(relevance)
    masks = np.concatenate([removal_masks(order)[1:-1], removal_masks(order[::-1])[1:-1]])
    morf, lerf = np.split(values_without(replay, masks), 2)
    return np.array([whole, *morf, empty]), np.array([whole, *lerf, empty])


def descending(relevance: Array) -> NDArray[np.intp]:
    """Token numbers, the most relevant first; ties in an order that is random and always the same."""
    jitter = np.random.default_rng(len(relevance)).permutation(len(relevance))
    return np.lexsort((jitter, -relevance))


def removal_masks(order: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which tokens are gone at each fraction, (10, content)."""
    counts = np.round(FRACTIONS * len(order)).astype(int)
    masks = np.zeros((POINTS, len(order)), dtype=bool)
    for k, count in enumerate(counts):
        masks[k, order[:count]] = True
    return masks


@torch.no_grad()
def values_without(replay: Replay, masks: NDArray[np.bool_]) -> Array:
    """The explained value (B,) with the embeddings of the masked content tokens (B, content) zeroed."""
    content = replay.embeddings[replay.content]
    kept = torch.from_numpy(~masks).to(content)[:, :, None]
    values: Array = replay(replay.with_content(content * kept)).cpu().double().numpy()
    return values


def area(morf: Array, lerf: Array) -> float:
    """Area between the curves, LeRF - MoRF, over the fraction removed (0 to 1): a mean gap in logits."""
    return float(np.trapezoid(lerf - morf, FRACTIONS))
