"""The fixtures of the command line's tests."""

from tests.cli.conftest import detector, labelled_file, run, store  # noqa: F401
