"""What is measured of each set, with 95 % intervals over its questions, beside the controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.elsewhere.judging import CONTROLS, OURS, Flags, Judged, Scores
from benchmarks.elsewhere.sets import FREE, NEAR
from experiments.metrics import bootstrap, compare
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.training.localisation import TOKEN_RESAMPLES
from lrp4rag.training.metrics import UNDEFINED, intervals, token_intervals
from lrp4rag.training.validation import Outcome
from lrp4rag.util.text import words_of

ALL = "all"
NOVEL_WORD, PREVALENCE = "novel word", "any word"
WITH_VERDICT = "with a verdict"
Figures = dict[str, Any]
"""As benchmarks/README.md has the keys."""
Lines = dict[str, Figures]
"""By way to score rows: its `metrics`, and `behind`, the AUROC of the detector less its own."""


def part(values: Flags | Scores, groups: NDArray[np.str_]) -> Interval:
    """The mean of values, such as whether a response is flagged."""
    if not len(values):
        return UNDEFINED
    return bootstrap(lambda rows: {"part": float(values[rows].mean())}, groups)["part"]


def measure_pairs(judged: Judged) -> Figures:
    """Minimal pairs. Of each kind of fault the part that scores higher than the faithful answer near the
    passages' words (`near`) and than the paraphrase (`free`; a tie is half), the part that is flagged, and
    the part in which a suspect span touches the wrong words."""
    kinds, wrong, groups = judged.kinds, judged.labels, judged.groups
    faithful = {kind: {groups[k]: int(k) for k in np.flatnonzero(kinds == kind)} for kind in (NEAR, FREE)}
    touched = np.array([_touched(judged, k) for k in range(len(judged))], dtype=bool)
    faults = []
    for kind in (*dict.fromkeys(kinds[wrong].tolist()), ALL) if wrong.any() else ():
        rows = wrong & ((kinds == kind) | (kind == ALL))
        faults.append(
            {
                "kind": kind,
                "pairs": int(rows.sum()),
                "near": ranked(judged, np.flatnonzero(rows), faithful[NEAR]),
                "free": ranked(judged, np.flatnonzero(rows), faithful[FREE]),
                "flagged": part(judged.flagged[rows], groups[rows]),
                "touched": part(touched[rows], groups[rows]),
            }
        )
    fine = {
        kind: ~wrong & ((kinds == kind) | (kind == ALL))
        for kind in (*dict.fromkeys(kinds[~wrong].tolist()), ALL)
    }
    return {
        "questions": len(set(groups)),
        "responses": len(judged),
        "hallucinated": int(wrong.sum()),
        "abstained": part(judged.abstained, groups),
        "faults": faults,
        "flagged": {
            kind: {"count": int(rows.sum()), "share": part(judged.flagged[rows], groups[rows])}
            for kind, rows in fine.items()
        },
        "lines": responses(judged),
    }


def measure_halueval(judged: Judged) -> Figures:
    """All answers, and those that have a verdict; answers of whole pairs are ranked."""
    parts = {ALL: judged, WITH_VERDICT: judged.select(~judged.abstained)}
    return {
        "questions": len(set(judged.groups)),
        "abstained": part(judged.abstained, judged.groups),
        "parts": {name: _answers(some) for name, some in parts.items()},
    }


def _answers(judged: Judged) -> Figures:
    right = {judged.groups[k]: int(k) for k in np.flatnonzero(~judged.labels)}
    wrong = np.array([k for k in np.flatnonzero(judged.labels) if judged.groups[k] in right], dtype=np.intp)
    return {
        "responses": len(judged),
        "pairs": len(wrong),
        "ranked": ranked(judged, wrong, right),
        "lines": responses(judged) if len(judged) else {},
    }


def measure_wice(judged: Judged) -> Figures:
    """Claims and their words. `words` is without the detector where it scores no tokens."""
    owners = np.repeat(np.arange(len(judged)), [len(item.words) for item in judged.items])
    labels = np.array([word[2] for item in judged.items for word in item.words], dtype=bool)
    groups = judged.groups[owners]
    scores, marked = _word_scores(judged)
    words: Lines = {}
    for way, values in scores.items():
        flagged = marked if way == OURS else np.zeros(len(labels), dtype=bool)
        metrics = token_intervals(labels, values, flagged, groups, resamples=TOKEN_RESAMPLES)
        kept = ("auroc", "auprc", "precision", "recall", "f1") if way == OURS else ("auroc", "auprc")
        behind = None
        if OURS in scores and way != OURS:
            pair = (_outcome(scores[OURS]), _outcome(values))
            behind = compare(*pair, labels, groups, resamples=TOKEN_RESAMPLES)["auroc"]
        words[way] = {"metrics": {name: metrics[name] for name in kept}, "behind": behind}
    return {
        "claims": len(judged),
        "pages": len(set(judged.groups)),
        "hallucinated": int(judged.labels.sum()),
        "labelled": len(labels),
        "unsupported": int(labels.sum()),
        "abstained": part(judged.abstained, judged.groups),
        "flagged": part(judged.flagged, judged.groups),
        "words": words,
        "lines": responses(judged),
    }


def ranked(judged: Judged, rows: NDArray[np.intp], faithful: Mapping[str, int]) -> Metrics:
    """By way, how many of these rows score higher than their question's faithful one."""
    return above(judged, [(int(k), faithful[judged.groups[k]]) for k in rows if judged.groups[k] in faithful])


