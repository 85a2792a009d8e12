"""ReDeEP: what the reader takes from its weights, less what it takes from the context (arXiv 2410.11414).

The external context score tells how alike a token is to what an attention head reads in the context; the
parametric knowledge score, how much a feed-forward layer changes what the reader would say (section 3). A
part's score (section 4.1) is a sum of parametric knowledge scores over some layers, less a sum of external
context scores over some heads, each with a weight; a response's is the mean over its parts, which are tokens
or sentences (section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from experiments.systems.baseline import Fitted, Reading
from experiments.systems.encoders import MINILM, MINILM_PACKAGE
from experiments.systems.facts import LABELS, SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import Calibration, PartScores, threshold_of
from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, Candidate, chosen, fit, grouped_folds
from lrp4rag.example import Example
from lrp4rag.lrp.units import Unit, members, prompt_units, response_units
from lrp4rag.reader.encoding import Encoded
from lrp4rag.training.rows import Rows

if TYPE_CHECKING:
    from torch import Tensor

    from lrp4rag.reader.reader import Reader

TOP_PERCENT = 10
"""Of the prompt's tokens, those with most attention are what a head reads."""
DECIMALS = 4
ROWS = 32  # tokens at a time: more leave a processor's cache, fewer make slow products

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class RedeepScores:
    """Of t response tokens and s sentences; L layers with H heads. Tokens are measured where they are
    predicted, sentences at their own tokens, as in the authors' code.

    * `ecs` (L, H, t), -1 to 1: the cosine between the reader's last state (after its final norm) and the mean
      of those of the prompt tokens that the head attends to most from there.
    * `pks` (L, t), 0 to log 2: the Jensen-Shannon divergence, in nats, between the next-token distributions
      that the logit lens reads before and after the layer's feed-forward part.
    * `chunk_ecs` (L, H, s), -1 to 1: the cosine between embeddings of the sentence and of the passages'
      sentence to which the head's mean attention is highest. `chunk_pks` (L, s): means of the divergence.
    * `tokens` (t, 2) and `spans` (s, 2): characters of the response.
    """

    ecs: Floats
    pks: Floats
    chunk_ecs: Floats
    chunk_pks: Floats
    tokens: NDArray[np.intp]
    spans: NDArray[np.intp]


def redeep_scores(reader: Reader, embed: Embed, example: Example) -> RedeepScores:
    """Measure one response in one pass; `embed` gives texts unit vectors (texts, d).

    Raises `InputError` for a reader whose parts are not known (see `family_of`), or without a response.
    """
    import torch

    encoded = reader.encode(example, truncation="passages")
    sentences = [unit for unit in response_units(encoded, "sentence") if unit.tokens]
    sources = passage_sentences(encoded)
    of_sentence = averages(sentences, len(encoded.response_ids))
    with torch.no_grad():
        trace = trace_of(
            reader.model,
            torch.tensor([[*encoded.prompt_ids, *encoded.response_ids]], device=reader.model.device),
            torch.from_numpy(of_sentence).to(reader.model.device),
            torch.from_numpy(averages(sources, len(encoded.prompt_ids))).to(reader.model.device),
        )
        ecs = torch.stack([external_context(read, trace.final) for read in trace.read]).cpu().numpy()
        pks = torch.stack(list(parametric_knowledge(reader.model, trace))).cpu().numpy()
    likeness = embed([one.label for one in sentences]) @ embed([one.label for one in sources]).T
    chosen = torch.stack(trace.sources).cpu().numpy()
    return RedeepScores(
        ecs=_short(ecs),
        pks=_short(pks[:, :-1]),
        chunk_ecs=_short(likeness[np.arange(len(sentences)), chosen]),
        chunk_pks=_short(pks[:, 1:] @ of_sentence.T),
        tokens=np.array(encoded.response_offsets),
        spans=np.array([(one.start, one.end) for one in sentences]),
    )


