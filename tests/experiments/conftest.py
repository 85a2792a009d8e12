"""The command line of the research in this process."""

import pytest

from experiments.cli import main
from tests.cli.conftest import Run, detector, labelled_file, runner, store  # noqa: F401


@pytest.fixture(scope="session")
def run() -> Run:
    return runner(main)
