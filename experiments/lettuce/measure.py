"""LettuceDetect's training over epochs: what each is worth on sources that it does not learn from, and on a
held-out fold beside the comparison's, which has two epochs and takes the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from experiments.systems.comparison.folds import over_tokens
from experiments.systems.comparison.scores import known_scores
from experiments.systems.encoders.token_classifier import TokenClassifier, Window
from experiments.systems.encoders.training import Training
from experiments.systems.lettuce import MARKED_FROM, TRAINING, train_classifier, windows_of
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores, Score
from experiments.systems.trained import seen_sources
from lrp4rag.classifiers.card import Located
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import Marking, line_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Epoch:
    """After so many epochs: the F1 of tokens marked from 0.5 on sources that are set aside, by which the
    paper takes the best; the threshold with the best F1 there; the held-out fold, marked from either."""

    number: int
    chosen_by: float
    threshold: float
    from_half: Located
    from_threshold: Located


@dataclass(frozen=True, slots=True)
class Lettuce:
    """Of one `fold` of `folds`: how many responses were learned from, set aside and judged. `former` is of
    the comparison's model, on the same rows."""

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
        return max(self.epochs, key=lambda one: one.chosen_by)


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
    former = known_scores(path)
    if former.ids != tuple(example.id for example in rows.examples) or former.scores.marking is None:
        raise InputError("these scores are not of the store's responses", path=path)
    split = splits[fold - 1]
    train, judged = rows.select(split.train), split.test
    seen = set(seen_sources(train, resources.seed).tolist())
    aside = np.array([k for k in split.train if rows.examples[k].source not in seen], dtype=np.intp)
    learned = [example for example in train.examples if example.source in seen]
    part, offsets = rows.select(judged), [one.response_offsets for one in rows.encodings]
    windows: dict[int, list[Window]] = {}
    found: list[Epoch] = []

    def after_epoch(number: int, model: Any, tokenizer: Any) -> None:
        classifier = TokenClassifier("", model, tokenizer)
        for k in (*aside, *judged):
            if int(k) not in windows:
                windows[int(k)] = windows_of(rows.examples[k], classifier.longest, resources.embedder)
        scores = np.full(len(tokens.flags), np.nan)
        for k in (*aside, *judged):
            start, end = np.searchsorted(tokens.owner, [k, k + 1])
            scores[start:end] = token_scores(classifier(windows[int(k)]), offsets[k])
        there = tokens.within(aside)
        flags = tokens.flags[there]
        threshold = best_threshold(scores[there], flags)
        found.append(
            Epoch(
                number,
                float(f1_score(flags, scores[there] >= MARKED_FROM, zero_division=0.0)),
                float(threshold) if np.isfinite(threshold) else 1.0,
                line_of(part, tokens, judged, marking(tokens, scores, MARKED_FROM), resamples),
                line_of(part, tokens, judged, marking(tokens, scores, threshold), resamples),
            )
        )

    training = replace(TRAINING, epochs=epochs)
    train_classifier(learned, resources, None, training, after_epoch)
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
        epochs=tuple(found),
    )


def token_scores(pieces: Sequence[PartScores], offsets: Sequence[tuple[int, int]]) -> Any:
    """Of t tokens of the reader: the highest of the encoder's tokens that they share a character with."""
    parts = PartScores(
        np.concatenate([one.spans for one in pieces]), np.concatenate([one.scores for one in pieces])
    )
    spread = over_tokens(Score(0.5, False, parts.marked(MARKED_FROM)), offsets)
    assert spread is not None  # there are parts
    return spread[0]


def marking(tokens: Tokens, scores: Any, threshold: float) -> Marking:
    """A sentence is marked where one of its tokens is."""
    marked = np.nan_to_num(scores, nan=-1.0) >= threshold
    sentences = np.isin(tokens.sentence, tokens.sentence[marked]) & (tokens.sentence >= 0)
    return Marking(scores, marked, sentences)
