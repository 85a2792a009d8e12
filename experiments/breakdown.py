"""Where systems are good and fail, from labelled examples and the scores that a comparison stored: no store
is needed.

By length, by how much is hallucinated, by kind of span and by prevalence; slow systems beside ours that
learned from as few responses; LettuceDetect with a threshold chosen as the others' are; claims of Grounded in
Context by their length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.figures.results import draw_breakdown, draw_claims
from experiments.metrics import compare
from experiments.pages import Results, View
from experiments.published import PUBLISHED
from experiments.systems.comparison import FINE_TUNED, read_costs
from experiments.systems.encoders import Embedder, Training
from experiments.systems.finetuned import TRAINING
from experiments.systems.grounded import (
    CLAIM_OVERLAP,
    CLAIM_TOKENS,
    Chunker,
    Starts,
    claims_fact,
    starts_of,
)
from experiments.systems.lettuce import MARKED_FROM
from experiments.systems.lettuce import TRAINING as LETTUCE_TRAINING
from experiments.systems.scores import ENDING, Numbers, SystemScores, read_scores
from experiments.systems.scoring import Flags, split
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.classifiers.verdict import merged_spans
from lrp4rag.example import Example
from lrp4rag.reader.encoding import Encoded, Offsets, tokens_in
from lrp4rag.reader.reader import load_reader
from lrp4rag.report.numbers import METRICS, bracketed, number
from lrp4rag.training.folds import groups_of, labels_of
from lrp4rag.training.localisation import ALL, Marking
from lrp4rag.training.metrics import (
    Draws,
    characters,
    intervals_of,
    outcome_metrics,
    overlap_metrics,
    token_intervals,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import read_record

OURS, LENGTH, NOVEL = "lrp4rag", "length", "novel-words"
OF_SAMPLE, LETTUCE, GROUNDED = "lrp4rag-learned-from-the-sample", "lettucedetect", "grounded-in-context"
SYSTEMS = (OURS, NOVEL, LENGTH)
CONTROLS = ("novel-words", "length", "lexical", "log-probability")
"""Of the comparison: each knows the generator and flags where precision equals recall, as ours does."""
PUBLISHED_TOO = (
    LETTUCE,
    "entailment",
    "ragulator-annotated",
    "ragulator-lightgbm",
    "ragulator-forest",
    GROUNDED,
)
"""Of the comparison: what others published, with small models that were trained here."""
_MINILM = "a MiniLM of 22M parameters, trained in the folds"
REMARKS = {
    LETTUCE: f"{_MINILM}; flagged by its calibrated score, not from a token at {MARKED_FROM}",
    "entailment": f"{_MINILM} on annotated sentences; also ragulator-encoder (its paper: simulated pairs)",
    "ragulator-annotated": f"{_MINILM}; learned from annotated sentences, its paper from simulated pairs",
    "ragulator-lightgbm": f"simulated pairs, as its paper; a feature is of {_MINILM} on annotated sentences",
    "ragulator-forest": f"simulated pairs, as its paper; a feature is of {_MINILM} on annotated sentences",
    GROUNDED: f"{_MINILM}; its paper's did not learn from RAGTruth",
}
"""What must be known to read the rows of `here`."""
CLAIM_LENGTH = "the claim's length"
THIRDS = ("shortest third", "middle third", "longest third")
SHARES = ((0.0, 0.1), (0.1, 0.3), (0.3, 1.0))
PREVALENCES = (0.05, 0.1, 0.25, 0.5)
STATES = ("full", "state alone")
EDGES = (1, 16, 31, 46, CLAIM_TOKENS + 1)
"""Of the groups of claims, in tokens of the embedder."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """R labelled responses, and the scores of systems by the names of their files."""

    examples: tuple[Example, ...]
    scores: Mapping[str, SystemScores]

    @cached_property
    def labels(self) -> Flags:
        """(R,), True for hallucinated."""
        return labels_of(self.examples)

    @cached_property
    def groups(self) -> NDArray[np.str_]:
        return groups_of(self.examples)

    @cached_property
    def generators(self) -> NDArray[np.str_]:
        return np.array([example.generator or "unknown" for example in self.examples])

    @cached_property
    def parts(self) -> dict[str, Numbers]:
        """The numbers of each generator's rows, and of all."""
        generators = self.generators
        by_name = {name: np.flatnonzero(generators == name) for name in sorted(set(generators.tolist()))}
        return by_name | {ALL: np.arange(len(self.examples))}

    def marking(self, name: str, count: int) -> Marking:
        """A system's scores and marks of the responses' tokens, one response after the other, (count,).

        Raises `ValueError` where it scored none, or other tokens.
        """
        marking = self.scores[name].marking
        if marking is None:
            raise ValueError("no scores of tokens")
        if len(marking.scores) != count:
            raise ValueError("the scores are of other tokens")
        return marking

    def judged_by(self, name: str) -> Numbers:
        """The rows that a system judged."""
        return np.flatnonzero(np.isfinite(self.scores[name].outcome.probabilities[0]))