def passage_sentences(encoded: Encoded) -> list[Unit]:
    """Sentences of the prompt, without what is no passage's; `label` is their text."""
    found = []
    for unit in prompt_units(encoded, "sentence"):
        own = tuple(i for i in unit.tokens if encoded.segments[i] >= 2)
        if own:
            start, end = encoded.prompt_offsets[own[0]][0], encoded.prompt_offsets[own[-1]][1]
            found.append(replace(unit, label=encoded.text[start:end], start=start, end=end, tokens=own))
    return found


def averages(units: Sequence[Unit], tokens: int) -> Floats:
    """(units, tokens): what takes means over each unit's tokens."""
    counts = np.array([len(unit.tokens) for unit in units])
    found: Floats = (members(units, tokens) / counts[:, None]).astype(np.float32)
    return found


def external_context(read: Tensor, final: Tensor) -> Tensor:
    """External context scores (H, t), from what each head reads where tokens are predicted (H, t, n) and last
    states (n + t, d)."""
    import torch.nn.functional as F

    n = read.shape[-1]
    # A sum has the direction of the mean.
    return F.cosine_similarity(read.to(final.dtype) @ final[:n], final[n - 1 : -1], dim=-1)


def parametric_knowledge(model: Any, trace: Trace) -> Iterator[Tensor]:
    """Parametric knowledge scores (1 + t,) of each layer; a few rows of the vocabulary are held at a time."""
    import torch

    from lrp4rag.lrp.families import family_of

    norm = family_of(model).part(model, "final_norm")
    weight = model.get_output_embeddings().weight.float()
    cap = getattr(model.config, "final_logit_softcapping", None)

    def lens(states: Tensor) -> Tensor:
        logits: Tensor = norm(states).float() @ weight.T
        return logits if cap is None else cap * torch.tanh(logits / cap)

    for before, after in zip(trace.before, trace.after, strict=True):
        pairs = zip(before.split(ROWS), after.split(ROWS), strict=True)
        yield torch.cat([divergence(*lens(torch.cat(pair)).chunk(2)) for pair in pairs])


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """Jensen-Shannon, in nats, of softmaxes of finite logits (..., vocabulary): 0 to log 2."""
    import torch

    shares = [logits.softmax(-1) for logits in (first, second)]
    # Of each: its negative entropy, without the logarithm of every share.
    own = [
        torch.linalg.vecdot(share, logits) - logits.logsumexp(-1)
        for share, logits in zip(shares, (first, second), strict=True)
    ]
    mean = shares[0].add_(shares[1]).div_(2)
    found: Tensor = (own[0] + own[1]) / 2 + torch.special.entr(mean).sum(-1)
    return found.clamp(min=0)


def _short(values: NDArray[np.floating[Any]]) -> Floats:
    """So many decimals, so that what is cached is small."""
    return values.astype(np.float64).round(DECIMALS).astype(np.float32)


# One pass of the reader: what attention heads read, and residuals around feed-forward parts.


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """n prompt and t response tokens, d features; lists have an item for each layer, real ones are float32.

    * `final` (n + t, d): last states, after the final norm.
    * `before`, `after` (1 + t, d): the residual around the layer's feed-forward part, at the prompt's last
      token and the response's.
    * `read` (H, t, n): which prompt tokens each head attends to most where a response token is predicted.
    * `sources` (H, s): the source chunk that each head attends to most from a response chunk's own tokens.
    """

    final: Tensor
    before: list[Tensor]
    after: list[Tensor]
    read: list[Tensor]
    sources: list[Tensor]


