"""What the three experiments measure of a method's relevance, for one sample.

* needle: is the planted passage found, and in it the answer?
* perturbation: zero the embeddings of content tokens in the order of relevance, watch the logit. MoRF zeroes
  the most relevant first, LeRF the least relevant first (Samek et al. 2017). The area between the two curves,
  LeRF - MoRF, is large for an order that knows what the logit depends on. The order is that of signed
  relevance; ties, as within a sentence under feature ablation, are in random order.
* ablation: does a passage's relevance predict how much the response needs it? The drop is that of the
  response's log-probability when attention to the passage is masked, in a plain pass of the unpatched model;
  positions stay as they were. A passage's relevance is the sum over its tokens, for the sum of the response's
  logits. With few passages, the correlation within one prompt is coarse, so there are two: the mean of the
  prompts' correlations (Spearman), and one over all passages after each prompt's mean was subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.faithfulness.methods import Array, Attributor
from benchmarks.faithfulness.sample import Mask, Replay, Sample
from lrp4rag.reader import Reader

TOP = 0.1
POINTS = 10
FRACTIONS = np.linspace(0, 1, POINTS)

Row = dict[str, Any]
Measure = Callable[[Sample, Attributor, list[str]], dict[str, Row]]


def measure_needle(sample: Sample, attributor: Attributor, methods: list[str]) -> dict[str, Row]:
    """Mass, pointing and recall of each method, for the mean of the answer's logits.

    Everything among the passages only: some methods leave out the rest by construction.
    """
    (planted,) = sample.case.planted
    passages = [sample.passage(k) for k in range(len(sample.encoded.passages))]
    rows: dict[str, Row] = {}
    for name in methods:
        relevance = attributor.relevance(name, sample.encoded, sample.answer_mean())
        rows[name] = {
            "mass": mass(relevance, passages[planted], sample.content),
            "pointing": pointing([float(relevance[passage].sum()) for passage in passages], planted),
            "recall": top_recall(relevance, sample.gold, sample.content),
        }
    return rows


def mass(relevance: Array, inside: Mask, among: Mask) -> float:
    """Share of the positive relevance of `among` that lies `inside` (Arras et al. 2022, CLEVR-XAI)."""
    positive = np.maximum(relevance, 0)
    total = float(positive[among].sum())
    return float(positive[inside].sum()) / total if total else 0.0


def pointing(by_passage: list[float], planted: int) -> float:
    """1 where the planted passage has the largest summed relevance; ties share the point."""
    best = np.flatnonzero(np.isclose(by_passage, max(by_passage), rtol=1e-9, atol=0))
    return float(planted in best) / len(best)


def top_recall(relevance: Array, gold: Mask, among: Mask, top: float = TOP) -> float:
    """Share of the gold tokens in the top tenth (rounded up) of `among`, expected over orders of ties."""
    values, is_gold = relevance[among], gold[among]
    places = int(np.ceil(top * len(values)))
    threshold = np.sort(values)[::-1][places - 1]
    above, level = values > threshold, values == threshold
    chance = (places - above.sum()) / level.sum()
    return float((is_gold & above).sum() + chance * (is_gold & level).sum()) / int(is_gold.sum())


def measure_perturbation(sample: Sample, attributor: Attributor, methods: list[str]) -> dict[str, Row]:
    """Curves in logits at 10 fractions from 0 to 1 of the content, for the answer's first token."""
    weights = sample.first_answer_token()
    replay = Replay.of(attributor.reader.model, sample.encoded, weights)
    whole, empty = values_without(replay, np.repeat([[False], [True]], int(sample.content.sum()), axis=1))
    rows: dict[str, Row] = {}
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


def measure_ablation(sample: Sample, attributor: Attributor, methods: list[str]) -> dict[str, Row]:
    """Each passage's relevance (logits) and drop (nats)."""
    whole, *without = response_log_probabilities(sample, attributor.reader)
    drops = whole - np.array(without)
    rows: dict[str, Row] = {}
    for name in methods:
        relevance = attributor.relevance(name, sample.encoded, sample.response_sum())
        by_passage = [float(relevance[sample.passage(k)].sum()) for k in range(len(sample.encoded.passages))]
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
    masks = np.ones((1 + len(encoded.passages), n + t - 1), dtype=np.int64)
    for k in range(len(encoded.passages)):
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
    """Rank correlation; 0 where one side is constant and so says nothing."""
    a, b = (rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm else 0.0


def centred(rows: Sequence[Sequence[float]]) -> list[Array]:
    """Each prompt's values without their mean."""
    return [np.asarray(row) - np.mean(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Experiment:
    """`titles` say what is compared, in words, with unit and chance level."""

    measure: Measure
    titles: dict[str, str]


EXPERIMENTS = {
    "needle": Experiment(
        measure_needle,
        {
            "mass": "positive relevance on the planted passage, share of all passages'",
            "pointing": "pointing game: the planted passage has most relevance",
            "recall": "gold tokens among the top 10 % of the passages' tokens",
        },
    ),
    "perturbation": Experiment(
        measure_perturbation,
        {"area": "area between the LeRF and MoRF curves of the target logit, in logits"},
    ),
    "ablation": Experiment(
        measure_ablation,
        {
            "spearman": "rank correlation of relevance and drop over a prompt's passages, mean",
            "pooled": "rank correlation over all passages, each prompt's mean subtracted",
        },
    ),
}
