"""The compared methods under one protocol: (reader, encoded, row weights) -> relevance per prompt token.

Integrated Gradients and feature ablation are captum's, on the passages' embeddings. The baseline of both is
the prompt with the passages' embeddings zeroed, the same as at the end of a perturbation curve; question and
template stay (as captum's tutorials keep control tokens) and get none. Where a passage is one sentence, as in
the synthetic prompts, feature ablation removes one passage at a time. That is what passage ablation measures,
but for zeroing in place of masking: a head start.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.faithfulness.sample import Replay
from lrp4rag.lrp import relevance_mode
from lrp4rag.reader import Encoded, Reader
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.util.errors import RelevanceError
from lrp4rag.util.sentences import sentences_in

Array = NDArray[np.float64]
Method = Callable[[Reader, Encoded, Tensor], Tensor]
"""Weights (t,) over response tokens say what is explained: sum_j w_j z_j. Returns (n,)."""

OURS = ("attnlrp", "cp_lrp", "paper")
STEPS = 20
PER_BATCH = 10


def composite(name: str) -> Method:
    """Relevance under one of lrp4rag's composites: one pulled cotangent."""

    def method(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
        with relevance_mode(reader.model, name) as flow:
            return flow.pull(encoded, weights[None])[0]

    return method


def gradient_norm(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """The L2 norm of the gradient by each token's embedding (Simonyan et al. 2014); never negative."""
    model, n = reader.model, len(encoded.prompt_ids)
    table = model.get_input_embeddings()
    last = int(weights.nonzero()[-1])
    ids = torch.tensor([*encoded.prompt_ids, *encoded.response_ids], device=table.weight.device)
    embeddings = table(ids[None, : n + last]).detach().requires_grad_()
    with torch.enable_grad():
        logits = model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=last + 1).logits[0]
        picked = logits.gather(-1, ids[n : n + last + 1, None])[:, 0]
        value = (picked * weights[: last + 1].to(picked)).sum()
        (gradient,) = torch.autograd.grad(value, embeddings)
    norms: Tensor = gradient[0, :n].norm(dim=-1)
    return norms


def random_relevance(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """Uniform noise around zero, the same for the same prompt and response."""
    seed = zlib.crc32(np.array([*encoded.prompt_ids, -1, *encoded.response_ids]).tobytes())
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(len(encoded.prompt_ids), generator=generator, dtype=torch.float64) - 0.5


def integrated_gradients(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """Sundararajan et al. 2017 (arXiv 1703.01365), 20 Gauss-Legendre steps, summed over the embedding."""
    from captum.attr import IntegratedGradients

    replay = Replay.of(reader.model, encoded, weights)
    content = replay.embeddings[replay.content][None]
    explainer = IntegratedGradients(lambda inputs: replay(replay.with_content(inputs)))
    with torch.enable_grad():
        attributed = explainer.attribute(
            content, torch.zeros_like(content), n_steps=STEPS, internal_batch_size=PER_BATCH
        )
    return _on_prompt(encoded, replay, attributed[0].sum(-1))


def feature_ablation(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """The drop of the explained value when a sentence's embeddings are zeroed, spread over its tokens."""
    from captum.attr import FeatureAblation

    replay = Replay.of(reader.model, encoded, weights)
    content = replay.embeddings[replay.content][None]
    features = sentence_of(encoded).to(content.device)[replay.content + replay.start]
    explainer = FeatureAblation(lambda inputs: replay(replay.with_content(inputs)))
    with torch.no_grad(), warnings.catch_warnings():
        # captum's own progress and mask hints; nothing about the result.
        warnings.simplefilter("ignore")
        attributed = explainer.attribute(
            content,
            torch.zeros_like(content),
            feature_mask=features[None, :, None].expand_as(content),
            perturbations_per_eval=PER_BATCH,
        )
    drops = attributed[0, :, 0]
    return _on_prompt(encoded, replay, drops / torch.bincount(features)[features])


def sentence_of(encoded: Encoded) -> Tensor:
    """The sentence of each prompt token (n,), counted from 0 over the passages; elsewhere -1."""
    found = torch.full((len(encoded.prompt_ids),), -1)
    segments = torch.tensor(encoded.segments)
    count = 0
    for segment in range(2, len(encoded.segment_names)):
        tokens = (segments == segment).nonzero()[:, 0].tolist()
        if not tokens:
            continue
        start, end = encoded.prompt_offsets[tokens[0]][0], encoded.prompt_offsets[tokens[-1]][1]
        # Every token of a segment has a sentence, also one between two: it keeps the one before.
        found[tokens] = count
        for low, high in sentences_in(encoded.text[start:end]):
            inside = torch.from_numpy(tokens_in(encoded.prompt_offsets, [(start + low, start + high)]))
            found[inside & (segments == segment)] = count
            count += 1
    return found


def _on_prompt(encoded: Encoded, replay: Replay, values: Tensor) -> Tensor:
    relevance = values.new_zeros(len(encoded.prompt_ids))
    relevance[replay.content + replay.start] = values.detach()
    return relevance


@torch.no_grad()
def attention_rollout(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """Attention multiplied through the layers (Abnar and Zuidema, ACL 2020, eq. 1); never negative.

    It is sum_j w_j rollout[j, i] at the positions that predict the response tokens. Each layer's
    attention is averaged over heads and mixed half and half with the residual connection.
    """
    model = reader.model
    n = len(encoded.prompt_ids)
    device = model.get_input_embeddings().weight.device
    ids = torch.tensor([[*encoded.prompt_ids, *encoded.response_ids[:-1]]], device=device)
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")  # which shows its weights
    try:
        attentions = model(ids, use_cache=False, output_attentions=True, logits_to_keep=1).attentions
    finally:
        model.set_attn_implementation(before)
    rolled = torch.zeros((1, ids.shape[1]), dtype=torch.float64, device=device)
    rolled[0, n - 1 :] = weights.to(rolled)
    for attention in reversed(attentions):
        rolled = (rolled + rolled @ attention[0].double().mean(0)) / 2
    return rolled[0, :n]


METHODS: dict[str, Method] = {
    **{name: composite(name) for name in OURS},
    "gradient_norm": gradient_norm,
    "integrated_gradients": integrated_gradients,
    "feature_ablation": feature_ablation,
    "attention_rollout": attention_rollout,
    "random": random_relevance,
}


@dataclass(frozen=True)
class Attributor:
    """The methods on one reader. What was computed is remembered, since experiments share prompts.

    Where the answer is one token, they also share what is explained.
    """

    reader: Reader
    known: dict[Hashable, Array] = field(default_factory=dict)

    def relevance(self, name: str, encoded: Encoded, weights: Tensor) -> Array:
        """The method's relevance (n,), checked: one finite value a prompt token."""
        key = (name, encoded.prompt_ids, encoded.response_ids, tuple(weights.tolist()))
        if key not in self.known:
            values = METHODS[name](self.reader, encoded, weights).detach().to("cpu", torch.float64).numpy()
            if values.shape != (len(encoded.prompt_ids),) or not np.isfinite(values).all():
                raise RelevanceError(f"{name} gave no finite value for each prompt token")
            self.known[key] = values
        return self.known[key]
