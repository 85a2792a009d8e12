"""Localisation: metrics of marked tokens, spans and sentences, beside controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from lrp4rag.classifiers.card import Located, Metrics
from lrp4rag.classifiers.decision import Flags, Scores, best_threshold
from lrp4rag.classifiers.verdict import merged_spans
from lrp4rag.example import Example
from lrp4rag.features.parts import RELEVANCE as STORED_RELEVANCE
from lrp4rag.features.units import smoothed
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.training.controls import FLAG_EVERYTHING, WHOLE, Control, flag_everything, words_outside
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import (
    RESAMPLES,
    annotated_sentences,
    characters,
    outcome_metrics,
    overlap_metrics,
    sentences,
    token_intervals,
)
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import TokenPredictions, folds_of
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome, cross_validated
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import WORD

CLASSIFIER = "token classifier"
ALL = "all"
"""The responses of all generators together, where there are several or one."""
RELEVANCE = "relevance of the prompt, smoothed"
TOKEN_RESAMPLES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Marking:
    """Scores of N tokens that rise with suspicion, and which tokens, and whose sentences, are marked."""

    scores: Scores
    marked: Flags
    sentences: Flags


@dataclass(frozen=True, slots=True)
class Localisation:
    """By generator: the lines, and verdicts on whole responses from token scores; the controls last."""

    lines: dict[str, dict[str, Located]]
    responses: dict[str, dict[str, Metrics]]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    chosen: tuple[str, ...]


def localisation(
    rows: Rows,
    tokens: Tokens,
    predictions: Mapping[str, TokenPredictions],
    protocol: Protocol,
    *,
    controls: Mapping[str, Control] | None = WHOLE,
    resamples: int = RESAMPLES,
    jobs: int = 1,
) -> Localisation:
    """Measure token models by name, smoothed relevance and the controls, per generator.

    `controls` of whole responses are learned in `jobs` processes; None leaves out all controls.
    """
    markings = {
        name: Marking(prediction.probabilities, prediction.marked, prediction.sentences)
        for name, prediction in predictions.items()
    }
    verdicts = {name: prediction.outcome for name, prediction in predictions.items()}
    if controls is not None:
        markings |= simple(rows, tokens, protocol)
        verdicts |= response_outcomes(rows, protocol, controls, jobs)
    lines, responses, counts, hallucinated = {}, {}, {}, {}
    for generator, chosen in parts_of(rows).items():
        selected = rows.select(chosen)
        labels = selected.labels
        # Ranking tokens, which takes most of the time, releases Python's lock.
        tasks = (
            delayed(line_of)(selected, tokens, chosen, marking, resamples) for marking in markings.values()
        )
        lines[generator] = dict(zip(markings, Parallel(n_jobs=jobs, prefer="threads")(tasks), strict=True))
        responses[generator] = {
            name: outcome_metrics(outcome.select(chosen), labels, selected.groups, resamples=resamples)
            for name, outcome in verdicts.items()
        }
        counts[generator], hallucinated[generator] = len(selected), int(labels.sum())
    chosen_by = tuple(
        f"{name}: {label}" for name, model in predictions.items() for label in model.outcome.chosen
    )
    return Localisation(lines, responses, counts, hallucinated, chosen_by)


def simple(rows: Rows, tokens: Tokens, protocol: Protocol) -> dict[str, Marking]:
    """Mark by scores of which only a threshold is learned, on the training rows of each fold."""
    encodings = rows.encodings
    scores = {
        "position": np.concatenate([np.linspace(0, 1, len(row.response_ids)) for row in encodings]),
        "novel words": np.concatenate(list(map(_in_novel_word, rows.examples, encodings))),
    }
    if rows.has(STORED_RELEVANCE):
        scores = {RELEVANCE: np.concatenate([-smoothed(row.total) for row in rows.relevances]), **scores}
    markings = {name: _marking(tokens, score, protocol) for name, score in scores.items()}
    everything = np.ones(len(tokens.flags), dtype=bool)
    return markings | {FLAG_EVERYTHING: Marking(everything.astype(float), everything, everything)}


def response_outcomes(
    rows: Rows,
    protocol: Protocol,
    controls: Mapping[str, Control] = WHOLE,
    jobs: int = 1,
    label: str = "cross-validating controls",
) -> dict[str, Outcome]:
    """Cross-validate controls of whole responses, and flag everything."""
    outcomes = {
        name: cross_validated(control(rows), rows.labels, rows.groups, protocol, n_jobs=jobs)
        for name, control in track(controls.items(), len(controls), label)
    }
    return outcomes | {FLAG_EVERYTHING: flag_everything(rows.labels, protocol)}


def _in_novel_word(example: Example, encoded: Encoded) -> Scores:
    """Give 1 to each token (t,) of a word that no passage has."""
    novel = words_outside(example)
    spans = [match.span() for match in WORD.finditer(encoded.response) if match[0].lower() in novel]
    return tokens_in(encoded.response_offsets, spans).astype(np.float64)


def _marking(tokens: Tokens, scores: Scores, protocol: Protocol) -> Marking:
    """Mark tokens and sentences; a sentence's score is the mean of its tokens'. Both thresholds are the best
    on the training rows."""
    inside = tokens.sentence >= 0
    _, where, counts = np.unique(tokens.sentence[inside], return_inverse=True, return_counts=True)
    means, annotated = np.zeros(len(scores)), np.zeros(len(scores), dtype=bool)
    means[inside] = (np.bincount(where, scores[inside]) / counts)[where]
    annotated[inside] = (np.bincount(where, tokens.flags[inside]) > 0)[where]
    first = inside & (np.diff(tokens.sentence, prepend=-2) != 0)  # one token stands for its sentence
    marked, in_sentences = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
    for split in folds_of(tokens, protocol):
        train, test = tokens.within(split.train), tokens.within(split.test)
        learned = train[first[train]]
        marked[test] = scores[test] >= best_threshold(scores[train], tokens.flags[train])
        cut = best_threshold(means[learned], annotated[learned])
        in_sentences[test] = inside[test] & (means[test] >= cut)
    return Marking(scores, marked, in_sentences)


def parts_of(rows: Rows, chosen: NDArray[np.intp] | None = None) -> dict[str, NDArray[np.intp]]:
    """Number the chosen rows (default: all) by generator, and all of them together."""
    chosen = np.arange(len(rows)) if chosen is None else chosen
    by_name = {name: np.intersect1d(numbers, chosen) for name, numbers in rows.by_generator.items()}
    return {name: numbers for name, numbers in by_name.items() if len(numbers)} | {ALL: chosen}


def line_of(
    selected: Rows, tokens: Tokens, chosen: NDArray[np.intp], marking: Marking, resamples: int
) -> Located:
    """Measure a marking of all tokens on some rows: `selected`, whose numbers are `chosen`."""
    spans, in_sentences = [], []
    for row, example, encoded in zip(chosen, selected.examples, selected.encodings, strict=True):
        start, end = np.searchsorted(tokens.owner, [row, row + 1])
        text, offsets = example.response or "", encoded.response_offsets
        suspect = merged_spans(marking.marked[start:end], offsets, text)
        spans_of_sentences = sentences_in(text)
        flags = [marking.sentences[start:end][tokens_in(offsets, [span])] for span in spans_of_sentences]
        marked = np.array([len(each) > 0 and each.mean() > 0.5 for each in flags], dtype=bool)
        annotated = [(label.start, label.end) for label in example.labels or ()]
        spans.append(characters(suspect, annotated, len(text)))
        in_sentences.append(sentences(marked, annotated_sentences(example, spans_of_sentences)))
    inside = tokens.within(chosen)
    return Located(
        # Each draw ranks every token of the data, so fewer must do.
        tokens=token_intervals(
            tokens.flags[inside],
            marking.scores[inside],
            marking.marked[inside],
            tokens.groups[tokens.owner[inside]],
            resamples=min(resamples, TOKEN_RESAMPLES),
        ),
        spans=overlap_metrics(spans, selected.groups, resamples=resamples),
        sentences=overlap_metrics(in_sentences, selected.groups, resamples=resamples),
    )


def lines_record(localised: Localisation) -> dict[str, Any]:
    """Return JSON values by generator: value, low and high of every metric."""

    def plain(metrics: Metrics) -> dict[str, Any]:
        return {name: [interval.value, interval.low, interval.high] for name, interval in metrics.items()}

    return {
        name: {
            "rows": localised.rows[name],
            "hallucinated": localised.hallucinated[name],
            "responses": {
                line_name: plain(metrics) for line_name, metrics in localised.responses[name].items()
            },
            "lines": {
                line_name: {kind: plain(metrics) for kind, metrics in line}
                for line_name, line in lines.items()
            },
        }
        for name, lines in localised.lines.items()
    }
