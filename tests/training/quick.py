"""Training in few steps, for tests of its path and not of what is learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
import sklearn.ensemble
from sklearn.base import clone

from lrp4rag.classifiers import calibration, ensemble, trees
from lrp4rag.classifiers.registry import CLASSIFIERS, candidates_of
from lrp4rag.training import alarms, token_folds
from lrp4rag.training import train as training


@contextmanager
def few_steps() -> Iterator[None]:
    """Two folds in place of five, outside and inside, two epochs of few batches, few trees, and of each
    classifier one small candidate."""
    with light_folds(), pytest.MonkeyPatch.context() as patch:
        for name in CLASSIFIERS:
            first = clone(next(iter(candidates_of(name).values())))
            patch.setitem(CLASSIFIERS, name, {"quick": first})
        CLASSIFIERS["lstm"]["quick"].set_params(hidden_size=8, max_epochs=2)
        for name in ("HONEST", "ONCE"):
            patch.setattr(training, name, replace(getattr(training, name), folds=2))
        patch.setattr(calibration, "CALIBRATION_FOLDS", 2)
        patch.setattr(alarms, "FOLDS", 2)
        patch.setattr(ensemble, "EPOCHS", 2)
        patch.setattr(ensemble, "BATCHES", 4)
        patch.setattr(trees, "COUNT", 5)
        yield


@contextmanager
def two_candidates() -> Iterator[None]:
    """Of the SVM's candidates, the first two: there still is a choice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CLASSIFIERS, "svm", dict(list(candidates_of("svm").items())[:2]))
        yield


@contextmanager
def light_folds() -> Iterator[None]:
    """Two inner folds in place of five, and few trees of few bins: of a few hundred rows, binning takes most
    of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_folds, "FOLDS", 2)
        patch.setattr(trees, "COUNT", 20)
        few = partial(sklearn.ensemble.HistGradientBoostingClassifier, max_bins=16)
        patch.setattr(sklearn.ensemble, "HistGradientBoostingClassifier", few)
        yield