def read_stored(examples: Sequence[Example], folder: Path) -> StoredRows:
    """The labelled examples that the scores of a folder are of, in their order.

    Raises `InputError` where there are no scores, they are of different responses, or an example is missing.
    """
    found = {path.name.removesuffix(ENDING): read_scores(path) for path in sorted(folder.glob(f"*{ENDING}"))}
    if not found:
        raise InputError(f"no scores ({ENDING}) here", path=folder)
    first = next(iter(found.values()))
    for name, one in found.items():
        if one.ids != first.ids:
            raise InputError(f"{name} has scores of other responses than {first.system}", path=folder)
    by_id = {example.id: example for example in examples if example.labels is not None}
    missing = [id_ for id_ in first.ids if id_ not in by_id]
    if missing:
        raise InputError(f"{len(missing)} scored responses are not in the data (first: '{missing[0]}')")
    rows = tuple(by_id[id_] for id_ in first.ids)
    return StoredRows(rows, {name: one.scores for name, one in found.items()})


# Strata.


@dataclass(frozen=True, slots=True)
class Stratum:
    """Some rows: how many, how many hallucinated, the metrics of systems, and by what ours beats others."""

    by: str
    name: str
    generator: str
    rows: int
    hallucinated: int
    systems: dict[str, Metrics]
    ahead: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class AtPrevalence:
    """Precision, recall and F1 where this part of responses is hallucinated, at the stored threshold."""

    generator: str
    prevalence: float
    systems: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Here:
    """Precision, recall and F1 of all responses: as many of them hallucinated as there are, and as many as in
    the published test set."""

    metrics: Metrics
    published: Metrics


def strata(rows: StoredRows, resamples: int) -> list[Stratum]:
    """Of each generator and of all. A stratum of hallucinated rows stands beside all faithful ones."""
    return [
        _measured(rows, by, name, generator, np.intersect1d(inside, part), resamples)
        for generator, part in rows.parts.items()
        for by, named in _named(rows).items()
        for name, inside in named.items()
    ]


def _named(rows: StoredRows) -> dict[str, dict[str, Numbers]]:
    faithful = ~rows.labels
    kinds = sorted({label.kind for example in rows.examples for label in example.labels or ()})
    share = np.array([share_of(example) for example in rows.examples])
    return {
        "length in words": {
            f"{name} ({low} to {high})": numbers for name, low, high, numbers in thirds(rows.examples)
        },
        "characters hallucinated": {
            f"{low:.0%} to {high:.0%}": np.flatnonzero(faithful | (share > low) & (share <= high))
            for low, high in SHARES
        },
        "kind of span": {
            kind: np.flatnonzero(faithful | np.array([has_kind(one, kind) for one in rows.examples]))
            for kind in kinds
        },
    }


def thirds(examples: Sequence[Example]) -> list[tuple[str, int, int, Numbers]]:
    """Name, shortest and longest length in words, and rows, of each third by length."""
    lengths = np.array([len((example.response or "").split()) for example in examples])
    place = np.searchsorted(np.quantile(lengths, [1 / 3, 2 / 3]), lengths)
    found = []
    for k, name in enumerate(THIRDS):
        numbers = np.flatnonzero(place == k)
        found.append((name, int(lengths[numbers].min()), int(lengths[numbers].max()), numbers))
    return found


def share_of(example: Example) -> float:
    """The part of a response's characters that lie in a labelled span."""
    response = example.response or ""
    mask = np.zeros(len(response), dtype=bool)
    for label in example.labels or ():
        mask[label.start : label.end] = True
    return float(mask.mean()) if len(mask) else 0.0


