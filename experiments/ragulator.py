"""RAGulator's own evaluation (arXiv 2411.03920): systems that learn from some sources, and sentences of
others that they judge; agreement of labels, speed, and a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from experiments.figures.results import Entry, draw_forest
from experiments.metrics import bootstrap, compare_tokens
from experiments.pages import Results, View
from experiments.published import PUBLISHED
from experiments.systems import ragulator
from experiments.systems.baseline import Baseline, Fitted
from experiments.systems.entailment import ENTAILMENT, RAGULATOR, RAGULATOR_ENCODER, TRAINING
from experiments.systems.ragulator import (
    RAGULATOR_ANNOTATED,
    RAGULATOR_FOREST,
    RAGULATOR_LIGHTGBM,
    Context,
    context_sentences,
    prompted_labels,
    simulated,
    stems,
)
from experiments.systems.resources import UNSEEN, Resources
from experiments.systems.scoring import Flags, PartScores
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences, ratios, token_intervals
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in, sentences_of

SYSTEMS: dict[str, Baseline] = {
    "random forest, simulated pairs": RAGULATOR_FOREST,
    "LightGBM, simulated pairs": RAGULATOR_LIGHTGBM,
    "the better of both, annotated sentences": RAGULATOR_ANNOTATED,
    "encoder with RAGulator's settings, annotated sentences": RAGULATOR_ENCODER,
    "encoder with our other entailment systems' settings, annotated sentences": ENTAILMENT,
}
SHARES = {"learn": 0.6, "tune": 0.15, "test": 0.25}
"""Of the sources: to learn from, to choose thresholds on, to be judged."""
TASKS = ("annotated", "simulated")
TIMED, ALONE, LABELLED = 60, 60, 60
"""Responses that are timed together, sentences that are timed alone, responses whose labels are compared."""

Scorer = Callable[[Sequence[Example]], list[PartScores]]
"""Scores of each response's sentences, higher for out of context."""


class Split(NamedTuple):
    """Rows by what they are for; no source is in two parts."""

    learn: Rows
    tune: Rows
    test: Rows


