"""Where a response is made up: token, span and sentence metrics of a token classifier beside controls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.localise import merged_spans
from lrp4rag.experiments.baselines.lexical import novel_words, words_of
from lrp4rag.experiments.controls import FLAG_EVERYTHING, Setting, flag_everything, length
from lrp4rag.experiments.protocol import Protocol
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.search import Outcome, cross_validated
from lrp4rag.experiments.spans import (
    Overlap,
    annotated_sentences,
    characters,
    overlap_metrics,
    sentences,
    touched_sentences,
)
from lrp4rag.experiments.statistics import RESAMPLES, outcome_metrics, token_intervals
from lrp4rag.experiments.tokens import Located, Tokens, best_threshold
from lrp4rag.features.windows import smoothed

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]

CLASSIFIER = "token classifier"
RELEVANCE = "relevance of the prompt, smoothed"
CONTROLS = ("position", "novel words", "length only", FLAG_EVERYTHING)
TOKEN_RESAMPLES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Marking:
    """What one way makes of N tokens: scores that rise with suspicion, and which are marked."""

    scores: Scores
    marked: Flags


@dataclass(frozen=True, slots=True)
class Line:
    """One way on one generator's responses. Precision, recall and F1 of `spans` are of characters."""

    tokens: Metrics
    spans: Metrics
    sentences: Metrics


@dataclass(frozen=True, slots=True)
class Localisation:
    """By generator: the lines, and verdicts on whole responses from token scores; the controls last."""

    lines: dict[str, dict[str, Line]]
    responses: dict[str, dict[str, Metrics]]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    tops: tuple[int, ...]


def localisation(
    rows: Rows, tokens: Tokens, found: Located, protocol: Protocol, *, resamples: int = RESAMPLES
) -> Localisation:
    """Metrics of `found`, of smoothed relevance and of the controls, per generator."""
    made = {CLASSIFIER: Marking(found.probabilities, found.marked)} | simple(rows, tokens, protocol)
    verdicts = {CLASSIFIER: found.outcome} | whole(rows, protocol)
    lines, responses, counts, hallucinated = {}, {}, {}, {}
    for generator in sorted(set(rows.generators)):
        chosen = np.flatnonzero(rows.generators == generator)
        part = rows.select(chosen)
        lines[generator] = {
            name: _line(part, tokens, chosen, marking, resamples) for name, marking in made.items()
        }
        responses[generator] = {
            name: outcome_metrics(outcome.select(chosen), part.labels, part.groups, resamples=resamples)
            for name, outcome in verdicts.items()
        }
        counts[generator], hallucinated[generator] = len(part), int(part.labels.sum())
    return Localisation(lines, responses, counts, hallucinated, found.tops)


def simple(rows: Rows, tokens: Tokens, protocol: Protocol) -> dict[str, Marking]:
    """Ways of which only a threshold is learned, which is chosen on the training rows of each fold."""
    relevances = rows.relevances
    scores = {
        RELEVANCE: np.concatenate([-smoothed(row.total) for row in relevances]),
        "position": np.concatenate([np.linspace(0, 1, len(row.response)) for row in relevances]),
        "novel words": np.concatenate([novel_tokens(rows, k).astype(float) for k in range(len(rows))]),
    }
    made = {name: Marking(score, _cut(tokens, score, protocol)) for name, score in scores.items()}
    everything = np.ones(len(tokens.flags), dtype=bool)
    return made | {FLAG_EVERYTHING: Marking(everything.astype(float), everything)}


def whole(rows: Rows, protocol: Protocol) -> dict[str, Outcome]:
    """Controls of whole responses. The longer a response, the higher its highest scores, even of noise: so
    length is one of them."""
    inputs = {"length only": length(rows, Setting.of(protocol)), "novel words": novel_words(rows)}
    made = {
        name: cross_validated(contenders, rows.labels, rows.groups, protocol)
        for name, contenders in inputs.items()
    }
    return made | {FLAG_EVERYTHING: flag_everything(rows.labels, protocol)}


def novel_tokens(rows: Rows, row: int) -> Flags:
    """Which response tokens lie in a word that no passage has (lower case), (t,)."""
    example, relevance = rows.examples[row], rows.relevances[row]
    known = {word for passage in example.passages for word in words_of(passage)}
    response = example.response or ""
    novel = np.zeros(len(response) + 1, dtype=bool)
    for match in re.finditer(r"\w+", response):
        novel[match.start() : match.end()] = match.group().lower() not in known
    return np.array([novel[start:end].any() for start, end in relevance.encoded.response_offsets], dtype=bool)


def _cut(tokens: Tokens, scores: Scores, protocol: Protocol) -> Flags:
    marked = np.zeros(len(scores), dtype=bool)
    for split in tokens.folds(protocol):
        train, test = tokens.within(split.train), tokens.within(split.test)
        marked[test] = scores[test] >= best_threshold(scores[train], tokens.flags[train])
    return marked


def _line(part: Rows, tokens: Tokens, chosen: NDArray[np.intp], marking: Marking, resamples: int) -> Line:
    spans, in_sentences = _overlaps(part, tokens, chosen, marking.marked)
    own = tokens.within(chosen)
    return Line(
        # Each draw ranks every token of the data, so fewer must do.
        tokens=token_intervals(
            tokens.flags[own],
            marking.scores[own],
            marking.marked[own],
            tokens.groups[tokens.owner[own]],
            resamples=min(resamples, TOKEN_RESAMPLES),
        ),
        spans=overlap_metrics(spans, part.groups, resamples=resamples),
        sentences=overlap_metrics(in_sentences, part.groups, resamples=resamples),
    )


def _overlaps(
    part: Rows, tokens: Tokens, chosen: NDArray[np.intp], marked: Flags
) -> tuple[list[Overlap], list[Overlap]]:
    spans, in_sentences = [], []
    for row, example, relevance in zip(chosen, part.examples, part.relevances, strict=True):
        start, end = np.searchsorted(tokens.owner, [row, row + 1])
        text = example.response or ""
        found = merged_spans(marked[start:end], relevance.encoded.response_offsets, text)
        annotated = [(label.start, label.end) for label in example.labels or ()]
        spans.append(characters(found, annotated, len(text)))
        in_sentences.append(sentences(touched_sentences(text, found), annotated_sentences(example)))
    return spans, in_sentences


def record(found: Localisation, protocol: Protocol, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON: every metric with its interval."""

    def plain(metrics: Metrics) -> dict[str, Any]:
        return {name: [one.value, one.low, one.high] for name, one in metrics.items()}

    return {
        "protocol": protocol.words,
        "settings": dict(settings),
        "tops": list(found.tops),
        "generators": {
            name: {
                "rows": found.rows[name],
                "hallucinated": found.hallucinated[name],
                "responses": {way: plain(metrics) for way, metrics in found.responses[name].items()},
                "lines": {
                    way: {
                        "tokens": plain(line.tokens),
                        "spans": plain(line.spans),
                        "sentences": plain(line.sentences),
                    }
                    for way, line in lines.items()
                },
            }
            for name, lines in found.lines.items()
        },
    }
