"""LettuceDetect (Kovács and Recski, arXiv 2502.17125): an encoder reads context, question and response, and
marks the response's tokens. Here it is trained on annotated spans in the folds, from a small encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders import (
    MINILM_PACKAGE,
    WINDOW,
    AfterEpoch,
    Embedder,
    TokenClassifier,
    Training,
    Window,
    chunk_spans,
    chunks_of,
    finetune,
    labelled_window,
    token_limit,
)
from experiments.systems.entailment import new_head
from experiments.systems.facts import SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores, log_odds
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows

TRAINING = Training(epochs=2, rate=1e-4)
CONTEXT_WORDS, PIECE_WORDS = 60, 100
MARKED_FROM = 0.5
"""The probability from which a token is marked, by the paper's definition: nothing is chosen."""
TOKENS_A_WORD = 1.5  # of English text, generously


def windows_of(example: Example, longest: int, embedder: Embedder) -> list[Window]:
    """The response in as few windows as fit. Where prompt and response fit into one, it is the whole prompt,
    as published; else each piece of the response is read with the question and those chunks of the passages
    that are most like it, in their order."""
    response = example.response or ""
    if TOKENS_A_WORD * len(f"{example.prompt} {response}".split()) < longest:
        return [Window(example.prompt, response, 0)]
    pieces = chunk_spans(response, PIECE_WORDS)
    chunks = chunks_of(example.passages, CONTEXT_WORDS)
    similarity = embedder([response[start:end] for start, end in pieces]) @ embedder(chunks).T
    windows = []
    for (start, end), row in zip(pieces, similarity, strict=True):
        room = longest / TOKENS_A_WORD - len(response[start:end].split()) - len(example.question.split())
        nearest: list[int] = []
        for k in np.argsort(-row, kind="stable"):
            room -= len(chunks[k].split())
            if room < 0 and nearest:
                break
            nearest.append(int(k))
        context = "\n".join([example.question, *(chunks[k] for k in sorted(nearest))])
        windows.append(Window(context, response[start:end], start))
    return windows


def classifier_of(rows: Rows, resources: Resources) -> TrainedModel[TokenClassifier]:
    """The published model that was chosen, or MiniLM trained on the spans of the training rows."""
    settings = {"kind": "lettuce", "training": asdict(TRAINING), "words": [CONTEXT_WORDS, PIECE_WORDS]}
    load = partial(TokenClassifier.load, device=resources.choice.device)

    def train(examples: list[Example], folder: Path) -> None:
        classifier = train_classifier(examples, resources, TRAINING)
        classifier.model.save_pretrained(folder, safe_serialization=True)
        classifier.tokenizer.save_pretrained(folder)

    published = resources.choice.token_classifier
    return TrainedModel(*resources.trained(rows, settings, train, load, published=published))


def train_classifier(
    examples: Sequence[Example],
    resources: Resources,
    training: Training,
    after_epoch: AfterEpoch | None = None,
) -> TokenClassifier:
    """Train on the annotated spans of labelled examples."""
    from transformers import AutoModelForTokenClassification

    model, tokenizer = new_head(AutoModelForTokenClassification, resources, training)
    longest, items = token_limit(model.config, tokenizer, WINDOW), []
    for example in examples:
        spans = [(label.start, label.end) for label in example.labels or ()]
        windows = windows_of(example, longest, resources.embedder)
        items += [labelled_window(window, spans, tokenizer, longest) for window in windows]
    return TokenClassifier("", finetune(model, tokenizer, items, training, after_epoch), tokenizer)


def measure(rows: Rows, resources: Resources, model: TokenClassifier) -> list[Measurement]:
    """One number: the highest token's log odds (a response is hallucinated if a token is marked)."""

    def group(examples: list[Example]) -> list[Measurement]:
        windows = [windows_of(example, model.longest, resources.embedder) for example in examples]
        scores = iter(model([window for each in windows for window in each]))
        return [_measurement([next(scores) for _ in each]) for each in windows]

    settings = {"model": model.name, "words": [CONTEXT_WORDS, PIECE_WORDS]}
    return resources.measured("lettuce", settings, rows.examples, Measurement, group)


def _measurement(pieces: Sequence[PartScores]) -> Measurement:
    parts = joined(pieces)
    highest = float(parts.scores.max()) if len(parts.scores) else None
    return Measurement(np.array([log_odds(highest)]), parts)


def joined(pieces: Sequence[PartScores]) -> PartScores:
    """The parts of a response's windows as one."""
    spans, scores = [each.spans for each in pieces], [each.scores for each in pieces]
    return PartScores(np.concatenate(spans), np.concatenate(scores))


LETTUCE = Measured(
    Facts(
        "LettuceDetect",
        "arXiv 2502.17125",
        "text",
        SPANS,
        "MiniLM (22M) with a head on tokens, trained in the folds",
        modules=(MINILM_PACKAGE,),
        choices=("token_classifier",),
    ),
    measure,
    ("highest token",),
    marks=True,
    mark_from=MARKED_FROM,
    model_of=classifier_of,
)
