"""LettuceDetect's training over epochs: what each is worth on sources that it does not learn from, and on a
test fold beside the comparison's model, which has two epochs and takes the last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from experiments.figures.results import draw_epochs
from experiments.pages import Results, View
from experiments.systems.encoders import TokenClassifier, Training
from experiments.systems.folds import marking_of
from experiments.systems.lettuce import MARKED_FROM, TRAINING, joined, train_classifier, windows_of
from experiments.systems.resources import Resources, seen_sources
from experiments.systems.scores import read_scores
from lrp4rag.classifiers.card import Located
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import line_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Epoch:
    """After so many epochs: the F1 of tokens marked from 0.5 on sources that are set aside, by which the
    paper takes the best; the threshold with the best F1 there; the test fold, marked from either."""

    number: int
    chosen_by: float
    threshold: float
    from_half: Located
    from_threshold: Located


@dataclass(frozen=True, slots=True)
class Lettuce:
    """Of one `fold` of `folds`: how many responses were learned from, set aside and judged. `former` is the
    comparison's model, on the same rows."""

    fold: int
    folds: int
    training: Training
    learned: int
    aside: int
    judged: int
    hallucinated: int
    sources: int
    former_epochs: int
    former: Located
    epochs: tuple[Epoch, ...]

    @property
    def best(self) -> Epoch:
        """The checkpoint that the paper's rule takes; the first of equals."""
        return max(self.epochs, key=lambda epoch: epoch.chosen_by)


def evaluate(
    rows: Rows, fold: int, epochs: int, compared: Path, resources: Resources, resamples: int
) -> Lettuce:
    """Train on the training rows of a fold (from 1), and judge its rows after each epoch.

    Raises `InputError` where there is no such fold, and where the comparison's scores are of other rows.
    """
    tokens = tokens_of(rows, {})
    splits = folds_of(tokens, ONCE)
    if not 1 <= fold <= len(splits):
        raise InputError(f"there are folds 1 to {len(splits)}, and no {fold}", field="--fold")
    path = compared / "scores" / "lettucedetect.json.xz"
    former = read_scores(path)
    if former.ids != tuple(example.id for example in rows.examples) or former.scores.marking is None:
        raise InputError("these scores are not of the store's responses", path=path)
    split = splits[fold - 1]
    train, judged = rows.select(split.train), split.test
    seen = set(seen_sources(train, resources.seed).tolist())
    aside = np.array([k for k in split.train if rows.examples[k].source not in seen], dtype=np.intp)
    learned = [example for example in train.examples if example.source in seen]
    part, inside = rows.select(judged), tokens.within(aside)
    flags = tokens.flags[inside]
    results: list[Epoch] = []

    def line(scores: Any, threshold: float) -> Located:
        marked = np.nan_to_num(scores, nan=-1.0) >= threshold
        return line_of(part, tokens, judged, marking_of(tokens, scores, marked), resamples)

    def after_epoch(number: int, model: Any, tokenizer: Any) -> None:
        classifier, scores = TokenClassifier("", model, tokenizer), np.full(len(tokens.flags), np.nan)
        for k in (*aside.tolist(), *judged.tolist()):
            windows = windows_of(rows.examples[k], classifier.longest, resources.embedder)
            offsets = rows.encodings[k].response_offsets
            start, end = np.searchsorted(tokens.owner, [k, k + 1])
            scores[start:end] = joined(classifier(windows)).over_tokens(offsets, MARKED_FROM)[0]
        threshold = best_threshold(scores[inside], flags)
        results.append(
            Epoch(
                number,
                float(f1_score(flags, scores[inside] >= MARKED_FROM, zero_division=0.0)),
                float(threshold) if np.isfinite(threshold) else 1.0,
                line(scores, MARKED_FROM),
                line(scores, threshold),
            )
        )

    training = replace(TRAINING, epochs=epochs)
    train_classifier(learned, resources, training, after_epoch)
    return Lettuce(
        fold=fold,
        folds=len(splits),
        training=training,
        learned=len(learned),
        aside=len(aside),
        judged=len(judged),
        hallucinated=int(part.labels.sum()),
        sources=len(set(part.groups.tolist())),
        former_epochs=TRAINING.epochs,
        former=line_of(part, tokens, judged, former.scores.marking, resamples),
        epochs=tuple(results),
    )


def view(results: Results) -> View:
    """Raises `InputError` for what `evaluate` did not give."""
    found = results.read(Lettuce)
    lines = {
        f"from {MARKED_FROM}": [epoch.from_half.spans["f1"] for epoch in found.epochs],
        "from a threshold chosen aside": [epoch.from_threshold.spans["f1"] for epoch in found.epochs],
    }
    beside = f"comparison's, {found.former_epochs} epochs, from {MARKED_FROM}"
    figure = draw_epochs([epoch.number for epoch in found.epochs], lines, beside, found.former.spans["f1"])
    values = {
        "found": found,
        "resamples": results.get("resamples", int),
        "protocol": results.get("protocol", str),
        "half": MARKED_FROM,
    }
    return View(values, {"epochs": figure})
