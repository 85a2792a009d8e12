"""The registry and its pages; and that a new system is what the documentation says."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import systems
from experiments.systems.registry import BASELINES, baseline_named, baselines_named, resolved
from experiments.systems.resources import Resources
from lrp4rag.util.errors import InputError
from tests.experiments.systems.stand_ins import extracted, judged
from tests.training.labelled import examples

DOCS = Path(__file__).parents[3] / "docs" / "baselines"
INDEX = (DOCS / "README.md").read_text()
PAGES = set(re.findall(r"\]\(([\w-]+\.md)\)", INDEX))
HEADINGS = ["Definition", "Range", "How it works", "Parameters", "Reference"]


def test_names_are_known():
    assert list(baselines_named(["all"])) == list(BASELINES)
    assert list(baselines_named(["prompt-judge", "length"])) == ["length", "prompt-judge"]
    with pytest.raises(InputError, match="unknown baseline 'nothing'; choose from length"):
        baseline_named("nothing")


def test_every_baseline_and_page_is_in_the_index():
    assert [name for name in BASELINES if f"`{name}`" not in INDEX] == []
    assert {path.name for path in DOCS.glob("*.md")} - {"README.md"} == PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_page_has_the_usual_headings(page):
    assert re.findall(r"^## (.*)$", (DOCS / page).read_text(), re.MULTILINE) == HEADINGS


def test_the_example_of_a_new_baseline_runs_as_it_stands(tmp_path, monkeypatch):
    code, line = re.findall(r"```python\n(.*?)```", INDEX, re.DOTALL)
    (tmp_path / "hedges.py").write_text(code)
    monkeypatch.setattr(systems, "__path__", [*systems.__path__, str(tmp_path)])
    ((name, place),) = ast.literal_eval(f"{{{line}}}").items()
    monkeypatch.delitem(sys.modules, "experiments.systems.hedges", raising=False)
    hedging = resolved(place)
    assert name == "hedges"
    assert sys.modules["experiments.systems.hedges"].share("It may rain, perhaps.") == 0.5
    # What is annotated hedges.
    labelled = [
        replace(one, response=f"{one.response} It may be so.") if one.hallucinated else one
        for one in examples(40)
    ]
    rows = extracted(labelled, tmp_path / "s")
    scorer = hedging.fit(rows.select(np.arange(30)), Resources())
    scores = judged(scorer, rows.select(np.arange(30, 40)), Resources())
    assert [one.flagged for one in scores] == rows.labels[30:].tolist()
