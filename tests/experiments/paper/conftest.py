"""A synthetic store, and classifiers that are small enough for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sklearn.base import clone

from experiments.cache import Cache
from experiments.paper import methods
from experiments.paper.context import Context
from experiments.paper.data import GRID, Settings
from lrp4rag.classifiers import calibration, registry
from tests.experiments.paper.stores import store


@pytest.fixture(scope="package")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two generators, every part."""
    return store(tmp_path_factory.mktemp("stores") / "full")


@pytest.fixture(scope="package")
def bare_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same responses with R_response only."""
    return store(tmp_path_factory.mktemp("stores") / "bare", parts=())


@pytest.fixture(scope="package")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by all tests: what one computed, others read."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="package", autouse=True)
def _light() -> Iterator[None]:
    """Few trees, epochs, units, candidates and inner folds."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (calibration, methods):
            patch.setattr(module, "CALIBRATION_FOLDS", 3)
        for name, light in (
            ("forest", {"randomforestclassifier__n_estimators": 5}),
            ("mlp", {"mlpclassifier__tol": 1e9}),
            ("lstm", {"hidden_size": 3, "layers": 1, "max_epochs": 1}),
        ):
            found = registry.CLASSIFIERS[name].items()
            lighter = {settings: clone(one).set_params(**light) for settings, one in found}
            patch.setitem(registry.CLASSIFIERS, name, lighter)
        patch.setitem(GRID, "svm", ((6, 12), ("C=1", "C=3")))
        patch.setitem(GRID, "mlp", ((6,), GRID["mlp"][1]))
        patch.setitem(GRID, "forest", ((6,), GRID["forest"][1]))
        yield


@pytest.fixture(scope="package")
def context(cache: Path) -> Callable[..., Context]:
    """Open a store with settings that are quick."""

    def make(folder: Path, cache: Path = cache, **changes) -> Context:
        options = {"variants": {}, "generators": (), "baselines": {}, "reader": "tiny"}
        options |= {name: changes.pop(name) for name in list(changes) if name in options}
        settings = Settings(**({"resamples": 20, "sweep": (5, 10, 20, 220)} | changes))
        return Context.open(folder, cache=Cache.open(cache), settings=settings, **options)

    return make
