"""docs/features.md has the tables of the registries, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.features.reference import tables_in_markdown

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


@pytest.mark.parametrize("heading", tables_in_markdown())
def test_the_page_has_the_table(heading: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    assert tables_in_markdown()[heading] in section
