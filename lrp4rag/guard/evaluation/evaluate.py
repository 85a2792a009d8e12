"""Evaluation: a trained detector, and a policy, on labelled examples that the detector has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.verdict import Assessment, Evidence, Judgement, Verdict
from lrp4rag.example import Example
from lrp4rag.guard.evaluation.result import Result
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.reader.published import Published
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import ONCE, groups_of, labels_of
from lrp4rag.training.localisation import CLASSIFIER, Localisation, localisation
from lrp4rag.training.metrics import RESAMPLES, intervals
from lrp4rag.training.rows import Rows, TextRows
from lrp4rag.training.token_folds import TokenPredictions
from lrp4rag.training.tokens import stored_records, tokens_of
from lrp4rag.training.train import seen_examples
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.progress import track

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics per generator (and "all" where there are several), and each row's probability.

    `abstained` has, by id, what of the rows without a verdict is unlike the training data. `metrics` judge
    them by their probability all the same; `judged` leaves them out, and is empty where there are none.
    `threshold` and `prevalence` (None: as in training) are those that decided, and `comparer` the published
    one that read the sentences, None where the detector's own did. `localisation` is of a token
    detector, with controls that are cross-validated on these very rows, and None where there are too few
    sources for that. `results` are those of all examples, failed ones too, in their order.
    """

    metrics: dict[str, Metrics]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    probabilities: dict[str, float]
    seen: int
    failures: dict[str, str]
    abstained: dict[str, tuple[Unlike, ...]] = field(default_factory=dict)
    judged: dict[str, Metrics] = field(default_factory=dict)
    threshold: float = 0.5
    prevalence: float | None = None
    localisation: Localisation | None = None
    results: tuple[Result, ...] = ()
    comparer: Published | None = None


def evaluate(
    detector: Model,
    examples: Sequence[Example],
    extraction: Extraction | None,
    *,
    resamples: int = RESAMPLES,
    estimate: bool = False,
    policy: Policy | None = None,
    date: datetime | None = None,
) -> Evaluation:
    """Run the detector over what extraction left in its store (None for one that needs nothing of a reader);
    with `estimate` at the prevalence that the
    probabilities of these very rows tell, without their labels. The policy (by default the default one)
    decides as of a `date`, or of today.

    Raises `InputError` where no example could be replayed, and for too few to estimate from.
    """
    failures = dict(extraction.failures) if extraction else {}
    stored = [example for example in examples if example.id not in failures]
    judged = _judgements(detector, stored, extraction, failures)
    rows, judgements = _rows_of(extraction, tuple(judged)), list(judged.values())
    if estimate:
        detector, judgements = detector.at_estimated_prevalence(judgements)
    assessments = [judgement.assessment for judgement in judgements]
    verdicts = {
        example.id: judgement.verdict(Evidence(), Verdict)
        for example, judgement in zip(judged, judgements, strict=True)
    }
    abstained = {id: unlike for id, verdict in verdicts.items() if (unlike := _deciding(verdict))}
    threshold = detector.card.threshold
    probabilities = np.array([assessment.probability or 0.0 for assessment in assessments])
    measure = partial(_metrics, rows, probabilities, threshold, resamples)
    with_verdict = np.array([id not in abstained for id in verdicts])
    parts = _parts(rows.generators)
    labels = labels_of(rows.examples)
    results = _results(examples, verdicts, failures, policy or Policy(), date)
    return Evaluation(
        metrics=measure(parts),
        rows={name: int(part.sum()) for name, part in parts.items()},
        hallucinated={name: int(labels[part].sum()) for name, part in parts.items()},
        probabilities=dict(zip(verdicts, map(float, probabilities), strict=True)),
        seen=len(seen_examples(detector.card, rows.examples, detector.replacement)),
        failures=failures,
        abstained=abstained,
        judged=measure({name: part & with_verdict for name, part in parts.items()}) if abstained else {},
        threshold=threshold,
        prevalence=detector.prevalence,
        localisation=_localisation(assessments, rows, threshold, resamples),
        results=tuple(results),
        comparer=detector.replacement.published if detector.replacement else None,
    )


def _rows_of(extraction: Extraction | None, examples: Sequence[Example]) -> Rows:
    return Rows(extraction.store, tuple(examples)) if extraction else TextRows.of(examples)


def _judgements(
    detector: Model, examples: Sequence[Example], extraction: Extraction | None, failures: dict[str, str]
) -> dict[Example, Judgement]:
    """Return the judgement of each example. One with an invalid number joins the `failures`."""
    judgements: dict[Example, Judgement] = {}
    records = stored_records(_rows_of(extraction, examples), detector.needs)
    for example, record in zip(examples, track(records, len(examples), "judging responses"), strict=True):
        try:
            read = detector.record_of(record)
            judgements[example] = detector.judgement(read, detector.assess(read))
        except RelevanceError as error:
            failures[example.id] = str(error)
    if not judgements:
        raise InputError("no example could be replayed")
    return judgements


def _deciding(verdict: Verdict) -> tuple[Unlike, ...]:
    """Return the out-of-distribution features for which a verdict abstains."""
    return tuple(unlike for unlike in verdict.unlike if unlike.decides)


def _parts(generators: NDArray[np.str_]) -> dict[str, Flags]:
    """Return the rows of each generator, and of "all" where there are several."""
    parts = {str(name): generators == name for name in sorted(set(generators))}
    return parts if len(parts) < 2 else {**parts, "all": np.ones(len(generators), dtype=bool)}


def _metrics(
    rows: Rows,
    probabilities: NDArray[np.float64],
    threshold: float,
    resamples: int,
    parts: Mapping[str, Flags],
) -> dict[str, Metrics]:
    """Return the metrics of each part that has a row."""
    labels, groups = labels_of(rows.examples), groups_of(rows.examples)
    return {
        name: intervals(labels[part], probabilities[part], groups[part], threshold, resamples)
        for name, part in parts.items()
        if part.any()
    }


def _results(
    examples: Sequence[Example],
    verdicts: Mapping[str, Verdict],
    failures: Mapping[str, str],
    policy: Policy,
    date: datetime | None,
) -> Iterator[Result]:
    """Yield the result of each example; one that failed is decided on as unavailable."""
    for example in track(examples, len(examples), "deciding"):
        verdict = verdicts.get(example.id)
        assessment = assess(policy, example, verdict, now=date)
        yield Result.of(example, verdict, assessment, failures.get(example.id, ""))


def _localisation(
    assessments: Sequence[Assessment], rows: Rows, threshold: float, resamples: int
) -> Localisation | None:
    """Locate by a model that scores tokens, where the controls have enough sources to learn from."""
    scores = [assessment.scores for assessment in assessments if assessment.scores is not None]
    marks = assessments[0].marks
    if marks is None or len(scores) < len(assessments):
        return None
    tokens = tokens_of(rows, {})
    log_odds = np.concatenate([score.among for score in scores])
    of_claims = [
        assessment.claims.probabilities for assessment in assessments if assessment.claims is not None
    ]
    suspect = np.append((np.concatenate(of_claims) >= threshold) & tokens.stating, [False])[tokens.sentence]
    verdicts = np.array([[assessment.probability or 0.0 for assessment in assessments]])
    predictions = TokenPredictions(
        np.concatenate([score.alone for score in scores]),
        log_odds,
        suspect & (expit(log_odds) >= marks.threshold),
        suspect,
        Outcome(verdicts, verdicts >= threshold),
    )
    try:
        return localisation(rows, tokens, {CLASSIFIER: predictions}, ONCE, resamples=resamples)
    except InputError:  # too few sources
        return None