def above(judged: Judged, pairs: Sequence[tuple[int, int]]) -> Metrics:
    """By way, how many first rows of pairs score higher than the second ones; a tie is half."""
    if not pairs:
        return {}
    made, others = np.array(pairs).T
    return {
        way: part((1 + np.sign(scores[made] - scores[others])) / 2, judged.groups[made])
        for way, scores in judged.scores.items()
    }


def _touched(judged: Judged, row: int) -> bool:
    """Whether a suspect span has a character of the labelled words."""
    labels = judged.items[row].example.labels or ()
    return any(
        start < label.end and label.start < end
        for start, end in judged.cells[row]["spans"]
        for label in labels
    )


def responses(judged: Judged) -> Lines:
    """Whole responses: of the controls, which have no threshold on this data, only how they rank."""
    labels, groups, scores = judged.labels, judged.groups, judged.scores
    ours = intervals(labels, judged.probabilities, groups, judged.threshold)
    lines: Lines = {OURS: {"metrics": ours, "behind": None}}
    for way in CONTROLS:
        found = token_intervals(labels, scores[way], np.zeros(len(labels), dtype=bool), groups)
        behind = compare(_outcome(scores[OURS]), _outcome(scores[way]), labels, groups)["auroc"]
        lines[way] = {"metrics": {name: found[name] for name in ("auroc", "auprc")}, "behind": behind}
    return lines


def _outcome(scores: Scores) -> Outcome:
    """Scores to be ranked; they decide nothing."""
    return Outcome(scores[None], np.zeros((1, len(scores)), dtype=bool))


def _word_scores(judged: Judged) -> tuple[dict[str, Scores], Flags]:
    """By way, of every labelled word: the highest probability of its tokens (of a token detector), whether
    no passage has it, and nothing, whose average precision is the prevalence; and which words a suspect span
    touches."""
    ours, novel, marked = list[float](), list[bool](), list[bool]()
    for item, cell in zip(judged.items, judged.cells, strict=True):
        known = {word for passage in item.example.passages for word in words_of(passage)}
        for start, end, _ in item.words:
            tokens = cell["tokens"] or []
            ours.append(max((p for first, last, p in tokens if first < end and start < last), default=0.0))
            novel.append(not known.issuperset(words_of((item.example.response or "")[start:end])))
            marked.append(any(first < end and start < last for first, last in cell["spans"]))
    found = {OURS: np.array(ours)} if all(cell["tokens"] is not None for cell in judged.cells) else {}
    simple = {NOVEL_WORD: np.array(novel, dtype=np.float64), PREVALENCE: np.zeros(len(novel))}
    return found | simple, np.array(marked, dtype=bool)
