"""Where a response is hallucinated: metrics of tokens, spans and sentences, beside controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from lrp4rag.classifiers.card import Located, Metrics
from lrp4rag.classifiers.decision import Flags, Scores, best_threshold
from lrp4rag.classifiers.verdict import merged_spans
from lrp4rag.features.parts import RELEVANCE as STORED_RELEVANCE
from lrp4rag.features.record import Record
from lrp4rag.features.text import novel_word
from lrp4rag.features.units import smoothed
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.candidates import pooled_features
from lrp4rag.training.controls import CONTROLS as RESPONSE_CONTROLS
from lrp4rag.training.controls import FLAG_EVERYTHING, Control, Setting, flag_everything, relevance
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import RESAMPLES, outcome_metrics, token_intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.spans import annotated_sentences, characters, overlap_metrics, sentences
from lrp4rag.training.token_folds import TokenPredictions, folds_of
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome, cross_validated
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in

CLASSIFIER = "token classifier"
ALL = "all"
"""The responses of all generators together, where there are several or one."""
RELEVANCE = "relevance of the prompt, smoothed"
CONTROLS = ("position", "novel words", "length only", FLAG_EVERYTHING)
TOKEN_RESAMPLES = 200
WHOLE = ("length only", "novel words")
RELEVANCE_VECTOR = "R_response alone (SVM)"
POOLED = "features of the whole response"
MAKERS: dict[str, Control] = {name: one.make for name, one in RESPONSE_CONTROLS.items()} | {
    RELEVANCE_VECTOR: relevance,
    POOLED: lambda rows, _: pooled_features(rows),
}


@dataclass(frozen=True, slots=True, eq=False)
class Marking:
    """What one way makes of N tokens: scores that rise with suspicion, which are marked, and which are in a
    sentence that is."""

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
    found: Mapping[str, TokenPredictions],
    protocol: Protocol,
    *,
    beside: Sequence[str] | None = WHOLE,
    resamples: int = RESAMPLES,
    jobs: int = 1,
) -> Localisation:
    """Metrics of token models by name, of smoothed relevance and of the controls, per generator.

    `beside` names the controls of whole responses, which `jobs` processes learn; None leaves all out.
    """
    made = {name: Marking(one.probabilities, one.marked, one.sentences) for name, one in found.items()}
    verdicts = {name: one.outcome for name, one in found.items()}
    if beside is not None:
        made |= simple(rows, tokens, protocol)
        verdicts |= whole(rows, protocol, beside, jobs)
    lines, responses, counts, hallucinated = {}, {}, {}, {}
    chosen_by = tuple(f"{name}: {one}" for name, model in found.items() for one in model.outcome.chosen)
    for generator, chosen in parts_of(rows).items():
        part = rows.select(chosen)
        # Ranking tokens, which takes most of the time, releases Python's lock.
        tasks = (delayed(line_of)(part, tokens, chosen, marking, resamples) for marking in made.values())
        lines[generator] = dict(zip(made, Parallel(n_jobs=jobs, prefer="threads")(tasks), strict=True))
        responses[generator] = {
            name: outcome_metrics(outcome.select(chosen), part.labels, part.groups, resamples=resamples)
            for name, outcome in verdicts.items()
        }
        counts[generator], hallucinated[generator] = len(part), int(part.labels.sum())
    return Localisation(lines, responses, counts, hallucinated, chosen_by)


def simple(rows: Rows, tokens: Tokens, protocol: Protocol) -> dict[str, Marking]:
    """Ways of which only a threshold is learned, which is chosen on the training rows of each fold."""
    encodings = rows.encodings
    scores = {
        "position": np.concatenate([np.linspace(0, 1, len(row.response_ids)) for row in encodings]),
        "novel words": np.concatenate([novel_word(Record(row, {})) for row in encodings]),
    }
    if rows.has(STORED_RELEVANCE):
        scores = {RELEVANCE: np.concatenate([-smoothed(row.total) for row in rows.relevances]), **scores}
    made = {name: _marking(tokens, score, protocol) for name, score in scores.items()}
    everything = np.ones(len(tokens.flags), dtype=bool)
    return made | {FLAG_EVERYTHING: Marking(everything.astype(float), everything, everything)}


def whole(rows: Rows, protocol: Protocol, names: Sequence[str] = WHOLE, jobs: int = 1) -> dict[str, Outcome]:
    """Controls of whole responses by their names there, and flag everything. The longer a response, the
    higher its highest scores, even of noise: so length is one of them."""
    setting = Setting.of(protocol)
    made = {
        name: cross_validated(MAKERS[name](rows, setting), rows.labels, rows.groups, protocol, n_jobs=jobs)
        for name in track(names, len(names), "cross-validating controls")
    }
    return made | {FLAG_EVERYTHING: flag_everything(rows.labels, protocol)}


def _marking(tokens: Tokens, scores: Scores, protocol: Protocol) -> Marking:
    """A sentence's score is the mean of its tokens'; both thresholds are the best on the training rows."""
    inside = tokens.sentence >= 0
    _, where, counts = np.unique(tokens.sentence[inside], return_inverse=True, return_counts=True)
    means, annotated = np.zeros(len(scores)), np.zeros(len(scores), dtype=bool)
    means[inside] = (np.bincount(where, scores[inside]) / counts)[where]
    annotated[inside] = (np.bincount(where, tokens.flags[inside]) > 0)[where]
    first = inside & (np.diff(tokens.sentence, prepend=-2) != 0)  # one token stands for its sentence
    marked, sentences = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
    for split in folds_of(tokens, protocol):
        train, test = tokens.within(split.train), tokens.within(split.test)
        learned = train[first[train]]
        marked[test] = scores[test] >= best_threshold(scores[train], tokens.flags[train])
        sentences[test] = inside[test] & (means[test] >= best_threshold(means[learned], annotated[learned]))
    return Marking(scores, marked, sentences)


def parts_of(rows: Rows, chosen: NDArray[np.intp] | None = None) -> dict[str, NDArray[np.intp]]:
    """The numbers of the chosen rows (default: all) by generator, and of all of them."""
    chosen = np.arange(len(rows)) if chosen is None else chosen
    by_name = {name: np.intersect1d(numbers, chosen) for name, numbers in rows.by_generator.items()}
    return {name: part for name, part in by_name.items() if len(part)} | {ALL: chosen}


def line_of(
    part: Rows, tokens: Tokens, chosen: NDArray[np.intp], marking: Marking, resamples: int
) -> Located:
    """Metrics of a marking of all tokens on some rows: `part`, whose numbers are `chosen`."""
    spans, in_sentences = [], []
    for row, example, found in zip(chosen, part.examples, part.encodings, strict=True):
        start, end = np.searchsorted(tokens.owner, [row, row + 1])
        text, offsets = example.response or "", found.response_offsets
        spotted = merged_spans(marking.marked[start:end], offsets, text)
        own = sentences_in(text)
        flags = [marking.sentences[start:end][tokens_in(offsets, [span])] for span in own]
        marked = np.array([len(one) > 0 and one.mean() > 0.5 for one in flags], dtype=bool)
        annotated = [(label.start, label.end) for label in example.labels or ()]
        spans.append(characters(spotted, annotated, len(text)))
        in_sentences.append(sentences(marked, annotated_sentences(example, own)))
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
        spans=overlap_metrics(spans, part.groups, resamples=resamples),
        sentences=overlap_metrics(in_sentences, part.groups, resamples=resamples),
    )


def record(found: Localisation, protocol: Protocol, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON: every metric with its interval."""
    return {
        "protocol": protocol.words,
        "settings": dict(settings),
        "chosen": list(found.chosen),
        "generators": lines_record(found),
    }


def lines_record(found: Localisation) -> dict[str, Any]:
    """By generator: value, low and high of every metric."""

    def plain(metrics: Metrics) -> dict[str, Any]:
        return {name: [one.value, one.low, one.high] for name, one in metrics.items()}

    return {
        name: {
            "rows": found.rows[name],
            "hallucinated": found.hallucinated[name],
            "responses": {way: plain(metrics) for way, metrics in found.responses[name].items()},
            "lines": {way: {kind: plain(metrics) for kind, metrics in line} for way, line in lines.items()},
        }
        for name, lines in found.lines.items()
    }
