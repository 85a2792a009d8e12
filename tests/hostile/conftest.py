"""The command line in this process, with a tiny reader, as the tests of the command line have it."""

from __future__ import annotations

from tests.cli.conftest import example_file, labelled_file, run, store

__all__ = ["example_file", "labelled_file", "run", "store"]
