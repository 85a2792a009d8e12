"""The command line in this process, with a tiny reader, as the tests of the command line have it."""

from __future__ import annotations

from hypothesis import settings

from tests.cli.conftest import example_file, labelled_file, run, store

__all__ = ["example_file", "labelled_file", "run", "store"]

# On a busy machine a case may take longer than any deadline; the same cases in every run.
settings.register_profile("hostile", deadline=None, derandomize=True)
settings.load_profile("hostile")
