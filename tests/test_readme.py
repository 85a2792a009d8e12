"""The figures of the README are those of the files behind them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.folder import load_card
from lrp4rag.report.numbers import difference

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results"
README = (ROOT / "README.md").read_text()
GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat")


def read(path: Path):
    return json.loads(path.read_text())


def test_the_table_of_systems_is_that_of_the_card_and_the_comparison() -> None:
    (table,) = re.findall(r"\| \| llama-2-7b-chat .*?\n\n", README, re.DOTALL)
    ours, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:-1]
    )
    card, judging = load_card("default").evidence.generators, read(ROOT / "docs/results/judging.json")
    auroc = [f"{card[name].metrics['auroc'].value:.3f}" for name in GENERATORS]
    assert ours == ["**lrp4rag**", *auroc, f"{judging['verdict_over_forward']:.1f}"]
    assert f"ours: {judging['one_over_forward']:.1f} with" in README
    costs = read(RESULTS / "compare/costs.json")["systems"]
    with (RESULTS / "compare/metrics.csv").open() as file:
        rows = {
            (row["rows"], row["generator"], row["system"], row["metric"]): row for row in csv.DictReader(file)
        }
    ways = read(RESULTS / "detector/results.json")["ways"]["responses"]
    states = [f"{ways[name]['state alone']['auroc']['value']:.3f}" for name in GENERATORS]
    for line, system in zip(lines, ("lookback-lens-windows", None, "novel-words"), strict=True):
        if system is None:
            assert line[1:3] == states
        else:
            values = [float(rows["all", name, system, "auroc"]["value"]) for name in GENERATORS]
            assert line[1:] == [*(f"{value:.3f}" for value in values), f"{costs[system]['forwards']:.1f}"]


def test_the_cost_of_relevance_is_measured() -> None:
    passes = read(ROOT / "docs/results/speed/passes.json")
    assert f"takes {passes['push_over_forward']:.1f} plain forward" in README


def test_what_relevance_adds_is_measured() -> None:
    for line in read(RESULTS / "worth/results.json")["lines"]:
        key = line["added"], line["generator"], line["level"]
        if key == ("relevance", "all", "tokens") and line["base"] in ("hidden state", "all of these"):
            assert difference(Interval(**line["gain"])) in " ".join(README.split())
