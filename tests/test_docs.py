"""The examples of the documentation pages run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "streaming.md").read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize("code", EXAMPLES, ids=["example", "stream", "recording"])
def test_examples_of_streaming_run(code: str) -> None:
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) > 6