def trace_of(model: Any, ids: Tensor, of_chunk: Tensor, of_source: Tensor) -> Trace:
    """Of tokens (1, n + t); `of_chunk` (s, t) and `of_source` (sources, n) average over chunks' tokens.

    Attention is reduced layer by layer, so that only one layer's is held. Raises `InputError` for a model
    whose parts are not known.
    """
    import torch

    from lrp4rag.lrp.families import family_of

    family, first = family_of(model), of_source.shape[1] - 1  # the prompt's last token predicts the first
    before: list[Tensor] = []
    after: list[Tensor] = []
    read: list[Tensor] = []
    sources: list[Tensor] = []

    def attended(_module: Any, _inputs: Any, output: tuple[Tensor, Tensor]) -> None:
        attention = output[1][0, :, first:, : first + 1].float()
        read.append(most_attended(attention[:, :-1]))
        sources.append((of_chunk @ attention[:, 1:] @ of_source.T).argmax(-1))

    def entered(_module: Any, inputs: tuple[Tensor, ...]) -> None:
        before.append(inputs[0][0, first:].float())

    def left(_module: Any, _inputs: Any, output: Tensor | tuple[Tensor, ...]) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        after.append(hidden[0, first:].float())

    with ExitStack() as stack, torch.no_grad():
        stack.enter_context(_eager(model))
        for block in family.blocks(model):
            for handle in (
                block.attention.register_forward_hook(attended),
                block.norms["mlp_norm"].register_forward_pre_hook(entered),
                block.layer.register_forward_hook(left),
            ):
                stack.callback(handle.remove)
        final = family.part(model, "body")(ids, use_cache=False).last_hidden_state[0].float()
    return Trace(final, before, after, read, sources)


