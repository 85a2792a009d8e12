"""LettuceDetect (Kovács and Recski, arXiv 2502.17125): an encoder reads context, question and response, and
marks the response's tokens. Here it is trained on annotated spans in the folds, from a small encoder."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.running import chunk_spans, chunks_of, tokens_read
from experiments.systems.encoders.token_classifier import (
    LONGEST,
    TokenClassifier,
    Window,
    labelled_window,
)
from experiments.systems.encoders.training import AfterEpoch, Item, Training
from experiments.systems.encoders.weights import MINILM_PACKAGE
from experiments.systems.facts import SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores, log_odds
from experiments.systems.trained import model_of_fold, train_encoder
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
    likeness = embedder([response[start:end] for start, end in pieces]) @ embedder(chunks).T
    made = []
    for (start, end), row in zip(pieces, likeness, strict=True):
        room = longest / TOKENS_A_WORD - len(response[start:end].split()) - len(example.question.split())
        kept_chunks: list[int] = []
        for k in np.argsort(-row, kind="stable"):
            room -= len(chunks[k].split())
            if room < 0 and kept_chunks:
                break
            kept_chunks.append(int(k))
        context = "\n".join([example.question, *(chunks[k] for k in sorted(kept_chunks))])
        made.append(Window(context, response[start:end], start))
    return made


def classifier_of(rows: Rows, resources: Resources) -> TrainedModel[TokenClassifier]:
    """The published model that was chosen, or MiniLM trained on the spans of the training rows."""
    settings = {"kind": "lettuce", "training": asdict(TRAINING), "words": [CONTEXT_WORDS, PIECE_WORDS]}
    load = partial(TokenClassifier.load, device=resources.choices.device)
    published = resources.choices.token_classifier
    return model_of_fold(rows, resources, settings, train_classifier, load, published=published)


def train_classifier(
    examples: list[Example],
    resources: Resources,
    folder: Path | None,
    training: Training | None = None,
    after_epoch: AfterEpoch | None = None,
) -> None:
    """Train on the annotated spans of labelled examples; save model and tokenizer to a folder, if one is
    named."""
    from transformers import AutoModelForTokenClassification

    def items_of(model: Any, tokenizer: Any) -> list[Item]:
        longest = tokens_read(model.config, tokenizer, LONGEST)
        made = []
        for example in examples:
            spans = [(one.start, one.end) for one in example.labels or ()]
            windows = windows_of(example, longest, resources.embedder)
            made += [labelled_window(window, spans, tokenizer, longest) for window in windows]
        return made

    kind, label = AutoModelForTokenClassification, "training token classifier"
    train_encoder(kind, items_of, examples, resources, folder, training or TRAINING, label, after_epoch)


def measure(rows: Rows, resources: Resources, model: TokenClassifier) -> list[Measurement]:
    """One number: the highest token's log odds (a response is hallucinated if a token is marked)."""

    def group(examples: list[Example]) -> list[Measurement]:
        windows = [windows_of(example, model.longest, resources.embedder) for example in examples]
        found, made = iter(model([window for own in windows for window in own])), []
        for own in windows:
            pieces = [next(found) for _ in own]
            spans = np.concatenate([one.spans for one in pieces])
            scores = np.concatenate([one.scores for one in pieces])
            highest = float(scores.max()) if len(scores) else None
            made.append(Measurement(np.array([log_odds(highest)]), PartScores(spans, scores)))
        return made

    settings = {"model": model.name, "words": [CONTEXT_WORDS, PIECE_WORDS]}
    return resources.measured("lettuce", settings, rows.examples, Measurement, group)


LETTUCE = Measured(
    Facts(
        "LettuceDetect",
        "arXiv 2502.17125",
        "text",
        SPANS,
        "MiniLM (22M) with a head on tokens, trained in the folds",
        choices=("token_classifier",),
        modules=(MINILM_PACKAGE,),
    ),
    measure,
    ("highest token",),
    marks=True,
    mark_from=MARKED_FROM,
    model_of=classifier_of,
)
