"""The comparison: every baseline and our detectors under one protocol, on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from experiments.cache import Cache
from experiments.metrics import compare
from experiments.results_page import claim_page
from experiments.systems.baseline import Baseline
from experiments.systems.comparison.folds import FoldRunner, sample_of
from experiments.systems.comparison.ours import DETECTOR, FACTS, OF_SAMPLE, our_systems
from experiments.systems.comparison.scores import Numbers, ScoreFolder, StoredScores, SystemScores
from experiments.systems.facts import Facts
from experiments.systems.finetuned import TRAINING
from experiments.systems.resources import Choices, Resources
from experiments.systems.scoring import EDGE
from experiments.systems.trained import refuse_seen
from lrp4rag.classifiers.card import Located, Metrics
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import line_of, parts_of
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

PROTOCOL = ONCE
FINE_TUNED = "fine-tuned-llm"
KIND = "lrp4rag experiments compare"
"""What a folder of results says of itself, and where."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Of one system on some rows. `metrics` of responses; `behind`: our detector's less these, paired, and
    `behind_sample` the same of ours that learned from the sample, None where that judged nothing; `line`
    of tokens, spans and sentences and `by_marks`, metrics of calling a response hallucinated where a token of
    it is marked (LettuceDetect's definition), None for a system that scores no parts; `answered` is the
    part of the responses that it had something to go by for, `unreadable` the part of the questions to a
    model that had no usable reply."""

    metrics: Metrics
    behind: Metrics
    behind_sample: Metrics | None
    line: Located | None
    by_marks: Metrics | None
    answered: float
    unreadable: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one generator, or of all: how many, how many of them hallucinated, and the systems by name."""

    rows: int
    hallucinated: int
    systems: dict[str, Quality]


@dataclass(frozen=True, slots=True)
class Stack:
    """By generator: our detector and the best text-only baseline, combined; and by what the combination beats
    either of them alone, paired. `chosen` is the text-only one in each fold. `each` has, for every baseline
    that judged all rows, by what its combination with our detector beats that."""

    both: dict[str, Metrics]
    adds_to_text: dict[str, Metrics]
    adds_to_ours: dict[str, Metrics]
    chosen: tuple[str, ...]
    each: dict[str, dict[str, Metrics]]


@dataclass(frozen=True, slots=True)
class Tuned:
    """Of a system that marks tokens from a `fixed` probability: spans by generator, on all rows, were each
    fold's threshold the one with the best F1 of tokens of the other folds, as the others choose theirs."""

    fixed: float
    spans: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`every` has the systems that judged all rows, `sample` all systems on the sample; by generator, and all
    of them together. `learned` is how many responses each system learned from, on average over the folds;
    `steps` of gradient descent the fine-tuned reader made in each."""

    facts: dict[str, Facts]
    every: dict[str, Part]
    sample: dict[str, Part]
    learned: dict[str, int]
    stack: Stack | None
    sources: int
    sample_sources: int
    tuned: dict[str, Tuned] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared, and on what. `sources` and `generators` make the sample; baselines named in `anew`
    are run again, cached or not."""

    baselines: Mapping[str, Baseline]
    sources: int
    generators: Sequence[str]
    choices: Choices
    jobs: int
    resamples: int
    stack: bool = True
    anew: frozenset[str] = frozenset()


def run_systems(
    rows: Rows, folder: Path, study: Path, scores: Path, plan: Plan, others: Path | None = None
) -> dict[str, StoredScores]:
    """The scores of every system: read from the folders `scores` and `others` where they are there, else
    computed; at once they are in `scores`. `folder` caches measurements, weights and finished folds of
    baselines, `study` those of our detectors.

    The page goes beside `scores`: raises `InputError` where there is one that is not a comparison's, and
    where the store lacks what a system reads, or has too few sources.
    """
    claim_page(scores.parent, KIND)
    refuse_seen(plan.choices, rows.examples)
    sample = sample_of(rows, plan.sources, plan.generators)
    tokens, resources = tokens_of(rows, {}), Resources(folder, plan.choices)
    cache = Cache.open(folder / "folds", plan.jobs)
    runner = FoldRunner(rows, tokens, sample, resources, cache, PROTOCOL)
    systems = our_systems(rows, sample, study, plan.jobs)
    systems |= {
        name: runner.system(name, one, anew=name in plan.anew) for name, one in plan.baselines.items()
    }
    stored = ScoreFolder(scores, tuple(example.id for example in rows.examples), len(tokens.flags))
    stored.prepare()
    found: dict[str, StoredScores] = {}
    for name in systems.keys() - plan.anew:
        key = systems[name].key
        one = stored.read(name, key)
        if one is None and others is not None and (known := replace(stored, folder=others).read(name, key)):
            one = stored.keep(name, key, known)
        if one is not None:
            found[name] = one
    runner.check({name: one for name, one in plan.baselines.items() if name not in found})
    return {
        name: found[name] if name in found else stored.write(name, one.key, one.run())
        for name, one in systems.items()
    }


def comparison(rows: Rows, found: Mapping[str, SystemScores], plan: Plan) -> Comparison:
    """Of the systems' scores of the rows."""
    sample, tokens = sample_of(rows, plan.sources, plan.generators), tokens_of(rows, {})
    of_all = {name: one for name, one in found.items() if np.isfinite(one.outcome.probabilities).all()}

    def parts(names: Mapping[str, SystemScores], chosen: Numbers) -> dict[str, Part]:
        return {
            generator: _part(rows, tokens, found, list(names), own, plan.resamples)
            for generator, own in parts_of(rows, chosen).items()
        }

    return Comparison(
        facts={
            name: FACTS[name] if name in FACTS else plan.choices.facts_of(plan.baselines[name].facts)
            for name in found
        },
        every=parts(of_all, np.arange(len(rows))),
        sample=parts(found, sample),
        learned={
            name: round(float(np.mean([len(train) for _, train, _ in one.outside])))
            for name, one in found.items()
        },
        stack=_stack(rows, of_all, plan) if plan.stack else None,
        sources=len(set(rows.groups)),
        sample_sources=len(set(rows.groups[sample])),
        tuned={
            name: Tuned(fixed, _tuned(rows, tokens, found[name], plan.resamples))
            for name in of_all
            if (fixed := getattr(plan.baselines.get(name), "mark_from", None)) is not None
        },
        steps={name: TRAINING.steps(found[name].trained_on) for name in found if name == FINE_TUNED},
    )


def _tuned(rows: Rows, tokens: Tokens, found: SystemScores, resamples: int) -> dict[str, Metrics]:
    if found.marking is None or not found.marks(np.arange(len(tokens.flags))):
        return {}
    marked, _ = found.tuned(tokens.owner, tokens.flags)
    marking = replace(found.marking, marked=marked)
    return {
        generator: line_of(rows.select(own), tokens, own, marking, resamples).spans
        for generator, own in parts_of(rows).items()
    }


def _part(
    rows: Rows,
    tokens: Tokens,
    found: Mapping[str, SystemScores],
    names: Sequence[str],
    chosen: Numbers,
    resamples: int,
) -> Part:
    part = rows.select(chosen)
    given: dict[str, Any] = {"labels": part.labels, "groups": part.groups, "resamples": resamples}
    ours = found[DETECTOR].outcome.select(chosen)
    of_sample = found[OF_SAMPLE].outcome.select(chosen) if OF_SAMPLE in found else None
    if of_sample is not None and not np.isfinite(of_sample.probabilities).all():
        of_sample = None

    def quality(one: SystemScores) -> Quality:
        outcome, line = one.outcome.select(chosen), one.line(part, tokens, chosen, resamples)
        by_marks = None
        if one.marking is not None and line is not None:
            marked = np.isin(chosen, tokens.owner[one.marking.marked])
            by_marks = outcome_metrics(replace(outcome, flagged=marked[None]), **given)
        return Quality(
            metrics=outcome_metrics(outcome, **given),
            behind=compare(ours, outcome, **given),
            behind_sample=None if of_sample is None else compare(of_sample, outcome, **given),
            line=line,
            by_marks=by_marks,
            answered=float(one.answered[chosen].mean()),
            unreadable=one.unreadable(chosen),
        )

    systems = {name: quality(found[name]) for name in names}
    return Part(rows=len(part), hallucinated=int(part.labels.sum()), systems=systems)


def _stack(rows: Rows, found: Mapping[str, SystemScores], plan: Plan) -> Stack | None:
    texts = {
        name: found[name]
        for name, one in plan.baselines.items()
        if one.facts.access == "text" and name in found
    }
    if not texts:
        return None

    def by_generator(metrics: Callable[..., Metrics], *outcomes: Outcome) -> dict[str, Metrics]:
        return {
            name: metrics(
                *(one.select(own) for one in outcomes),
                rows.labels[own],
                rows.groups[own],
                resamples=plan.resamples,
            )
            for name, own in parts_of(rows).items()
        }

    ours = found[DETECTOR]
    both, alone = stacked(ours, texts, rows.labels)
    return Stack(
        both=by_generator(outcome_metrics, both),
        adds_to_text=by_generator(compare, both, alone),
        adds_to_ours=by_generator(compare, both, ours.outcome),
        chosen=both.chosen,
        each={
            name: by_generator(compare, stacked(ours, {name: one}, rows.labels)[0], ours.outcome)
            for name, one in found.items()
            if name in plan.baselines
        },
    )


def stacked(
    ours: SystemScores, others: Mapping[str, SystemScores], labels: NDArray[np.bool_]
) -> tuple[Outcome, Outcome]:
    """Logistic regression on the log odds of ours and of the best of the others; and that one alone. `chosen`
    says which it was in each fold.

    In each fold, the best (by AUROC), the weights and the threshold (where precision equals recall) are found
    on rows learned from, by probabilities of models that had not learned from them; the best on the rows that
    all of them have. All must have the same folds.
    """
    probabilities = np.full(ours.outcome.probabilities.shape, np.nan)
    alone, flagged = probabilities.copy(), np.zeros(probabilities.shape, dtype=bool)
    alone_flagged = flagged.copy()
    chosen = []
    for fold, (test, rows, values) in enumerate(ours.outside):
        own = _whole(rows, values, len(labels))
        theirs = {name: _whole(*one.outside[fold][1:], len(labels)) for name, one in others.items()}
        everywhere = np.isfinite(np.stack([own, *theirs.values()])).all(axis=0)
        best = max(theirs, key=lambda name: roc_auc_score(labels[everywhere], theirs[name][everywhere]))
        both = np.stack([own, theirs[best]], axis=1)
        known = np.isfinite(both).all(axis=1)
        model = LogisticRegression().fit(_log_odds(both[known]), labels[known])
        judged = np.stack(
            [ours.outcome.probabilities[0, test], others[best].outcome.probabilities[0, test]], axis=1
        )
        point = operating_points(labels[known], model.predict_proba(_log_odds(both[known]))[:, 1])
        probabilities[0, test] = model.predict_proba(_log_odds(judged))[:, 1]
        flagged[0, test] = probabilities[0, test] >= point[DEFAULT_POINT].threshold
        alone[0, test] = others[best].outcome.probabilities[0, test]
        alone_flagged[0, test] = others[best].outcome.flagged[0, test]
        chosen.append(best)
    names = tuple(chosen)
    return Outcome(probabilities, flagged, names), Outcome(alone, alone_flagged, names)


def _whole(rows: NDArray[np.intp], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    found = np.full(count, np.nan)
    found[rows] = values
    return found


def _log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = logit(np.clip(probabilities, EDGE, 1 - EDGE))
    return found


# What one more response costs a system, as `python -m benchmarks.systems` measured it.

WHAT = "what python -m benchmarks.systems wrote"
Measured = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one response: median `seconds`, these over a plain forward's of the reader in the same process, and
    the peak resident memory of that process in bytes, weights included."""

    seconds: Measured
    forwards: Measured
    peak_bytes: Bytes


@dataclass(frozen=True, slots=True)
class Costs:
    """By system, and the conditions in words."""

    systems: dict[str, Cost]
    conditions: str


def read_costs(path: Path) -> Costs:
    """Raises `InputError` for a file that the benchmark did not write."""
    try:
        return TypeAdapter(Costs).validate_python(read_record(path, WHAT))
    except ValidationError as error:
        fault, field = first_fault(error)
        raise InputError(f"not {WHAT}: {fault}", path=path, field=field) from error
