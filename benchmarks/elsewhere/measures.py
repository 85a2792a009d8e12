"""What is measured of each set, with 95 % intervals over its questions, beside the controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.elsewhere.judging import CONTROLS, OURS, Flags, Judged, Scores
from benchmarks.elsewhere.sets import FREE, NEAR, RIGHT
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.training.localisation import TOKEN_RESAMPLES
from lrp4rag.training.metrics import UNDEFINED, compare, intervals, share, token_intervals
from lrp4rag.training.pair_evidence import Twin, pair_evidence
from lrp4rag.training.validation import Outcome
from lrp4rag.util.text import words_of

ALL = "all"
NOVEL_WORD, PREVALENCE = "novel word", "any word"
WITH_VERDICT = "with a verdict"


@dataclass(frozen=True, slots=True)
class Line:
    """Of one way to score rows: its metrics, and the AUROC of the detector less its own (None for that)."""

    metrics: Metrics
    behind: Interval | None


Lines = dict[str, Line]


@dataclass(frozen=True, slots=True)
class Share:
    """A part of `count` responses."""

    count: int
    share: Interval


@dataclass(frozen=True, slots=True)
class Fault:
    """Of `pairs` twins with one kind of fault: by way, the part that scores higher than the faithful answer
    near the passages' words (`near`) and than the paraphrase (`free`; a tie is half); the part that is
    flagged; and the part in which a suspect span touches the wrong words."""

    kind: str
    pairs: int
    near: dict[str, Interval]
    free: dict[str, Interval]
    flagged: Interval
    touched: Interval


@dataclass(frozen=True, slots=True)
class Pairs:
    """Minimal pairs. `flagged` is of faithful responses, by their kind."""

    questions: int
    responses: int
    hallucinated: int
    abstained: Interval
    faults: list[Fault]
    flagged: dict[str, Share]
    lines: Lines


@dataclass(frozen=True, slots=True)
class Part:
    """Some of HaluEval's answers: those of whole pairs are ranked."""

    responses: int
    pairs: int
    ranked: dict[str, Interval]
    lines: Lines


@dataclass(frozen=True, slots=True)
class HaluEval:
    """All answers, and those that have a verdict."""

    questions: int
    abstained: Interval
    parts: dict[str, Part]


@dataclass(frozen=True, slots=True)
class Wice:
    """Claims and their words. `words` is without the detector where it scores no tokens."""

    claims: int
    pages: int
    hallucinated: int
    labelled: int
    unsupported: int
    abstained: Interval
    flagged: Interval
    words: Lines
    lines: Lines


def measure_pairs(judged: Judged) -> Pairs:
    kinds = judged.kinds
    faithful = {
        kind: {judged.items[k].example.source: int(k) for k in np.flatnonzero(kinds == kind)}
        for kind in (NEAR, FREE)
    }
    wrong = np.flatnonzero(judged.labels)
    named = list(dict.fromkeys(kinds[wrong].tolist()))
    ranked = {way: _ranked(judged, scores, faithful) for way, scores in judged.scores.items()}
    touched = np.array([_touched(judged, k) for k in range(len(judged))], dtype=bool)
    flagged, faults = judged.flagged, []
    for kind in (*named, ALL) if len(wrong) else ():
        rows = judged.labels & ((kinds == kind) | (kind == ALL))
        near, free = (
            {way: found[set, kind] for way, found in ranked.items() if (set, kind) in found}
            for set in (NEAR, FREE)
        )
        faults.append(
            Fault(
                kind=kind,
                pairs=int(rows.sum()),
                near=near,
                free=free,
                flagged=_share(judged, flagged, rows),
                touched=_share(judged, touched, rows),
            )
        )
    fine = list(dict.fromkeys(kinds[~judged.labels].tolist()))
    parts = {kind: ~judged.labels & ((kinds == kind) | (kind == ALL)) for kind in (*fine, ALL)}
    return Pairs(
        questions=len(set(judged.groups)),
        responses=len(judged),
        hallucinated=len(wrong),
        abstained=_share(judged, judged.abstained),
        faults=faults,
        flagged={kind: Share(int(rows.sum()), _share(judged, flagged, rows)) for kind, rows in parts.items()},
        lines=_responses(judged),
    )


def measure_halueval(judged: Judged) -> HaluEval:
    parts = {ALL: judged, WITH_VERDICT: judged.select(~judged.abstained)}
    return HaluEval(
        questions=len(set(judged.groups)),
        abstained=_share(judged, judged.abstained),
        parts={name: _part(part) for name, part in parts.items()},
    )


def measure_wice(judged: Judged) -> Wice:
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
        words[way] = Line({name: metrics[name] for name in kept}, behind)
    return Wice(
        claims=len(judged),
        pages=len(set(judged.groups)),
        hallucinated=int(judged.labels.sum()),
        labelled=len(labels),
        unsupported=int(labels.sum()),
        abstained=_share(judged, judged.abstained),
        flagged=_share(judged, judged.flagged),
        words=words,
        lines=_responses(judged),
    )


def _ranked(
    judged: Judged, scores: Scores, faithful: Mapping[str, Mapping[str, int]]
) -> dict[tuple[str, str], Interval]:
    """By kind of faithful answer and of fault (and of all faults), how many twins score higher."""
    twins = [
        Twin(int(row), others[source], kind, harmless=False, set=name)
        for name, others in faithful.items()
        for row in np.flatnonzero(judged.labels)
        if (source := judged.items[row].example.source) in others
        for kind in (judged.items[row].kind, ALL)
    ]
    found = pair_evidence(twins, scores, judged.flagged, judged.groups)
    return {(one.set, one.kind): one.ranked for one in found}


def _touched(judged: Judged, row: int) -> bool:
    """Whether a suspect span has a character of the labelled words."""
    labels = judged.items[row].example.labels or ()
    return any(
        start < label.end and label.start < end
        for start, end in judged.cells[row]["spans"]
        for label in labels
    )


def _share(judged: Judged, which: Flags, among: Flags | None = None) -> Interval:
    """The part of the responses (among some of them) that are such."""
    rows = np.ones(len(judged), dtype=bool) if among is None else among
    return share(which[rows], judged.groups[rows]) if rows.any() else UNDEFINED


def _part(judged: Judged) -> Part:
    right, wrong = ({source: k for k, source in _of(judged, label)} for label in (False, True))
    twins = [
        Twin(row, right[source], RIGHT, harmless=False, set=ALL)
        for source, row in wrong.items()
        if source in right
    ]
    ranked = {}
    for way, scores in judged.scores.items() if twins else ():
        (found,) = pair_evidence(twins, scores, judged.flagged, judged.groups)
        ranked[way] = found.ranked
    return Part(len(judged), len(twins), ranked, _responses(judged) if len(judged) else {})


def _of(judged: Judged, label: bool) -> list[tuple[int, str]]:
    return [(int(k), judged.items[k].example.source) for k in np.flatnonzero(judged.labels == label)]


def _responses(judged: Judged) -> Lines:
    """Whole responses: of the controls, which have no threshold on this data, only how they rank."""
    labels, groups, scores = judged.labels, judged.groups, judged.scores
    ours = intervals(labels, judged.probabilities, groups, judged.threshold)
    lines = {OURS: Line(ours, None)}
    for way in CONTROLS:
        found = token_intervals(labels, scores[way], np.zeros(len(labels), dtype=bool), groups)
        behind = compare(_outcome(scores[OURS]), _outcome(scores[way]), labels, groups)["auroc"]
        lines[way] = Line({name: found[name] for name in ("auroc", "auprc")}, behind)
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
