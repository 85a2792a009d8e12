"""The README's library example runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.usefixtures("default_reader")
def test_the_library_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    check = "\nassert 0 < verdict.probability < 1 and matrix.shape[0] == len(relevance.response)\n"
    result = subprocess.run(
        [sys.executable, "-c", code + check],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ,
    )
    assert result.returncode == 0, result.stderr


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
