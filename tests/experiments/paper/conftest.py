"""A synthetic store, and classifiers that are small enough for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.classifiers import forest, mlp, registry
from lrp4rag.classifiers.lstm import LSTMClassifier
from lrp4rag.experiments.paper import Context, Settings
from lrp4rag.experiments.paper.settings import GRID, Grid
from tests.experiments.paper.stores import store


@pytest.fixture(scope="session")
def full_store(tmp_path_factory) -> Path:
    """Two generators, every part."""
    return store(tmp_path_factory.mktemp("stores") / "full")


@pytest.fixture(scope="session")
def bare_store(tmp_path_factory) -> Path:
    """R_response only."""
    return store(tmp_path_factory.mktemp("stores") / "bare", parts=())


@pytest.fixture(scope="module")
def _light():
    """Few trees, epochs, units and contenders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "TREES", 5)
        patch.setattr(mlp, "TOLERANCE", 1e9)
        small = LSTMClassifier(hidden_size=3, layers=1, max_epochs=1)
        patch.setitem(registry.CLASSIFIERS, "lstm", lambda: {"2 x 256": small})
        patch.setitem(GRID, "svm", Grid((6, 12), ("C=1", "C=3")))
        patch.setitem(GRID, "mlp", Grid((6,), GRID["mlp"].settings))
        patch.setitem(GRID, "forest", Grid((6,), GRID["forest"].settings))
        yield


@pytest.fixture
def context(tmp_path):
    """Open a store with a cache of its own, and settings that are quick."""

    def make(folder: Path, cache: Path | None = None, **changes) -> Context:
        options = {"variants": {}, "generators": (), "jobs": 1}
        options |= {name: changes.pop(name) for name in list(changes) if name in options}
        settings = Settings(**({"resamples": 20, "sweep": (5, 10, 20, 220)} | changes))
        return Context.open(folder, cache=cache or tmp_path / "cache", settings=settings, **options)

    return make
