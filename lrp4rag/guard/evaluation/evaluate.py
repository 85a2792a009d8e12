"""Evaluation: a trained detector, and a policy, on labelled examples that the detector has not seen. They are
judged as `analyse` judges them, so that users get what is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.model import Model
from lrp4rag.example import Example
from lrp4rag.guard.evaluation.result import Judged, Result
from lrp4rag.guard.evaluation.unfinished import Unfinished
from lrp4rag.guard.many import Failure, Load, MapGroups, judge_many
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.judge import ExplainedVerdict
from lrp4rag.reader.published import Published
from lrp4rag.training.controls import words_outside
from lrp4rag.training.folds import groups_of, labels_of
from lrp4rag.training.metrics import RESAMPLES, intervals
from lrp4rag.training.train import seen_examples
from lrp4rag.util.errors import InputError
from lrp4rag.util.processes import map_tasks
from lrp4rag.util.text import words_of

Flags = NDArray[np.bool_]
ALL = "all"
ONE_PROCESS: MapGroups = partial(map_tasks, workers=1)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics per generator (and "all" where there are several, or none is known), and each probability.

    `controls` are AUROCs, on all rows, of what anybody can count: the words of a response, and the share of
    them that no passage has. `abstained` has, by id, the features of rows without a verdict that are unlike
    the training data. `metrics` judge these rows by their probability all the same; `judged` leaves them out,
    and is empty without such rows. `threshold` and `prevalence` (None: as in training) are those that
    decided, and `comparer` is the published comparer that read the sentences, None for the detector's own.
    `results` are those of all examples, also of failed examples, in their order.
    """

    metrics: dict[str, Metrics]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    probabilities: dict[str, float]
    seen: int
    failures: dict[str, str]
    controls: Metrics = field(default_factory=dict)
    abstained: dict[str, tuple[Unlike, ...]] = field(default_factory=dict)
    judged: dict[str, Metrics] = field(default_factory=dict)
    threshold: float = 0.5
    prevalence: float | None = None
    results: tuple[Result, ...] = ()
    comparer: Published | None = None


def evaluate(
    model: Model,
    examples: Sequence[Example],
    load: Load,
    *,
    map_groups: MapGroups = ONE_PROCESS,
    estimate: bool = False,
    resamples: int = RESAMPLES,
    policy: Policy | None = None,
    date: datetime | None = None,
    unfinished: Unfinished | None = None,
) -> Evaluation:
    """Judge the examples by the detectors that `load` opens, each a reader and this `model`; with `estimate`
    at the prevalence that the probabilities of these rows tell, without their labels, in one process. The
    policy (by default the default policy) decides as of a `date`, or of today. Examples that an `unfinished`
    run has judged are not judged again.

    Raises `InputError` where no example could be judged, and for too few to estimate from.
    """
    policy = policy or Policy()
    judged = {} if unfinished is None else unfinished.judged(examples)
    missing = [example for example in examples if example.id not in judged]
    options = {"evidence": False, "reasons": False, "prevalence": "estimate" if estimate else None}
    show = partial(_judged_row, policy, date)
    for example, row in judge_many(missing, load, show, map_groups, options, together=estimate):
        if isinstance(row, Failure):
            unavailable = assess(policy, example, None, now=date)
            judged[example.id] = Judged(result=Result.of(example, None, unavailable, row.error))
        else:
            judged[example.id] = Judged.model_validate(row)
            if unfinished is not None:
                unfinished.add(judged[example.id])
    return _evaluation(model, examples, [judged[example.id] for example in examples], resamples)


def _judged_row(policy: Policy, date: datetime | None, verdict: ExplainedVerdict) -> dict[str, Any]:
    """Return the `Judged` of a verdict as JSON values."""
    assessment = assess(policy, verdict.example, verdict, now=date)
    return Judged(
        result=Result.of(verdict.example, verdict, assessment),
        unlike=tuple((feature.facet, feature.words) for feature in verdict.unlike if feature.decides),
        threshold=verdict.threshold,
        prevalence=verdict.prevalence,
    ).model_dump(mode="json")


def _evaluation(
    model: Model, examples: Sequence[Example], rows: Sequence[Judged], resamples: int
) -> Evaluation:
    failures = {row.result.id: row.result.why for row in rows if row.result.outcome == "failed"}
    judged = [row for row in rows if row.result.id not in failures]
    if not judged:
        reason = next(iter(failures.values()), "there is none")
        raise InputError(f"no example could be judged: {reason}")
    examples = [example for example in examples if example.id not in failures]
    probabilities = np.array([row.result.probability or 0.0 for row in judged])
    threshold = model.card.threshold if judged[0].threshold is None else judged[0].threshold
    measure = partial(_metrics, examples, probabilities, threshold, resamples)
    abstained = {
        row.result.id: tuple(Unlike(facet, words, True) for facet, words in row.unlike)
        for row in judged
        if row.unlike
    }
    selections, labels = _selections(examples), labels_of(examples)
    with_verdict = np.array([example.id not in abstained for example in examples])
    judged_selections = {name: selected & with_verdict for name, selected in selections.items()}
    return Evaluation(
        metrics=measure(selections),
        rows={name: int(selected.sum()) for name, selected in selections.items()},
        hallucinated={name: int(labels[selected].sum()) for name, selected in selections.items()},
        probabilities={row.result.id: row.result.probability or 0.0 for row in judged},
        seen=len(seen_examples(model.card, examples, model.replacement)),
        failures=failures,
        controls=_controls(examples, resamples),
        abstained=abstained,
        judged=measure(judged_selections) if abstained else {},
        threshold=threshold,
        prevalence=judged[0].prevalence,
        results=tuple(row.result for row in rows),
        comparer=model.replacement.published if model.replacement else None,
    )


def _selections(examples: Sequence[Example]) -> dict[str, Flags]:
    """Return the rows of each generator, and all rows where there are several, or none is known."""
    generators = np.array([example.generator or "" for example in examples])
    selections = {name or "unknown": generators == name for name in sorted(set(generators.tolist()))}
    every = {ALL: np.ones(len(generators), dtype=bool)}
    if set(selections) == {"unknown"}:
        return every
    return selections if len(selections) < 2 else selections | every


def _metrics(
    examples: Sequence[Example],
    scores: NDArray[np.float64],
    threshold: float,
    resamples: int,
    selections: Mapping[str, Flags],
) -> dict[str, Metrics]:
    """Return the metrics of each selection that has a row."""
    labels, groups = labels_of(examples), groups_of(examples)
    return {
        name: intervals(labels[selected], scores[selected], groups[selected], threshold, resamples)
        for name, selected in selections.items()
        if selected.any()
    }


def _controls(examples: Sequence[Example], resamples: int) -> Metrics:
    words = [words_of(example.response or "") for example in examples]
    novel = [
        len(words_outside(example)) / max(len(set(response_words)), 1)
        for example, response_words in zip(examples, words, strict=True)
    ]
    controls = {"number of words": np.array(list(map(len, words)), float), "novel words": np.array(novel)}
    every = {ALL: np.ones(len(examples), dtype=bool)}
    return {
        name: _metrics(examples, scores, np.inf, resamples, every)[ALL]["auroc"]
        for name, scores in controls.items()
    }
