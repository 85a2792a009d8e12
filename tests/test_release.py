"""What a release says of itself: its version, and the licences of what comes with it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import lrp4rag

ROOT = Path(__file__).parent.parent
LICENCES = (ROOT / "docs/licences.md").read_text()


def test_every_place_tells_the_same_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == lrp4rag.__version__
    newest = re.search(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == lrp4rag.__version__


def test_what_is_bundled_has_its_licence() -> None:
    package = ROOT / "lrp4rag"
    bundled = [*(package / "classifiers/bundled").iterdir(), *(package / "training/sets").glob("*.jsonl")]
    assert len(bundled) >= 2
    assert "`lrp4rag/guard/redteam/cases`" in LICENCES
    assert [path for path in bundled if f"`{path.stem}`" not in LICENCES] == []


def test_weights_that_are_fetched_have_theirs() -> None:
    weights = re.search(r"^WEIGHTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert weights is not None
    for package in weights[1].split():
        name, _, version = package.partition("==")
        assert f"`{name}` {version}" in LICENCES
