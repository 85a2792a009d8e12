"""Fixtures that several modules of these tests share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lrp4rag.classifiers import Features
from lrp4rag.classifiers.model import Model
from lrp4rag.training import token_folds
from lrp4rag.training import train as training
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.train import VectorRecipe, train
from tests.training.labelled import examples, extraction
from tests.training.quick import two_candidates


@pytest.fixture(scope="session")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Trained on 40 examples."""
    made = extraction(examples(), tmp_path_factory.mktemp("store") / "s")
    reads = VectorRecipe(Features(length=20))
    with two_candidates():
        return train(Corpus.of(examples()), made, reads, command="lrp4rag train x", resamples=50)


@pytest.fixture
def few_networks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three folds in place of five, of two inner ones, each of which fits a network; and few candidates."""
    monkeypatch.setattr(training, "ONCE", replace(training.ONCE, folds=3))
    monkeypatch.setattr(token_folds, "FOLDS", 2)
    with two_candidates():
        yield
