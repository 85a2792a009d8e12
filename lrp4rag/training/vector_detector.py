"""A detector that reads one vector a response (the paper's way): fitted, calibrated, with its card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import candidates_on, fit_best
from lrp4rag.classifiers.card import Card, VectorInput, package_versions
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.classifiers.folder import FORMAT
from lrp4rag.classifiers.model import require_embeddings
from lrp4rag.classifiers.scorers import arrays_of
from lrp4rag.classifiers.vector_model import VectorModel
from lrp4rag.classifiers.vectors import FEATURE_VERSION, Features
from lrp4rag.features.units import TOKEN_WINDOW, smoothed
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.util.errors import InputError


def fit_vector_detector(
    relevances: Sequence[Relevance],
    labels: NDArray[np.bool_],
    *,
    groups: Sequence[str] | None = None,
    token_flags: Sequence[NDArray[np.bool_]] | None = None,
    features: Features | None = None,
    classifier: str = "svm",
    threshold: float = 0.5,
) -> VectorModel:
    """Fit on all rows; `labels` are True for hallucinated responses. `train` adds cross-validated metrics.

    Calibration never splits a group (default: each row is one). `token_flags` (t booleans a row, True for
    hallucinated tokens) set the threshold below which tokens are suspect; without them none is.
    """
    features = features or Features()
    first = one_origin(relevances)
    rows = np.array(groups if groups is not None else [str(k) for k in range(len(relevances))])
    best, model = fit_best(candidates_on(classifier, features(relevances)), labels, rows)
    suspect = None if token_flags is None else token_threshold(relevances, token_flags)
    card = Card(
        format=FORMAT,
        classifier=classifier,
        settings=best.settings,
        reader=first.reader,
        composite=first.composite,
        target=first.target,
        input=VectorInput(
            vector=features.vector, length=features.length, mode=features.mode, token_threshold=suspect
        ),
        feature_version=FEATURE_VERSION,
        threshold=threshold,
        rows=len(relevances),
        hallucinated=int(labels.sum()),
        versions=package_versions(),
    )
    return VectorModel(card, arrays_of(classifier, model))


def one_origin(relevances: Sequence[Relevance]) -> Relevance:
    """Return the first; raises `InputError` unless all have one reader, composite and target."""
    for relevance in relevances:
        require_embeddings(relevance)
    origin = {(row.reader["digest"], row.composite, row.target) for row in relevances}
    if len(origin) != 1:
        raise InputError("training needs relevance of one reader, composite and target")
    return relevances[0]


def token_threshold(
    relevances: Sequence[Relevance], flags: Sequence[NDArray[np.bool_]], window: int = TOKEN_WINDOW
) -> float:
    """Find the smoothed relevance below which calling a token hallucinated maximises F1 over all tokens."""
    scores = np.concatenate([smoothed(row.total, window) for row in relevances])
    highest = -best_threshold(-scores, np.concatenate(flags))
    # "Below" is strict, so the threshold is the next score up.
    return float(scores.min(initial=scores.max(), where=scores > highest))