def has_kind(example: Example, kind: str) -> bool:
    return any(label.kind == kind for label in example.labels or ())


def _measured(
    rows: StoredRows, by: str, name: str, generator: str, chosen: Numbers, resamples: int
) -> Stratum:
    labels, groups = rows.labels[chosen], rows.groups[chosen]
    outcomes = {system: rows.scores[system].outcome.select(chosen) for system in SYSTEMS}
    return Stratum(
        by,
        name,
        generator,
        len(chosen),
        int(labels.sum()),
        {
            system: outcome_metrics(one, labels, groups, resamples=resamples)
            for system, one in outcomes.items()
        },
        {
            system: compare(outcomes[OURS], one, labels, groups, resamples=resamples)
            for system, one in outcomes.items()
            if system != OURS
        },
    )


def at_prevalences(rows: StoredRows, resamples: int) -> list[AtPrevalence]:
    """The rates of hits and of false alarms stay, the classes are weighed anew."""
    return [
        AtPrevalence(
            generator,
            prevalence,
            {
                system: _weighed(
                    rows.labels[part],
                    rows.scores[system].outcome.flagged[0, part],
                    rows.groups[part],
                    prevalence,
                    resamples,
                )
                for system in SYSTEMS
            },
        )
        for generator, part in rows.parts.items()
        if generator == ALL
        for prevalence in PREVALENCES
    ]


def here(rows: StoredRows, names: Sequence[str], prevalence: float, resamples: int) -> dict[str, Here]:
    """Of systems that judged all responses, which stay as they are but for their classes' weights."""
    share = float(rows.labels.mean())
    found = {}
    for name in names:
        flagged = rows.scores[name].outcome.flagged[0]
        given = rows.labels, flagged, rows.groups
        found[name] = Here(_weighed(*given, share, resamples), _weighed(*given, prevalence, resamples))
    return found


def _weighed(
    labels: Flags, flagged: Flags, groups: NDArray[np.str_], prevalence: float, resamples: int
) -> Metrics:
    def measured(weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        recall = weights @ (labels & flagged) / (weights @ labels)
        alarms = weights @ (~labels & flagged) / (weights @ ~labels)
        hits = prevalence * recall
        precision = hits / (hits + (1 - prevalence) * alarms)
        return {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall),
        }

    with np.errstate(divide="ignore", invalid="ignore"):
        return intervals_of(Draws.of(groups, resamples).values(measured))


def relaxed(examples: Sequence[Example]) -> Flags:
    """(R,), True where a span is marked that is not `implicit_true`."""
    return np.array([any(not label.implicit_true for label in example.labels or ()) for example in examples])


@dataclass(frozen=True, slots=True)
class CountedFaithful:
    """The same verdicts with responses whose spans are all `implicit_true` counted as faithful."""

    rows: int
    hallucinated: int
    changed: int
    strict: Mapping[str, Metrics]
    relaxed: Mapping[str, Metrics]


def implicit(rows: StoredRows, resamples: int) -> dict[str, CountedFaithful]:
    others = relaxed(rows.examples)
    found = {}
    for generator, part in rows.parts.items():
        strict, other, groups = rows.labels[part], others[part], rows.groups[part]
        outcomes = {system: rows.scores[system].outcome.select(part) for system in SYSTEMS}
        found[generator] = CountedFaithful(
            rows=len(part),
            hallucinated=int(strict.sum()),
            changed=int((strict & ~other).sum()),
            strict={
                name: outcome_metrics(one, strict, groups, resamples=resamples)
                for name, one in outcomes.items()
            },
            relaxed={
                name: outcome_metrics(one, other, groups, resamples=resamples)
                for name, one in outcomes.items()
            },
        )
    return found


# Like beside like.


@dataclass(frozen=True, slots=True)
class Line:
    """A system on some rows, by what another beats it, and the part of the rows that it had something to go
    by for."""

    metrics: Metrics
    ahead: Metrics
    answered: float


def twins(rows: StoredRows) -> list[tuple[str, ...]]:
    """Names of systems that gave every response the same probability: one system under several names."""
    pairs = [
        (first, second)
        for first, second in combinations(rows.scores, 2)
        if np.array_equal(
            rows.scores[first].outcome.probabilities,
            rows.scores[second].outcome.probabilities,
            equal_nan=True,
        )
    ]
    return [tuple(sorted(pair)) for pair in pairs]


