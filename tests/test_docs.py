"""The documentation pages: their examples run as they stand, and what they link to is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/baselines").glob("*.md")),
]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "streaming.md").read_text(), re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.slow
@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize("code", EXAMPLES, ids=["example", "stream", "recording"])
def test_examples_of_streaming_run(code: str) -> None:
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) > 6
