"""One baseline by itself: cross-validated on a store, or learned from it to judge other responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Cache
from experiments.systems.baseline import Baseline
from experiments.systems.comparison.compare import PROTOCOL
from experiments.systems.comparison.folds import FoldRunner
from experiments.systems.comparison.scores import SystemScores
from experiments.systems.registry import baseline_named
from experiments.systems.resources import Resources
from experiments.systems.scoring import Score, ScoredSpan
from experiments.systems.trained import refuse_seen
from lrp4rag.classifiers.card import Located, Metrics
from lrp4rag.classifiers.verdict import merged_spans
from lrp4rag.example import Example
from lrp4rag.features.parts import RELEVANCE
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.extract import extract
from lrp4rag.training.localisation import parts_of
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class CrossValidated:
    """Of a baseline on the rows that it judged (`examples`): their scores, whose `suspects` are runs of
    marked tokens, and by generator the metrics of responses and of tokens, spans and sentences (None where it
    scores no parts)."""

    examples: tuple[Example, ...]
    scores: tuple[Score, ...]
    responses: dict[str, Metrics]
    lines: dict[str, Located | None]
    answered: float
    chosen: tuple[str, ...]


def cross_validate(
    name: str,
    rows: Rows,
    sample: NDArray[np.intp],
    resources: Resources,
    resamples: int,
    *,
    anew: bool = False,
) -> CrossValidated:
    """Under the comparison's protocol; finished folds are cached in the resources' folder, and with `anew`
    run again.

    Raises `InputError` for an unknown baseline, or where the store lacks what it reads.
    """
    if resources.folder is None:
        raise InputError("a cross-validation needs a folder to keep its folds in")
    baseline = baseline_named(name)
    refuse_seen(resources.choices, rows.examples)
    tokens = tokens_of(rows, {})
    runner = FoldRunner(rows, tokens, sample, resources, Cache.open(resources.folder / "folds"), PROTOCOL)
    runner.check({name: baseline})
    found = runner.system(name, baseline, anew=anew).run()
    chosen = sample if baseline.facts.slow else np.arange(len(rows))
    responses, lines = {}, {}
    for generator, own in parts_of(rows, chosen).items():
        part = rows.select(own)
        responses[generator] = outcome_metrics(
            found.outcome.select(own), part.labels, part.groups, resamples=resamples
        )
        lines[generator] = found.line(part, tokens, own, resamples)
    return CrossValidated(
        examples=rows.select(chosen).examples,
        scores=tuple(_score(rows, tokens, found, int(k)) for k in chosen),
        responses=responses,
        lines=lines,
        answered=float(found.answered[chosen].mean()),
        chosen=found.outcome.chosen,
    )


def _score(rows: Rows, tokens: Tokens, found: SystemScores, row: int) -> Score:
    parts = None
    if found.marking is not None and found.marks(own := tokens.within(np.array([row]))):
        values = zip(found.marking.scores[own].tolist(), found.marking.marked[own].tolist(), strict=True)
        offsets = rows.relevances[row].encoded.response_offsets
        parts = [ScoredSpan(*span, *value) for span, value in zip(offsets, values, strict=True)]
    outcome = found.outcome
    return Score(
        float(outcome.probabilities[0, row]),
        bool(outcome.flagged[0, row]),
        _spans(parts, rows.examples[row].response or ""),
        bool(found.answered[row]),
        int(found.asked[row]),
        int(found.unanswered[row]),
    )


def _spans(parts: Sequence[ScoredSpan] | None, text: str) -> tuple[ScoredSpan, ...] | None:
    """Runs of marked parts of a response, with the highest of their scores."""
    if parts is None:
        return None
    scores, marked = np.array([one.score for one in parts]), np.array([one.marked for one in parts], bool)
    offsets = [(one.start, one.end) for one in parts]
    return tuple(
        ScoredSpan(start, end, float(scores[tokens_in(offsets, [(start, end)])].max()), True)
        for start, end in merged_spans(marked, offsets, text)
    )


def judge_others(
    baseline: Baseline,
    rows: Rows,
    sample: NDArray[np.intp],
    examples: Sequence[Example],
    resources: Resources,
) -> list[Score]:
    """Learn from all of the rows (a slow baseline from the sample of them, with models that are trained on
    all), and judge other examples, whose parts are extracted first where the baseline reads any. Suspects are
    spans: runs of marked parts.

    Raises `InputError` for an example without a response, or with one of the rows' sources.
    """
    known = {one.content_hash for one in rows.examples}
    for one in examples:
        if one.response is None:
            raise InputError(f"'{one.id}' has no response to judge", field="response")
        if one.content_hash in known:
            raise InputError(
                f"'{one.id}' has question and passages of the store that is learned from: its score would be "
                "too good"
            )
    refuse_seen(resources.choices, examples)
    store = rows.store
    if baseline.facts.needs:
        if resources.reader.identity.digest != store.configuration.reader["digest"]:
            raise InputError(
                f"the store was read by {store.configuration.reader['name']}, and {resources.choices.reader} "
                "is another reader or frames prompts otherwise; name the store's (--reader)"
            )
        if resources.folder is None:
            raise InputError("what this baseline reads must be extracted, into a folder")
        done = extract(
            examples,
            resources.reader,
            resources.folder / "judged",
            composite=store.configuration.composite,
            truncation=store.configuration.truncation,
            parts=list(dict.fromkeys((RELEVANCE, *baseline.facts.needs))),
        )
        if done.failures:
            id_, why = next(iter(done.failures.items()))
            raise InputError(f"'{id_}': {why}")
        store = done.store
    learned = rows.select(sample) if baseline.facts.slow else rows
    fitted = baseline.fit(learned, replace(resources, training_rows=rows))
    scores = fitted.score(Rows(store, tuple(examples)), resources)
    return [
        replace(score, suspects=_spans(score.suspects, one.response or ""))
        for score, one in zip(scores, examples, strict=True)
    ]