def most_attended(attention: Tensor) -> Tensor:
    """Of attention (..., n): where the highest `TOP_PERCENT` are (at least one), as booleans."""
    import torch

    count = max(attention.shape[-1] * TOP_PERCENT // 100, 1)
    return torch.zeros_like(attention, dtype=torch.bool).scatter_(-1, attention.topk(count).indices, True)


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Attention that returns its weights. Models may share the configuration that is changed meanwhile."""
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(usual)


# A weighted sum over heads and layers.

HEADS, LAYERS, RATIOS = (1, 4, 16), (1, 3, 8), (0.25, 1.0, 4.0)
"""Candidate numbers of heads and of layers, and weights of the context against that of knowledge."""

Inputs = NDArray[np.floating[Any]]


class Combination(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The `heads` whose scores fall most with the label and the `layers` whose scores rise most, by Pearson's
    correlation; sums of both are brought to deviation 1, and that of the heads counts `ratio` times.

    The first `split` columns are heads. `weights_` (columns,) are zero where a column was not chosen.
    """

    def __init__(self, split: int, heads: int, layers: int, ratio: float) -> None:
        self.split = split
        self.heads = heads
        self.layers = layers
        self.ratio = ratio

    def fit(self, inputs: Inputs, labels: NDArray[np.bool_]) -> Combination:
        self.classes_ = np.array([False, True])
        rises = correlations(inputs, labels)
        heads = np.argsort(rises[: self.split], kind="stable")[: self.heads]
        layers = self.split + np.argsort(-rises[self.split :], kind="stable")[: self.layers]
        self.weights_ = np.zeros(inputs.shape[1])
        self.weights_[heads] = -self.ratio / _deviation(inputs[:, heads].sum(axis=1))
        self.weights_[layers] = 1 / _deviation(inputs[:, layers].sum(axis=1))
        return self

    def decision_function(self, inputs: Inputs) -> NDArray[np.float64]:
        found: NDArray[np.float64] = inputs @ self.weights_
        return found


def correlations(inputs: Inputs, labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pearson's, of each column with the labels; 0 for a constant one."""
    columns = inputs - inputs.mean(axis=0, dtype=np.float64)
    flags = labels - labels.mean()
    scale = np.linalg.norm(columns, axis=0) * np.linalg.norm(flags)
    found: NDArray[np.float64] = flags @ columns / np.where(scale > 0, scale, 1)
    return found


def _deviation(values: NDArray[np.floating[Any]]) -> float:
    return float(values.std(dtype=np.float64)) or 1.0


def candidates_on(means: Inputs, split: int) -> list[Candidate]:
    """Of responses' mean scores (rows, columns), of which the first `split` are heads."""
    name = "{} heads, {} layers, {:g} to 1"
    grid = product(HEADS, LAYERS, RATIOS)
    return [Candidate(name.format(*one), "", "", Combination(split, *one), means) for one in grid]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Of P parts of one response: `spans` (P, 2), their characters, and `inputs` (P, L x H + L), external
    context scores, then parametric knowledge scores; `heads` is L x H."""

    spans: NDArray[np.intp]
    inputs: Inputs
    heads: int

    @classmethod
    def tokens(cls, scores: RedeepScores) -> Parts:
        return cls._of(scores.tokens, scores.ecs, scores.pks)

    @classmethod
    def sentences(cls, scores: RedeepScores) -> Parts:
        return cls._of(scores.spans, scores.chunk_ecs, scores.chunk_pks)

    @classmethod
    def _of(cls, spans: NDArray[np.intp], context: Inputs, knowledge: Inputs) -> Parts:
        flat = context.reshape(-1, len(spans))
        return cls(spans, np.concatenate([flat, knowledge]).T, len(flat))

    def scored(self, weights: NDArray[np.float64]) -> PartScores:
        return PartScores(self.spans, self.inputs @ weights)


@dataclass(frozen=True, slots=True)
class Redeep:
    """`parts` says what is scored by itself. Numbers of heads and layers and the ratio are chosen on inner
    folds, and so is the threshold, each time with heads and layers of the rows learned from."""

    facts: Facts
    parts: Callable[[RedeepScores], Parts]

    def measure(self, rows: Rows, resources: Resources) -> list[Parts]:
        """By the reader; tokens and sentences share what is cached."""
        identity = resources.reader.identity
        settings = {
            "reader": f"{identity.name} ({identity.digest}, {identity.dtype})",
            "embedder": MINILM,
            "top": TOP_PERCENT,
            "decimals": DECIMALS,
            "tokens": "where they are predicted",
        }

        def measure(group: list[Example]) -> list[RedeepScores]:
            return [redeep_scores(resources.reader, resources.embedder, one) for one in group]

        found = resources.measured("redeep", settings, rows.examples, RedeepScores, measure)
        return [self.parts(one) for one in found]

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        parts, labels, groups = self.measure(rows, resources), rows.labels, rows.groups
        means = np.stack([one.inputs.mean(axis=0, dtype=np.float64) for one in parts])
        candidates = candidates_on(means, parts[0].heads)
        best, outside = chosen(candidates, labels, groups, np.arange(len(rows)), resources.seed)
        assert outside is not None
        of_folds = np.zeros_like(means)  # for each response the weights of a fold without it
        for train, test in grouped_folds(labels, groups, CALIBRATION_FOLDS, resources.seed):
            of_folds[test] = fit(best.estimator, means[train], labels[train], groups[train]).weights_
        scored = [one.scored(weights) for one, weights in zip(parts, of_folds, strict=True)]
        weights = fit(best.estimator, means, labels, groups).weights_

        def read(rows: Rows, resources: Resources) -> Reading:
            found = [one.scored(weights) for one in self.measure(rows, resources)]
            return Reading(np.array([one.scores.mean() for one in found]), found)

        calibration = Calibration.of(outside, labels, rows.generators)
        return Fitted(best.label, read, calibration, threshold_of(scored, rows.examples))


def _facts(title: str, weights: str) -> Facts:
    return Facts(
        title,
        "arXiv 2410.11414",
        "reader's states",
        f"{LABELS}; marks: {SPANS}",
        weights,
        slow=True,
        modules=(MINILM_PACKAGE,),
    )


REDEEP_TOKEN = Redeep(_facts("ReDeEP, tokens", "the reader's"), Parts.tokens)
REDEEP_CHUNK = Redeep(_facts("ReDeEP, chunks", "the reader's, all-MiniLM-L6-v2's"), Parts.sentences)
