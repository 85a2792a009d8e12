"""What the benchmarks' tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.common import Example
from benchmarks.peers import run
from benchmarks.peers.client import Job


@pytest.fixture
def example(reader_folder: Path) -> Example:
    ids = run.example_ids(str(reader_folder), 18)
    return Example(tuple(ids[:11]), tuple(ids[11:]))


@pytest.fixture
def job(reader_folder: Path, example: Example, tmp_path: Path) -> Job:
    return Job(str(reader_folder), example.prompt_ids, example.response_ids, tmp_path / "none", 60.0)