def counted(rows: StoredRows) -> int:
    """How many systems there are beside ours, each once."""
    others = {name for name in rows.scores if not name.startswith(OURS)}
    return len(others - {second for _, second in twins(rows)})


def beside_published(rows: StoredRows) -> list[str]:
    """What stands beside published systems, of what has scores of all responses; ours first."""
    every = (OURS, *PUBLISHED_TOO, *CONTROLS)
    count = len(rows.examples)
    return [name for name in every if name in rows.scores and len(rows.judged_by(name)) == count]


def lines(rows: StoredRows, ours: str, names: Sequence[str], resamples: int) -> dict[str, dict[str, Line]]:
    """By generator and system, on the rows that `ours` and the system judged; `ours` stands first."""
    found: dict[str, dict[str, Line]] = {}
    for generator, part in rows.parts.items():
        found[generator] = {}
        for name in (ours, *names):
            both = np.intersect1d(np.intersect1d(rows.judged_by(ours), rows.judged_by(name)), part)
            if not len(both):
                continue
            given = rows.labels[both], rows.groups[both]
            outcome = rows.scores[name].outcome.select(both)
            found[generator][name] = Line(
                outcome_metrics(outcome, *given, resamples=resamples),
                compare(rows.scores[ours].outcome.select(both), outcome, *given, resamples=resamples),
                float(rows.scores[name].answered[both].mean()),
            )
    return {generator: some for generator, some in found.items() if some}


def slow(rows: StoredRows) -> list[str]:
    """The systems that judged the sample only, but for ours."""
    count = len(rows.examples)
    return [name for name in rows.scores if len(rows.judged_by(name)) < count and name != OF_SAMPLE]


# LettuceDetect's threshold.


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """Metrics of spans and tokens by generator, as published and with a threshold from the other folds."""

    published: dict[str, Metrics]
    tuned: dict[str, Metrics]
    thresholds: tuple[float, ...]


def lettuce(rows: StoredRows, offsets: Sequence[Offsets], resamples: int) -> Marked:
    """Each fold's threshold is the one with the best F1 of tokens of the other folds, by scores of models
    that had not learned from these."""
    owner = np.repeat(np.arange(len(offsets)), [len(one) for one in offsets])
    marking = rows.marking(LETTUCE, len(owner))
    flags = np.concatenate(
        [
            tokens_in(one, [(label.start, label.end) for label in example.labels or ()])
            for one, example in zip(offsets, rows.examples, strict=True)
        ]
    )
    tuned, chosen = rows.scores[LETTUCE].tuned(owner, flags)
    return Marked(
        # As the folds marked: scores are stored with three digits, so that 0.4996 is 0.5 here.
        spans_of(rows, offsets, owner, marking.marked, resamples),
        spans_of(rows, offsets, owner, tuned, resamples),
        chosen,
    )


def spans_here(
    rows: StoredRows, names: Sequence[str], offsets: Sequence[Offsets], resamples: int
) -> dict[str, Metrics]:
    """Characters of all responses as each system marks them, of those that mark any."""
    owner = np.repeat(np.arange(len(offsets)), [len(one) for one in offsets])
    marked = {name: one.marking.marked for name in names if (one := rows.scores[name]).marking is not None}
    return {name: spans_of(rows, offsets, owner, one, resamples)[ALL] for name, one in marked.items()}


def spans_of(
    rows: StoredRows, offsets: Sequence[Offsets], owner: Numbers, marked: Flags, resamples: int
) -> dict[str, Metrics]:
    """Precision, recall and F1 of characters, by generator."""
    found = []
    for k, (one, example) in enumerate(zip(offsets, rows.examples, strict=True)):
        first, last = np.searchsorted(owner, [k, k + 1])
        text = example.response or ""
        annotated = [(label.start, label.end) for label in example.labels or ()]
        found.append(characters(merged_spans(marked[first:last], one, text), annotated, len(text)))
    return {
        generator: overlap_metrics([found[k] for k in part], rows.groups[part], resamples=resamples)
        for generator, part in rows.parts.items()
    }


# Claims of Grounded in Context.


