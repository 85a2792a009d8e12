"""The benchmark runs and says what it promises; what it measures is not judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "push.py"
KEYS = {"push_over_forward", "backwards_over_push", "pull_row_over_forward", "peak_memory_over_forward"}


@pytest.mark.usefixtures("default_reader")
def test_the_keys_of_its_json():
    command = [sys.executable, SCRIPT, "--prompt", "12", "--response", "9", "--rounds", "1", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert result.returncode == 0, result.stderr
    row = json.loads(result.stdout)
    assert set(row) >= KEYS
    assert all(row[key] > 0 for key in KEYS)
    assert (row["prompt"], row["response"]) == (12, 9)
