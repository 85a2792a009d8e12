"""The comparison: every baseline and our detectors under one protocol, on the same rows; and its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from experiments.figures.results import draw_systems
from experiments.metrics import compare
from experiments.numbers import verdict
from experiments.pages import Results, View, claim
from experiments.published import other_systems
from experiments.systems.baseline import Baseline
from experiments.systems.facts import Facts
from experiments.systems.finetuned import TRAINING
from experiments.systems.folds import (
    DETECTOR,
    FACTS,
    OF_SAMPLE,
    FoldRunner,
    our_scores,
)
from experiments.systems.resources import ModelChoice, Resources
from experiments.systems.scores import Numbers, SystemScores, stored_scores, write_scores
from experiments.systems.scoring import EDGE, Flags, Floats
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.card import Interval, Located, Metrics
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.report.numbers import difference, percent
from lrp4rag.report.templates import Markdown, strong, text
from lrp4rag.training.localisation import ALL, line_of, parts_of
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

FINE_TUNED = "fine-tuned-llm"
ANSWERED = 0.5
"""Without a usable reply for this part of the responses, nothing is said of a system."""
DECISIONS = ("accuracy", "precision", "recall", "f1")
METRICS = ("auprc", "balanced_accuracy", "accuracy", "precision", "recall", "f1", "ece")


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


def run_systems(
    rows: Rows,
    baselines: Mapping[str, Baseline],
    sample: Numbers,
    resources: Resources,
    folder: Path,
    others: Path | None = None,
) -> dict[str, SystemScores]:
    """The scores of our detectors and of baselines, each written to `folder` at once. The page goes beside
    it. Baselines whose scores of these rows and settings are there, or in the folder `others`, are not run.

    Raises `InputError` where there is another page, where the store lacks what a system reads, or has too few
    sources, and for scores that cannot be read.
    """
    claim(folder.parent, "compare")
    resources.choice.refuse_seen(rows.examples)
    tokens = tokens_of(rows, {})
    runner, ids = FoldRunner(rows, tokens, sample, resources), tuple(example.id for example in rows.examples)
    folders = [folder, *([others] if others is not None else [])]
    keys = {name: runner.key(name, baseline) for name, baseline in baselines.items()}
    stored = {name: stored_scores(folders, name, key, ids, len(tokens.flags)) for name, key in keys.items()}
    runner.check({name: baseline for name, baseline in baselines.items() if stored[name] is None})
    scores = our_scores(rows, sample, resources.cache)
    written = {name: write_scores(folder, name, {}, ids, each) for name, each in scores.items()}
    for name, baseline in baselines.items():
        known = stored[name]
        written[name] = known or write_scores(folder, name, keys[name], ids, runner.run(name, baseline))
    return written


def comparison(
    rows: Rows,
    baselines: Mapping[str, Baseline],
    sample: Numbers,
    scores: Mapping[str, SystemScores],
    choice: ModelChoice,
    resamples: int,
) -> Comparison:
    tokens = tokens_of(rows, {})
    of_all = {name: one for name, one in scores.items() if np.isfinite(one.outcome.probabilities).all()}

    def parts(names: Mapping[str, SystemScores], indices: Numbers) -> dict[str, Part]:
        return {
            generator: _part(rows, tokens, scores, list(names), part, resamples)
            for generator, part in parts_of(rows, indices).items()
        }

    return Comparison(
        facts={
            name: FACTS[name] if name in FACTS else choice.facts_of(baselines[name].facts) for name in scores
        },
        every=parts(of_all, np.arange(len(rows))),
        sample=parts(scores, sample),
        learned={
            name: round(float(np.mean([len(train) for _, train, _ in one.outside])))
            for name, one in scores.items()
        },
        stack=_stack(rows, of_all, baselines, resamples),
        sources=len(set(rows.groups)),
        sample_sources=len(set(rows.groups[sample])),
        tuned={
            name: Tuned(fixed, _tuned(rows, tokens, scores[name], resamples))
            for name in of_all
            if (fixed := getattr(baselines.get(name), "mark_from", None)) is not None
        },
        steps={name: TRAINING.steps(scores[name].trained_on) for name in scores if name == FINE_TUNED},
    )


def _tuned(rows: Rows, tokens: Tokens, scores: SystemScores, resamples: int) -> dict[str, Metrics]:
    if scores.marking is None or not np.isfinite(scores.marking.scores).all():
        return {}
    marking = replace(scores.marking, marked=scores.tuned(tokens.owner, tokens.flags)[0])
    return {
        generator: line_of(rows.select(part), tokens, part, marking, resamples).spans
        for generator, part in parts_of(rows).items()
    }


def _part(
    rows: Rows,
    tokens: Tokens,
    scores: Mapping[str, SystemScores],
    names: Sequence[str],
    indices: Numbers,
    resamples: int,
) -> Part:
    part = rows.select(indices)
    truth: dict[str, Any] = {"labels": part.labels, "groups": part.groups, "resamples": resamples}
    ours = scores[DETECTOR].outcome.select(indices)
    of_sample = scores[OF_SAMPLE].outcome.select(indices) if OF_SAMPLE in scores else None
    if of_sample is not None and not np.isfinite(of_sample.probabilities).all():
        of_sample = None

    def quality(one: SystemScores) -> Quality:
        outcome, line = one.outcome.select(indices), one.line(part, tokens, indices, resamples)
        by_marks = None
        if one.marking is not None and line is not None:
            marked = np.isin(indices, tokens.owner[one.marking.marked])
            by_marks = outcome_metrics(replace(outcome, flagged=marked[None]), **truth)
        return Quality(
            metrics=outcome_metrics(outcome, **truth),
            behind=compare(ours, outcome, **truth),
            behind_sample=None if of_sample is None else compare(of_sample, outcome, **truth),
            line=line,
            by_marks=by_marks,
            answered=float(one.answered[indices].mean()),
            unreadable=one.unreadable(indices),
        )

    systems = {name: quality(scores[name]) for name in names}
    return Part(rows=len(part), hallucinated=int(part.labels.sum()), systems=systems)


def _stack(
    rows: Rows, scores: Mapping[str, SystemScores], baselines: Mapping[str, Baseline], resamples: int
) -> Stack | None:
    texts = {
        name: scores[name]
        for name, baseline in baselines.items()
        if baseline.facts.access == "text" and name in scores
    }
    if not texts:
        return None

    def by_generator(metrics: Callable[..., Metrics], *outcomes: Outcome) -> dict[str, Metrics]:
        return {
            name: metrics(
                *(outcome.select(part) for outcome in outcomes),
                rows.labels[part],
                rows.groups[part],
                resamples=resamples,
            )
            for name, part in parts_of(rows).items()
        }

    ours = scores[DETECTOR]
    both, alone = stacked(ours, texts, rows.labels)
    return Stack(
        both=by_generator(outcome_metrics, both),
        adds_to_text=by_generator(compare, both, alone),
        adds_to_ours=by_generator(compare, both, ours.outcome),
        chosen=both.chosen,
        each={
            name: by_generator(compare, stacked(ours, {name: one}, rows.labels)[0], ours.outcome)
            for name, one in scores.items()
            if name in baselines
        },
    )


def stacked(ours: SystemScores, others: Mapping[str, SystemScores], labels: Flags) -> tuple[Outcome, Outcome]:
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
        first = _among_all(rows, values, len(labels))
        seconds = {name: _among_all(*one.outside[fold][1:], len(labels)) for name, one in others.items()}
        everywhere = np.isfinite(np.stack([first, *seconds.values()])).all(axis=0)
        best = max(seconds, key=lambda name: roc_auc_score(labels[everywhere], seconds[name][everywhere]))
        both = np.stack([first, seconds[best]], axis=1)
        finite = np.isfinite(both).all(axis=1)
        model = LogisticRegression().fit(_log_odds(both[finite]), labels[finite])
        other = others[best].outcome
        tested = np.stack([ours.outcome.probabilities[0, test], other.probabilities[0, test]], axis=1)
        point = operating_points(labels[finite], model.predict_proba(_log_odds(both[finite]))[:, 1])
        probabilities[0, test] = model.predict_proba(_log_odds(tested))[:, 1]
        flagged[0, test] = probabilities[0, test] >= point[DEFAULT_POINT].threshold
        alone[0, test], alone_flagged[0, test] = other.probabilities[0, test], other.flagged[0, test]
        chosen.append(best)
    names = tuple(chosen)
    return Outcome(probabilities, flagged, names), Outcome(alone, alone_flagged, names)


def _among_all(rows: NDArray[np.intp], values: Floats, count: int) -> Floats:
    every = np.full(count, np.nan)
    every[rows] = values
    return every


def _log_odds(probabilities: Floats) -> Floats:
    odds: Floats = logit(np.clip(probabilities, EDGE, 1 - EDGE))
    return odds


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
        costs = TypeAdapter(Costs).validate_python(read_record(path, WHAT))
    except ValidationError as error:
        fault, field = first_fault(error)
        raise InputError(f"not {WHAT}: {fault}", path=path, field=field) from error
    if DETECTOR in costs.systems:  # what it learned from changes nothing
        costs = replace(costs, systems=costs.systems | {OF_SAMPLE: costs.systems[DETECTOR]})
    return costs


# The page.


@dataclass(frozen=True, slots=True)
class _Page:
    """A comparison in which every system stands once: `twins` has each that was left out and the one that it
    equals. `ours` are the detectors of this project, `detector` the first of them and `of_sample` the one
    that judged the sample only; `generators` are those of the sample."""

    results: Comparison
    twins: dict[str, str]
    ours: tuple[str, ...]
    generators: list[str]

    @classmethod
    def of(cls, results: Comparison) -> _Page:
        ours = tuple(name for name, facts in results.facts.items() if facts.ours)
        systems, twins = results.sample[ALL].systems, dict[str, str]()
        for first, second in combinations(sorted(systems.keys() - set(ours)), 2):
            if systems[first] == systems[second] and first not in twins:
                twins[second] = first
        for parts in (results.every, results.sample):
            for part in parts.values():
                for name in twins:
                    part.systems.pop(name, None)
        generators = [name for name in results.sample if name != ALL] or [ALL]
        return cls(results, twins, ours, generators)

    @property
    def of_sample(self) -> str | None:
        return next((name for name in self.ours if self.slow(name)), None)

    def slow(self, name: str) -> bool:
        """Whether it judged the sample only."""
        return name not in self.results.every[ALL].systems

    def quality(self, name: str, generator: str) -> Quality:
        """On all rows where the system judged all."""
        parts = self.results.sample if self.slow(name) else self.results.every
        return parts[generator].systems[name]

    def silent(self, name: str, generator: str) -> bool:
        """Without a usable reply for most responses: what it would have said is not known."""
        return self.quality(name, generator).answered < ANSWERED

    def behind(self, name: str, generator: str) -> Interval:
        """By how much a system's AUROC is behind ours; of slow systems, ours that learned from as few."""
        quality = self.quality(name, generator)
        few = quality.behind_sample if self.slow(name) else None
        return (few or quality.behind)["auroc"]

    def beaten(self, name: str, generator: str) -> str:
        """Whether ours has a higher AUROC."""
        behind = self.behind(name, generator)
        if self.silent(name, generator):
            unanswered = 1 - self.quality(name, generator).answered
            return f"no verdict, {percent(unanswered)} unanswered, {difference(behind)}"
        return f"{'yes' if verdict(behind) == 'holds' else 'no'}, {difference(behind)}"

    def added(self, name: str, generator: str) -> Interval | None:
        """By what a system combined with ours beats ours, where that is known."""
        stack = self.results.stack
        return stack.each[name][generator]["auroc"] if stack is not None and name in stack.each else None

    def unbeaten(self, names: Sequence[str]) -> list[Markdown]:
        """By how much each is not beaten, on one generator and over all rows that it judged, and what it
        adds."""
        sentences = []
        for name, where in product(names, self.generators):
            behind, every = self.behind(name, where), self.behind(name, ALL)
            if self.silent(name, where) or verdict(behind) == "holds":
                continue
            whose = self.of_sample if self.slow(name) and self.of_sample is not None else "ours"
            sentence = f"on {where}: {difference(behind)} behind {whose}"
            if where != ALL:
                rows = (self.results.sample if self.slow(name) else self.results.every)[ALL].rows
                sentence += f", and {difference(every)} on all {rows} responses that it judged"
                sentence += ": one generator's are too few to tell" if verdict(every) == "holds" else ""
            sentence += "."
            if (added := self.added(name, where)) is not None:
                more = "knows what ours does not" if verdict(added) == "holds" else ""
                more = more or "is not shown to know more than ours"
                sentence += f" Combined with ours it adds {difference(added)}: it {more}."
            sentences.append(Markdown(f"{strong(name)} {text(sentence)}"))
        return sentences

    def ahead_of_slow(self, names: Sequence[str]) -> dict[str, bool]:
        """Whether ours is ahead of slow systems on each generator where it learned from as few responses."""
        ahead = {}
        for name, where in product(sorted(filter(self.slow, names)), self.generators):
            behind = self.results.sample[where].systems[name].behind_sample
            if behind is not None and not self.silent(name, where):
                auroc = behind["auroc"]
                ahead[f"{name} on {where} ({difference(auroc)})"] = verdict(auroc) == "holds"
        return ahead

    def at_a_glance(self) -> list[str]:
        """Names, those that judged all rows first, each kind by its mean AUROC."""

        def place(name: str) -> tuple[bool, float]:
            values = [self.quality(name, where).metrics["auroc"].value or 0.0 for where in self.generators]
            return self.slow(name), -fmean(values)

        return sorted((name for name in self.results.facts if name not in self.twins), key=place)

    def name(self, name: str) -> Markdown:
        return strong(name) if name in self.ours else text(name)