@dataclass(frozen=True, slots=True)
class Group:
    """Claims of `shortest` to `longest` tokens: how many, how many an annotated span touches, and how well
    their score and their length tell those."""

    shortest: int
    longest: int
    claims: int
    annotated: int
    systems: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Claims:
    """All of the responses; `lengths` are counts by tens of tokens, of faithful and of annotated claims."""

    count: int
    mean: float
    median: float
    longest: int
    lengths: dict[str, tuple[int, ...]]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Claim:
    tokens: int
    score: float
    annotated: bool
    source: str


def claims_of(rows: StoredRows, offsets: Sequence[Offsets], starts: Starts, resamples: int) -> Claims:
    """Cut as the system cuts them. A claim's score is the highest of its tokens, which are stored; where
    claims overlap, a token has the higher score of both.

    Raises `ValueError` without scores of tokens, or with those of other tokens.
    """
    found = _scored(rows, offsets, starts)
    lengths = np.array([one.tokens for one in found])
    flags = np.array([one.annotated for one in found])
    scores = np.array([one.score for one in found])
    sources = np.array([one.source for one in found])
    groups = []
    for low, high in pairwise(EDGES):
        own = (lengths >= low) & ((lengths < high) | (high == EDGES[-1]))
        if len(set(flags[own].tolist())) < 2:
            continue
        systems = {GROUNDED: scores[own], CLAIM_LENGTH: lengths[own].astype(float)}
        groups.append(
            Group(
                low,
                int(lengths[own].max()),
                int(own.sum()),
                int(flags[own].sum()),
                {
                    name: token_intervals(flags[own], values, values > np.inf, sources[own], resamples)
                    for name, values in systems.items()
                },
            )
        )
    return Claims(
        len(found),
        fmean(lengths.tolist()),
        float(median(lengths.tolist())),
        int(lengths.max()),
        {
            name: _by_tens(lengths[flags == which])
            for name, which in (("faithful", False), ("annotated", True))
        },
        tuple(groups),
    )


def _scored(rows: StoredRows, offsets: Sequence[Offsets], starts: Starts) -> list[_Claim]:
    every = rows.marking(GROUNDED, sum(map(len, offsets))).scores
    chunker, found = Chunker(starts, CLAIM_TOKENS, CLAIM_OVERLAP), []
    for example, own, scores in zip(rows.examples, offsets, split(every, offsets), strict=True):
        text = example.response or ""
        spans = [(label.start, label.end) for label in example.labels or ()]
        for piece in chunker(text):
            words = text[piece[0] : piece[1]]
            inside = tokens_in(own, [piece])
            if claims_fact(words) and inside.any():
                flag = bool(tokens_in([piece], spans)[0])
                score = float(scores[inside].max())
                found.append(_Claim(len(starts(words)), score, flag, example.source))
    return found


