"""Evaluation: a trained detector, and a policy, on labelled examples that the detector has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Assessment, Evidence, Judgement, Verdict
from lrp4rag.example import Example
from lrp4rag.guard.evaluation.result import Result
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import ONCE, groups_of, labels_of
from lrp4rag.training.localisation import CLASSIFIER, Localisation, localisation
from lrp4rag.training.metrics import RESAMPLES, intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.seen import seen_examples
from lrp4rag.training.token_folds import TokenPredictions
from lrp4rag.training.tokens import stored_records, tokens_of
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.progress import track


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics per generator (and "all" where there are several), and each row's probability.

    `abstained` has, by id, what of the rows without a verdict is unlike the training data. `metrics` judge
    them by their probability all the same; `judged` leaves them out, and is empty where there are none.
    `threshold` and `prevalence` (None: as in training) are those that decided. `localisation` is of a token
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


def evaluate(
    detector: FittedDetector,
    examples: Sequence[Example],
    extraction: Extraction,
    *,
    resamples: int = RESAMPLES,
    estimate: bool = False,
    policy: Policy | None = None,
    date: datetime | None = None,
) -> Evaluation:
    """Run the detector over what extraction left in its store; with `estimate` at the prevalence that the
    probabilities of these very rows tell, without their labels. The policy (by default the default one)
    decides as of a `date`, or of today.

    Raises `InputError` where no example could be replayed, and for too few to estimate from.
    """
    failures = dict(extraction.failures)
    read = [example for example in examples if example.id not in failures]
    judgements = list[Judgement]()
    records = stored_records(Rows(extraction.store, tuple(read)), detector.needs)
    for example, record in zip(read, track(records, len(read), "judging responses"), strict=True):
        try:
            judgements.append(detector.judgement(record, detector.assess(record)))
        except RelevanceError as error:  # a number that is none
            failures[example.id] = str(error)
    kept = tuple(example for example in read if example.id not in failures)
    if not kept:
        raise InputError("no example could be replayed")
    rows = Rows(extraction.store, kept)
    if estimate:
        detector, judgements = detector.at_estimated_prevalence(judgements)
    assessed = [one.assessment for one in judgements]
    verdicts = [one.verdict(Evidence(), Verdict) for one in judgements]
    deciding = [tuple(one for one in verdict.unlike if one.decides) for verdict in verdicts]
    probabilities = np.array([one.probability or 0.0 for one in assessed])
    labels, groups = labels_of(kept), groups_of(kept)
    generators = rows.generators
    parts = {name: generators == name for name in sorted(set(generators))}
    if len(parts) > 1:
        parts["all"] = np.ones(len(rows), dtype=bool)
    threshold = detector.card.threshold

    def metrics(parts: dict[str, NDArray[np.bool_]]) -> dict[str, Metrics]:
        return {
            name: intervals(labels[part], probabilities[part], groups[part], threshold, resamples)
            for name, part in parts.items()
            if part.any()
        }

    judged = np.array([not why for why in deciding])
    return Evaluation(
        metrics=metrics(parts),
        rows={name: int(part.sum()) for name, part in parts.items()},
        hallucinated={name: int(labels[part].sum()) for name, part in parts.items()},
        probabilities={row.id: float(p) for row, p in zip(kept, probabilities, strict=True)},
        seen=len(seen_examples(detector.card, kept)),
        failures=failures,
        abstained={row.id: why for row, why in zip(kept, deciding, strict=True) if why},
        judged={} if judged.all() else metrics({name: part & judged for name, part in parts.items()}),
        threshold=threshold,
        prevalence=detector.prevalence,
        localisation=_located(assessed, rows, threshold, resamples),
        results=tuple(
            _results(
                examples,
                {row.id: verdict for row, verdict in zip(kept, verdicts, strict=True)},
                failures,
                policy or Policy(),
                date,
            )
        ),
    )


def _results(
    examples: Sequence[Example],
    verdicts: Mapping[str, Verdict],
    failures: Mapping[str, str],
    policy: Policy,
    date: datetime | None,
) -> Iterator[Result]:
    """What could not be read is decided on too, as what could not be judged."""
    for example in track(examples, len(examples), "deciding"):
        verdict = verdicts.get(example.id)
        found = assess(policy, example, verdict, now=date)
        yield Result.of(example, verdict, found, failures.get(example.id, ""))


def _located(
    assessed: Sequence[Assessment], rows: Rows, threshold: float, resamples: int
) -> Localisation | None:
    """Of a model that scores tokens, where there are enough sources for the controls to learn from."""
    scores = [one.scores for one in assessed if one.scores is not None]
    marks = assessed[0].marks
    if marks is None or len(scores) < len(assessed):
        return None
    tokens = tokens_of(rows, {})
    log_odds = np.concatenate([one.among for one in scores])
    of_claims = [one.claims.probabilities for one in assessed if one.claims is not None]
    suspect = np.append((np.concatenate(of_claims) >= threshold) & tokens.stating, [False])[tokens.sentence]
    verdicts = np.array([[one.probability or 0.0 for one in assessed]])
    found = TokenPredictions(
        np.concatenate([one.alone for one in scores]),
        log_odds,
        suspect & (expit(log_odds) >= marks.threshold),
        suspect,
        Outcome(verdicts, verdicts >= threshold),
    )
    try:
        return localisation(rows, tokens, {CLASSIFIER: found}, ONCE, resamples=resamples)
    except InputError:  # too few sources
        return None