def view(results: Results) -> View:
    """Raises `InputError` for what a comparison did not write."""
    found = results.read(Comparison)
    costs: Costs | None = results.get("costs", Costs | None, None)
    page = _Page.of(found)
    figures = {}
    if costs is not None:
        forwards = {name: one.forwards for name, one in costs.systems.items()}
        aurocs = {name: _aurocs(found.sample[name]) for name in page.generators}
        figures["cost"] = draw_systems(aurocs, forwards, page.ours)
    glance = page.at_a_glance()
    others = [name for name in found.facts if name in glance and name not in page.ours]
    silent = {
        name: where
        for name in others
        if (where := [one for one in page.generators if page.silent(name, one)])
    }
    values = {
        "found": found,
        "page": page,
        "systems": len(others),
        "slow": sum(map(page.slow, others)),
        "rows": found.every[ALL].rows,
        "generators": [name for name in found.every if name != ALL],
        "reader": results.get("reader", str),
        "asks_another": results.get("asks_another", bool),
        "protocol": results.get("protocol", str),
        "resamples": results.get("resamples", int),
        "seed": results.get("sample_seed", int),
        "glance": glance,
        "others": others,
        "unbeaten": page.unbeaten(others),
        "ahead_of_slow": page.ahead_of_slow(others),
        "relevance": SIGNALS in found.facts[page.ours[0]].needs,
        "metrics": METRICS,
        "mute": silent,
        "answered": ANSWERED,
        "costs": costs,
        "unmeasured": [name for name in others if costs is not None and name not in costs.systems],
        "published": other_systems(),
        "choices": results.get("choices", dict[str, Any]),
    }
    filters: dict[str, Callable[..., Any]] = {"own": page.name, "ranked": _ranked, "silent": _unanswered}
    return View(values, figures, {"metrics": metrics_table(results.read(Comparison))}, filters)


