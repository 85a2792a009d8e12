"""Audit logs in a file of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lrp4rag.guard.audit import AuditLog

TEXTS = {"question": "Who was it?", "response": "\u00c9lodie \0 \U0001f600 \u2028 \u202e"}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "audit.key"


@pytest.fixture
def log(tmp_path: Path, key: Path) -> Iterator[AuditLog]:
    with AuditLog.open(f"sqlite:///{tmp_path}/audit.db", key=key, texts=True) as opened:
        yield opened


def decision(number: int) -> dict[str, object]:
    return {"id": f"d{number}", "kind": "decision", "decision": "pass", "score": number / 7, "rank": None}
