"""Integrated Gradients and feature ablation, as captum computes them, on the passages' embeddings.

The baseline of both is the prompt with the passages' embeddings zeroed, the same as at the end of a
perturbation curve; question and template stay (as captum's tutorials keep control tokens) and get none.

Where a passage is one sentence, as in the synthetic prompts, feature ablation removes one passage at a
time. That is what passage ablation measures, but for zeroing in place of masking: a head start.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from benchmarks.faithfulness.replay import Replay
from lrp4rag.reader import Encoded, Reader
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.sentences import split_sentences

STEPS = 20
PER_BATCH = 10


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
        for low, high in split_sentences(encoded.text[start:end]):
            inside = torch.from_numpy(tokens_in(encoded.prompt_offsets, [(start + low, start + high)]))
            found[inside & (segments == segment)] = count
            count += 1
    return found


def _on_prompt(encoded: Encoded, replay: Replay, values: Tensor) -> Tensor:
    relevance = values.new_zeros(len(encoded.prompt_ids))
    relevance[replay.content + replay.start] = values.detach()
    return relevance
