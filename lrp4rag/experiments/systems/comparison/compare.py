"""The comparison: every baseline and our detectors under one protocol, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.token_model import Tokens
from lrp4rag.experiments.claim import claim
from lrp4rag.experiments.systems.baseline import Baseline, Facts
from lrp4rag.experiments.systems.comparison.bench import Bench
from lrp4rag.experiments.systems.comparison.folds import Judged
from lrp4rag.experiments.systems.comparison.ours import DETECTOR, FACTS, OF_SAMPLE, our_systems
from lrp4rag.experiments.systems.comparison.sample import sample_of
from lrp4rag.experiments.systems.comparison.scores import Kept, Scores
from lrp4rag.experiments.systems.comparison.stack import stacked
from lrp4rag.experiments.systems.kit import Choices, Kit
from lrp4rag.experiments.systems.trained import refuse_learned
from lrp4rag.training.cache import Cache
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import Line, parts_of
from lrp4rag.training.metrics import compare, outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.search import Outcome
from lrp4rag.training.tokens import tokens_of

PROTOCOL = ONCE
KIND, RESULTS = "lrp4rag experiments compare", "results.json"
"""What a folder of results says of itself, and where."""
Numbers = NDArray[np.intp]


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
    line: Line | None
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
class Comparison:
    """`every` has the systems that judged all rows, `sample` all systems on the sample; by generator, and all
    of them together. `learned` is how many responses each system learned from, on average over the folds."""

    facts: dict[str, Facts]
    every: dict[str, Part]
    sample: dict[str, Part]
    learned: dict[str, int]
    stack: Stack | None
    sources: int
    sample_sources: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared, and on what. `sources` and `generators` make the sample; baselines named in `anew`
    are run whatever is kept of them."""

    baselines: Mapping[str, Baseline]
    sources: int
    generators: Sequence[str]
    choices: Choices
    jobs: int
    resamples: int
    stack: bool = True
    anew: frozenset[str] = frozenset()


def judged(
    rows: Rows, folder: Path, study: Path, kept: Path, plan: Plan, others: Path | None = None
) -> dict[str, Kept]:
    """What every system makes of the rows: read from the folders `kept` and `others` where these have it,
    else run; at once it is in `kept`. `folder` keeps measurements, weights and finished folds of baselines,
    `study` those of our detectors.

    The page goes beside `kept`: raises `InputError` where there is one that is not a comparison's, and where
    the store lacks what a system reads, or has too few sources.
    """
    claim(kept.parent, KIND, RESULTS)
    refuse_learned(plan.choices, rows.examples)
    sample = sample_of(rows, plan.sources, plan.generators)
    tokens, kit = tokens_of(rows, {}), Kit(folder, plan.choices)
    bench = Bench(rows, tokens, sample, kit, Cache.open(folder / "folds", plan.jobs), PROTOCOL)
    systems = our_systems(rows, sample, study, plan.jobs)
    systems |= {name: bench.system(name, one, anew=name in plan.anew) for name, one in plan.baselines.items()}
    ids = tuple(example.id for example in rows.examples)
    own = Scores(kept, ids, len(tokens.flags))
    own.prepare()
    found = {name: None if name in plan.anew else own.read(name, one.key) for name, one in systems.items()}
    if others is not None:
        read = replace(own, folder=others)
        for name in [name for name, one in found.items() if one is None and name not in plan.anew]:
            if (known := read.read(name, systems[name].key)) is not None:
                found[name] = own.keep(name, systems[name].key, known)
    bench.check({name: one for name, one in plan.baselines.items() if found[name] is None})
    return {
        name: own.write(name, systems[name].key, systems[name].run()) if one is None else one
        for name, one in found.items()
    }


def comparison(rows: Rows, found: Mapping[str, Judged], plan: Plan) -> Comparison:
    """Of what systems made of the rows."""
    sample = sample_of(rows, plan.sources, plan.generators)
    judge = _Judge(rows, tokens_of(rows, {}), found, plan.resamples)
    everyone = {name: one for name, one in found.items() if np.isfinite(one.outcome.probabilities).all()}
    return Comparison(
        facts={
            name: FACTS[name] if name in FACTS else plan.choices.facts_of(plan.baselines[name])
            for name in found
        },
        every=judge.parts(list(everyone), np.arange(len(rows))),
        sample=judge.parts(list(found), sample),
        learned={name: _learned(one) for name, one in found.items()},
        stack=_stack(rows, everyone, plan) if plan.stack else None,
        sources=len(set(rows.groups)),
        sample_sources=len(set(rows.groups[sample])),
    )


def _learned(judged: Judged) -> int:
    return round(float(np.mean([len(rows) for _, rows, _ in judged.outside])))


@dataclass(frozen=True, slots=True)
class _Judge:
    rows: Rows
    tokens: Tokens
    found: Mapping[str, Judged]
    resamples: int

    def parts(self, names: Sequence[str], chosen: Numbers) -> dict[str, Part]:
        return {name: self._part(names, own) for name, own in parts_of(self.rows, chosen).items()}

    def _part(self, names: Sequence[str], chosen: Numbers) -> Part:
        part = self.rows.select(chosen)
        return Part(
            rows=len(part),
            hallucinated=int(part.labels.sum()),
            systems={name: self._quality(name, part, chosen) for name in names},
        )

    def _quality(self, name: str, part: Rows, chosen: Numbers) -> Quality:
        one, labels, groups = self.found[name], part.labels, part.groups
        outcome, ours = one.outcome.select(chosen), self.found[DETECTOR].outcome.select(chosen)
        few = self.found[OF_SAMPLE].outcome.select(chosen) if OF_SAMPLE in self.found else None
        if few is not None and not np.isfinite(few.probabilities).all():
            few = None
        line, by_marks = one.line(part, self.tokens, chosen, self.resamples), None
        if one.marking is not None and line is not None:
            marked = np.isin(chosen, self.tokens.owner[one.marking.marked])
            told = replace(outcome, flagged=marked[None])
            by_marks = outcome_metrics(told, labels, groups, resamples=self.resamples)
        return Quality(
            metrics=outcome_metrics(outcome, labels, groups, resamples=self.resamples),
            behind=compare(ours, outcome, labels, groups, resamples=self.resamples),
            behind_sample=None
            if few is None
            else compare(few, outcome, labels, groups, resamples=self.resamples),
            line=line,
            by_marks=by_marks,
            answered=float(one.answered[chosen].mean()),
            unreadable=one.unreadable(chosen),
        )


def _stack(rows: Rows, found: Mapping[str, Judged], plan: Plan) -> Stack | None:
    texts = {
        name: found[name]
        for name, one in plan.baselines.items()
        if one.facts.access == "text" and name in found
    }
    if not texts:
        return None
    parts = parts_of(rows)

    def ahead(stack: Outcome, of: Outcome) -> dict[str, Metrics]:
        return {
            name: compare(
                stack.select(own),
                of.select(own),
                rows.labels[own],
                rows.groups[own],
                resamples=plan.resamples,
            )
            for name, own in parts.items()
        }

    ours = found[DETECTOR]
    best = stacked(ours, texts, rows.labels)
    return Stack(
        both={
            name: outcome_metrics(
                best.both.select(own), rows.labels[own], rows.groups[own], resamples=plan.resamples
            )
            for name, own in parts.items()
        },
        adds_to_text=ahead(best.both, best.alone),
        adds_to_ours=ahead(best.both, ours.outcome),
        chosen=best.both.chosen,
        each={
            name: ahead(stacked(ours, {name: one}, rows.labels).both, ours.outcome)
            for name, one in found.items()
            if name in plan.baselines
        },
    )