def _by_tens(lengths: NDArray[np.intp]) -> tuple[int, ...]:
    counts = np.bincount(np.minimum((lengths - 1) // 10, CLAIM_TOKENS // 10), minlength=CLAIM_TOKENS // 10)
    return tuple(int(one) for one in counts)


# All of it.


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of prompt and response together, in tokens of the reader."""

    mean: float
    median: float
    largest: int

    @classmethod
    def of(cls, encodings: Sequence[Encoded]) -> Lengths:
        lengths = [len(one.prompt_ids) + len(one.response_ids) for one in encodings]
        return cls(fmean(lengths), median(lengths), max(lengths))


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """All sections. `state` is what the study's page says of the hidden state alone, by generator."""

    rows: int
    sources: int
    hallucinated: int
    strata: list[Stratum]
    prevalences: list[AtPrevalence]
    implicit: dict[str, CountedFaithful]
    controls: dict[str, dict[str, Line]]
    twins: list[tuple[str, ...]]
    systems: int
    slow: dict[str, dict[str, Line]]
    lettuce: Marked
    claims: Claims
    here: dict[str, Here]
    spans_here: dict[str, Metrics]
    lettuce_training: Training
    reader: str
    fine_tuned_steps: int
    lengths: Lengths
    state: dict[str, dict[str, Metrics]]
    forwards: dict[str, float]


def measure(examples: Sequence[Example], compared: Path, study: Path, resamples: int) -> Breakdown:
    """Raises `InputError` for what no comparison or study wrote, and where an example is missing."""
    rows = read_stored(examples, compared / "scores")
    record = read_record(study, "what python -m experiments study wrote")
    reader = load_reader(device="cpu")
    encodings = [reader.encode(example) for example in rows.examples]
    offsets = [one.response_offsets for one in encodings]
    try:
        state = {name: _chosen(one, STATES) for name, one in record["ways"]["responses"].items()}
    except (KeyError, TypeError) as error:
        raise InputError(f"not what a study wrote: {error!r}", path=study) from error
    beside, published = beside_published(rows), PUBLISHED["ragtruth"]
    return Breakdown(
        rows=len(rows.examples),
        sources=len(set(rows.groups)),
        hallucinated=int(rows.labels.sum()),
        strata=strata(rows, resamples),
        prevalences=at_prevalences(rows, resamples),
        implicit=implicit(rows, resamples),
        controls=lines(rows, OURS, CONTROLS, resamples),
        twins=twins(rows),
        systems=counted(rows),
        slow=lines(rows, OF_SAMPLE, slow(rows), resamples),
        lettuce=lettuce(rows, offsets, resamples),
        claims=claims_of(rows, offsets, starts_of(Embedder.load(device="cpu")), resamples),
        here=here(rows, beside, published["hallucinated"] / published["rows"], resamples),
        spans_here=spans_here(rows, beside, offsets, resamples),
        lettuce_training=LETTUCE_TRAINING,
        reader=reader.identity.name,
        fine_tuned_steps=TRAINING.steps(rows.scores[FINE_TUNED].trained_on),
        lengths=Lengths.of(encodings),
        state=state,
        forwards={name: one.forwards for name, one in read_costs(compared / "costs.json").systems.items()},
    )


def _chosen(ways: dict[str, Any], names: Sequence[str]) -> dict[str, Metrics]:
    return {
        name: {metric: Interval(**one) for metric, one in ways[name].items() if isinstance(one, dict)}
        for name in names
    }


def view(results: Results) -> View:
    """Raises `InputError` for what `measure` did not give."""
    found = results.read(Breakdown)
    values = {
        "rate": lambda value: f"{value:.6f}".rstrip("0"),
        "found": found,
        "protocol": results.get("protocol", str),
        "resamples": results.get("resamples", int),
        "every": ALL,
        "ours": OURS,
        "names": SYSTEMS,
        "by": by_kind(found.strata),
        "of_sample": OF_SAMPLE,
        "half": MARKED_FROM,
        "lettuce": LETTUCE,
        "published": PUBLISHED["ragtruth"],
        "metrics": METRICS,
        "remarks": REMARKS,
        "grounded": GROUNDED,
        "claim_length": CLAIM_LENGTH,
    }
    figures = {
        "breakdown": draw_breakdown(found.strata, found.prevalences),
        "claims": draw_claims(found.claims),
    }
    return View(values, figures, {"strata": strata_table(found.strata)}, {"percents": _percents})


def _percents(one: Interval) -> str:
    """56.1 [54.0, 58.2], in percent as papers print it."""
    if one.value is None or one.low is None or one.high is None:
        return number(None if one.value is None else 100 * one.value, 1)
    return f"{100 * one.value:.1f} {bracketed(100 * one.low, 100 * one.high, 1)}"


def by_kind(strata: Sequence[Stratum]) -> dict[str, list[Stratum]]:
    """Those of all generators together, by what they divide by."""
    found: dict[str, list[Stratum]] = {}
    for one in strata:
        if one.generator == ALL:
            found.setdefault(one.by, []).append(one)
    return found


def strata_table(strata: Sequence[Stratum]) -> pd.DataFrame:
    """Every metric of every system, and by what ours is ahead, a row for each."""
    return pd.DataFrame(
        [
            {
                "generator": one.generator,
                "by": one.by,
                "stratum": one.name,
                "rows": one.rows,
                "hallucinated": one.hallucinated,
                "system": system,
                "metric": name,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
            }
            for one in strata
            for system, metrics in _all_metrics(one)
            for name, interval in metrics.items()
        ]
    )


def _all_metrics(one: Stratum) -> list[tuple[str, Metrics]]:
    ahead = {f"{OURS} less {name}": metrics for name, metrics in one.ahead.items()}
    return [*one.systems.items(), *ahead.items()]
