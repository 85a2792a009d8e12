"""The README's library example runs as it stands, and its links and figures are those of the repository."""

from __future__ import annotations

import csv
import json
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


def test_systems_beside_ours_have_the_figures_of_their_page():
    with (ROOT / "docs/results/compare/metrics.csv").open() as file:
        found = {
            (row["rows"], row["generator"], row["system"], row["metric"]): row for row in csv.DictReader(file)
        }

    def shown(rows, generator, system, metric, style):
        value, low, high = (
            float(found[rows, generator, system, metric][key]) for key in ("value", "low", "high")
        )
        return f"{value:.3f}" if metric == "auroc" else f"{value:{style}} [{low:{style}}, {high:{style}}]"

    costs = json.loads((ROOT / "docs/results/compare/costs.json").read_text())["systems"]
    costs["lrp4rag, learned from the sample"] = costs["lrp4rag"]
    section = (ROOT / "README.md").read_text().split("## Beside other systems")[1].split("\n## ")[0]
    tables = [block for block in section.split("\n\n") if block.startswith("| ")]
    for rows, table in zip(("all", "sample"), tables, strict=True):
        for line in table.splitlines()[2:]:
            name, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            system = re.findall("`(.*?)`", name)[0]
            for k, generator in enumerate(("llama-2-7b-chat", "llama-2-13b-chat")):
                assert cells[2 * k] == shown(rows, generator, system, "auroc", ".3f"), line
                if system != "lrp4rag":
                    assert cells[2 * k + 1] == shown(rows, generator, system, "behind: auroc", "+.3f"), line
            assert cells[4] == (f"{costs[system]['forwards']:.1f}" if system in costs else ""), line
    chunks = shown("sample", "llama-2-13b-chat", "redeep-chunk", "behind, of the sample: auroc", "+.3f")
    assert f"({chunks})" in section