def metrics_table(found: Comparison) -> pd.DataFrame:
    """Every metric with its interval, a row for each system, generator and set of rows."""
    return pd.DataFrame(
        {"rows": rows, "generator": generator, "system": name, "metric": metric}
        | {"value": interval.value, "low": interval.low, "high": interval.high}
        for rows, parts in (("all", found.every), ("sample", found.sample))
        for generator, part in parts.items()
        for name, quality in part.systems.items()
        for metric, interval in _metrics(quality).items()
    )


def _metrics(quality: Quality) -> dict[str, Interval]:
    metrics = dict(quality.metrics) | {f"behind: {name}": value for name, value in quality.behind.items()}
    if quality.behind_sample is not None:
        metrics |= {f"behind, of the sample: {name}": value for name, value in quality.behind_sample.items()}
    if quality.by_marks is not None:
        metrics |= {f"by marks: {name}": quality.by_marks[name] for name in DECISIONS}
    for kind in ("token", "span", "sentence") if quality.line is not None else ():
        metrics |= {f"{kind} {name}": value for name, value in getattr(quality.line, f"{kind}s").items()}
    return metrics


def _aurocs(part: Part) -> dict[str, Interval]:
    return {name: quality.metrics["auroc"] for name, quality in part.systems.items()}


def _ranked(systems: Mapping[str, Quality]) -> list[str]:
    """Names, the highest AUROC first."""
    return sorted(systems, key=lambda name: -(systems[name].metrics["auroc"].value or 0.0))


def _unanswered(systems: Mapping[str, Quality]) -> dict[str, str]:
    """What had no usable reply: a part of the questions, where any were asked of each response, and of the
    responses none at all."""
    return {
        name: (f"{percent(one.unreadable)} of the questions, " if one.unreadable else "")
        + f"{percent(1 - one.answered)} of the responses"
        for name, one in systems.items()
        if one.answered < 1 or one.unreadable
    }
