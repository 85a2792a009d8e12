"""The fixtures of the command line's tests."""

from tests.cli.conftest import _cache, detector, labelled_file, run, store  # noqa: F401
