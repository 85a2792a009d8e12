"""The command line of the research in this process, and folds that take seconds."""

from collections.abc import Iterator

import pytest
from sklearn import ensemble

from experiments.cli import main
from experiments.tokens import learners
from tests.cli.conftest import Run, detector, labelled_file, runner, store  # noqa: F401
from tests.training.quick import light_folds


@pytest.fixture(scope="session")
def run() -> Run:
    return runner(main)


@pytest.fixture(scope="package", autouse=True)
def _light_folds() -> Iterator[None]:
    with light_folds(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(learners, "TREE_COUNT", 30)
        patch.setattr(learners, "HistGradientBoostingClassifier", ensemble.HistGradientBoostingClassifier)
        yield