def split_by_source(rows: Rows, seed: int) -> Split:
    """Raises `InputError` where a part has no hallucinated or no faithful response."""
    order = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    ends = np.round(np.cumsum(list(SHARES.values())) * len(order)).astype(int)[:-1]
    parts = [rows.select(np.isin(rows.groups, sources)) for sources in np.split(order, ends)]
    for name, part in zip(SHARES, parts, strict=True):
        if len(set(part.labels.tolist())) < 2:
            raise InputError(
                f"of {len(order)} sources, those to {name} have only one kind of response; extract more"
            )
    return Split(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """R responses to be scored. Of each, `kept` are the numbers of the sentences that count, `out` whether
    they are out of context, and `groups` what bootstraps draw whole."""

    examples: tuple[Example, ...]
    kept: tuple[NDArray[np.intp], ...]
    out: tuple[Flags, ...]
    groups: tuple[str, ...]

    @property
    def labels(self) -> Flags:
        """Of all N sentences, (N,)."""
        return np.concatenate(self.out)

    @property
    def sentence_groups(self) -> NDArray[np.str_]:
        return np.repeat(np.array(self.groups), [len(one) for one in self.out])

    def scores(self, parts: Sequence[PartScores]) -> NDArray[np.float64]:
        """Those of the sentences that count, (N,), from the scores of each response's sentences."""
        return np.concatenate([one.scores[own] for one, own in zip(parts, self.kept, strict=True)])


def annotated(rows: Rows) -> Task:
    """A sentence that an annotated span touches is out of context."""
    out = tuple(annotated_sentences(example).astype(bool) for example in rows.examples)
    every = tuple(np.arange(len(one)) for one in out)
    return Task(rows.examples, every, out, tuple(example.source for example in rows.examples))


def pairs(rows: Rows, seed: int) -> Task:
    """A sentence beside its own passages is in context, beside those of another source out of it; labels are
    not looked at (arXiv 2411.03920, section 3.1)."""
    made = simulated(rows.examples, seed)
    far = [one.elsewhere for one in made]
    kept = [*(one.own for one in made), *(np.arange(len(one.own)) for one in made)]
    out = [np.full(len(own), k >= len(made)) for k, own in enumerate(kept)]
    couples = [one.couple for one in made]
    return Task((*rows.examples, *far), tuple(kept), tuple(out), (*couples, *couples))


@dataclass(frozen=True, slots=True)
class Line:
    """A system on both tasks, whose thresholds were chosen on other sources; `chosen` are its settings, and
    `over_words` what it has less the control that counts novel words, on the same sentences."""

    name: str
    control: bool
    chosen: str
    tasks: dict[str, Metrics]
    over_words: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Stream:
    """Sentences let out one by one: the parts of faithful and of hallucinated ones that are held back, of
    hallucinated responses that are let out whole, of faithful ones that are."""

    held_faithful: Interval
    held_hallucinated: Interval
    whole_hallucinated: Interval
    whole_faithful: Interval


class Speed(NamedTuple):
    """Sentences a second where all of a response come at once; milliseconds of one that comes alone."""

    together: float
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of a model's labels with the annotators': of `asked` sentences, `read` have a usable reply."""

    asked: int
    read: int
    accuracy: Interval
    kappa: Interval


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All of the page: `sources` by use, `sentences` judged and those `out` of context by task. `conditions`
    are what times were taken under, `labelled` the responses whose labels are compared; `agreement_read` is
    of the sentences that the model had a usable reply for."""

    sources: dict[str, int]
    sentences: dict[str, int]
    out: dict[str, int]
    lines: tuple[Line, ...]
    streams: dict[str, Stream]
    speeds: dict[str, Speed]
    conditions: str
    labelled: int
    agreement: dict[str, Agreement]
    agreement_read: dict[str, Agreement]


def evaluate(rows: Rows, resources: Resources, resamples: int) -> Evaluation:
    """Raises `InputError` where there are too few sources to learn from, to tune or to judge."""
    split = split_by_source(rows, resources.seed)
    tune, test = (
        {"annotated": annotated(part), "simulated": pairs(part, resources.seed)} for part in split[1:]
    )
    learned = {
        name: baseline.fit(split.learn, resources)
        for name, baseline in track(SYSTEMS.items(), len(SYSTEMS), "learning")
    }
    scorers = {name: partial(_read, one, rows, lambda: resources) for name, one in learned.items()} | CONTROLS
    anew = {name: partial(_read, one, rows, lambda: resources.uncached) for name, one in learned.items()}
    judged = {
        name: {task: _judged(scorer, tune[task], test[task]) for task in TASKS}
        for name, scorer in track(scorers.items(), len(scorers), "judging sentences")
    }
    some = _drawn(split.test, LABELLED, resources.seed)
    labelled = annotated(some)
    given = {resources.chat.name: prompted_labels(some.examples, resources)} | {
        name: [
            (one.scores >= judged[name]["annotated"].threshold).astype(float) for one in scorer(some.examples)
        ]
        for name, scorer in scorers.items()
    }
    given[NOTHING] = [np.zeros(len(one)) for one in labelled.out]
    read = np.isfinite(np.concatenate(given[resources.chat.name]))
    return Evaluation(
        sources={name: len(set(part.groups)) for name, part in zip(Split._fields, split, strict=True)},
        sentences={task: len(one.labels) for task, one in test.items()},
        out={task: int(one.labels.sum()) for task, one in test.items()},
        lines=tuple(
            Line(
                name,
                name in CONTROLS,
                learned[name].chosen if name in learned else "",
                {task: _metrics(own[task], test[task], resamples) for task in TASKS},
                {task: _less(own[task], judged[WORDS][task], test[task], resamples) for task in TASKS},
            )
            for name, own in judged.items()
        ),
        streams={
            name: _stream(own["annotated"], test["annotated"], resamples) for name, own in judged.items()
        },
        speeds={
            name: _speed(scorer, split.test.examples)
            for name, scorer in track(anew.items(), len(anew), "timing")
        },
        conditions=_conditions(resources),
        labelled=len(some),
        agreement={name: _agreement(labels, labelled, resamples) for name, labels in given.items()},
        agreement_read={
            name: _agreement([np.where(read, np.concatenate(labels), np.nan)], labelled, resamples)
            for name, labels in given.items()
        },
    )


def _drawn(rows: Rows, count: int, seed: int) -> Rows:
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows.select(np.sort(order[:count]))


def _conditions(resources: Resources) -> str:
    import torch

    device = resources.choice.device or ("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, {torch.get_num_threads()} threads"


def _read(
    fitted: Fitted, rows: Rows, resources: Callable[[], Resources], examples: Sequence[Example]
) -> list[PartScores]:
    parts = fitted.read(Rows(rows.store, tuple(examples)), resources()).parts
    if parts is None:
        raise TypeError("it scores no sentences")
    return list(parts)


def _novel_words(examples: Sequence[Example]) -> list[PartScores]:
    """The share of a sentence's words, stemmed, that no passage has."""
    made = []
    for example in examples:
        context = Context.of(context_sentences(example))
        scores = [1 - context.precision(stems(text)) for text in sentences_of(example.response)]
        made.append(_parts(example, scores))
    return made


def _words(examples: Sequence[Example]) -> list[PartScores]:
    return [
        _parts(example, [float(len(text.split())) for text in sentences_of(example.response)])
        for example in examples
    ]


def _everything(examples: Sequence[Example]) -> list[PartScores]:
    return [_parts(example, [1.0] * len(sentences_of(example.response))) for example in examples]


WORDS, NOTHING = "words that no passage has", "flag nothing"
CONTROLS: dict[str, Scorer] = {
    WORDS: _novel_words,
    "words of the sentence": _words,
    "flag everything": _everything,
}


def _parts(example: Example, scores: Sequence[float]) -> PartScores:
    return PartScores(np.array(sentences_in(example.response or "")), np.array(scores))


class Judged(NamedTuple):
    """Scores of each response's sentences, and the threshold that has the best F1 on other sources."""

    parts: list[PartScores]
    threshold: float

    def of(self, task: Task) -> tuple[NDArray[np.float64], Flags]:
        """Scores and marks of the sentences that count, (N,) each."""
        scores = task.scores(self.parts)
        return scores, scores >= self.threshold


def _judged(scorer: Scorer, tune: Task, test: Task) -> Judged:
    threshold = best_threshold(tune.scores(scorer(tune.examples)), tune.labels)
    return Judged(scorer(test.examples), threshold)


def _metrics(judged: Judged, task: Task, resamples: int) -> Metrics:
    return token_intervals(task.labels, *judged.of(task), task.sentence_groups, resamples)


def _less(judged: Judged, other: Judged, task: Task, resamples: int) -> Metrics:
    return compare_tokens(task.labels, judged.of(task), other.of(task), task.sentence_groups, resamples)


def _stream(judged: Judged, task: Task, resamples: int) -> Stream:
    held = [one.scores >= judged.threshold for one in judged.parts]
    both = list(zip(held, task.out, strict=True))
    wrong = np.array([out.any() for out in task.out])
    whole = np.array([not marks.any() for marks in held])
    counts = {
        "held_faithful": ([(marks & ~out).sum() for marks, out in both], [(~out).sum() for out in task.out]),
        "held_hallucinated": ([(marks & out).sum() for marks, out in both], [out.sum() for out in task.out]),
        "whole_hallucinated": (whole & wrong, wrong),
        "whole_faithful": (whole & ~wrong, ~wrong),
    }
    arrays = {
        name: (np.array(above, dtype=np.intp), np.array(below, dtype=np.intp))
        for name, (above, below) in counts.items()
    }
    return Stream(**ratios(arrays, np.array(task.groups), resamples=resamples))


def _speed(scorer: Scorer, examples: Sequence[Example]) -> Speed:
    """Nothing is kept from one call to the next; passages are read anew for each response or sentence."""
    some = examples[:TIMED]
    scorer(some[:1])  # what is loaded first
    started = time.perf_counter()
    sentences = sum(len(one.scores) for example in some for one in scorer([example]))
    together = sentences / (time.perf_counter() - started)
    alone = islice((one.with_response(text) for one in some for text in sentences_of(one.response)), ALONE)
    taken = []
    for one in alone:
        started = time.perf_counter()
        scorer([one])
        taken.append(1000 * (time.perf_counter() - started))
    return Speed(together, float(np.median(taken)), float(np.percentile(taken, 95)))


def _agreement(labels: Sequence[NDArray[np.float64]], task: Task, resamples: int) -> Agreement:
    """`labels` of each response's sentences, 1 for out of context, NaN for no usable reply."""
    given = np.concatenate(labels)
    known = np.isfinite(given)
    owners, truth, said = task.sentence_groups[known], task.labels[known], given[known] == 1
    if not known.any():
        nothing = Interval(value=None, low=None, high=None)
        return Agreement(len(given), 0, nothing, nothing)

    def measured(rows: NDArray[np.intp]) -> dict[str, float]:
        return {
            "accuracy": float((truth[rows] == said[rows]).mean()),
            "kappa": kappa(truth[rows], said[rows]),
        }

    metrics = bootstrap(measured, owners, resamples=resamples)
    return Agreement(len(given), int(known.sum()), metrics["accuracy"], metrics["kappa"])


def kappa(first: Flags, second: Flags) -> float:
    """Cohen's: 1 for the same labels, 0 for those that agree as often as chance, NaN where both have one."""
    if len({*first.tolist(), *second.tolist()}) < 2:
        return np.nan
    return float(cohen_kappa_score(first, second))


# The page.


def view(results: Results) -> View:
    """Raises `InputError` for what `evaluate` did not give."""
    found = results.read(Evaluation)
    entries = [
        Entry(line.name, "control" if line.control else "detector", line.tasks["annotated"])
        for line in found.lines
    ]
    figure = draw_forest(entries, ("auroc", "f1"), title="Sentences that annotators marked")
    values = {
        "found": found,
        "resamples": results.get("resamples", int),
        "published": PUBLISHED["ragulator"],
        "tasks": TASKS,
        "words": WORDS,
        "controls": (*CONTROLS, NOTHING),
        "timed": TIMED,
        "alone": ALONE,
        "shares": SHARES,
        "grids": ragulator,
        "training": RAGULATOR,
        "others": TRAINING,
        "unseen": UNSEEN,
    }
    return View(values, {"sentences": figure})
