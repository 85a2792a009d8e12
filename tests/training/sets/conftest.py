"""The set that comes with the package, read once: that takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.example import Example
from lrp4rag.training.sets import load_set


@pytest.fixture(scope="session")
def everyday() -> list[Example]:
    return load_set(Path("everyday"))
