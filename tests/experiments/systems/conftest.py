"""Numbers do not depend on what the machine is fast in."""

from __future__ import annotations

import pytest

from lrp4rag.reader import reader


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "fastest_dtype", lambda device: "float32")
