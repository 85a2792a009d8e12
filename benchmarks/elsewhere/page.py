"""The page of the sets: Markdown and figures, with no number typed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.elsewhere.judging import CONTROLS, LENGTH, NOVEL, OURS
from benchmarks.elsewhere.measures import NOVEL_WORD, PREVALENCE, WITH_VERDICT, Figures
from benchmarks.elsewhere.sets import BUMP, FREE, HALUEVAL, NEAR, PAIRS, SETS, SUMMEDITS, TASK, WICE
from benchmarks.pages import write_page
from experiments.figures.results import bounds
from experiments.figures.style import CONTROL, DETECTOR, WIDTH, blank, legend_below, save, themed
from experiments.figures.text import label
from experiments.numbers import percent_interval
from experiments.pages import PAGE
from experiments.records import rounded, to_json
from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.report.numbers import difference, percent, with_interval
from lrp4rag.util.files import write_atomically

KIND, RESULTS = "python -m benchmarks.elsewhere", "results.json"
AUROCS, RANKED = "auroc", "kinds"

WORDS = {
    "entity": "name",
    "date_unit": "date or unit",
    "misattributed": "wrong attribution",
    "baseless": "invention",
    "bad_refusal": "false refusal",
    "refusal": "right refusal",
    NEAR: "near the passages' words",
    FREE: "free paraphrase",
}
"""What the page calls the kinds of responses; others keep their names."""

MARKERS = {OURS: ("o", DETECTOR), LENGTH: ("s", CONTROL), NOVEL: ("^", CONTROL), NOVEL_WORD: ("^", CONTROL)}
"""The ways that figures show."""


def write(about: Figures, found: Mapping[str, Figures | None], out: Path) -> dict[str, Any]:
    """README.md, its figures and results.json, whose content is returned. A set that is not in the data is
    None."""
    record: dict[str, Any] = rounded(
        to_json({"kind": KIND, **about, "versions": package_versions(), "sets": found})
    )
    # First, since it says who wrote what is here.
    write_atomically(out / RESULTS, json.dumps(record, indent=1, allow_nan=False) + "\n")
    pairs = found[PAIRS]
    if aurocs := _aurocs(found):
        save(draw_ways(aurocs, "AUROC"), out / AUROCS)
    if pairs is not None and pairs["faults"]:
        near = {f"{_words(one['kind'])} ({one['pairs']})": one["near"] for one in pairs["faults"]}
        save(
            draw_ways(near, "part of faulty answers that score higher than their faithful one"), out / RANKED
        )
    write_page(
        out / PAGE,
        Path(__file__).with_name("page.md.j2"),
        {"interval": with_interval, "share": percent_interval, "percent": percent, "signed": difference},
        **about,
        pairs=pairs,
        halueval=found[HALUEVAL],
        wice=found[WICE],
        summaries={name: found[name] for name in (SUMMEDITS, BUMP) if found[name] is not None},
        summedits=SUMMEDITS,
        task=TASK,
        units={name: source.unit for name, source in SETS.items()},
        missing=[name for name in SETS if found[name] is None],
        aurocs=AUROCS if aurocs else None,
        ranked=RANKED,
        words=_words,
        ours=OURS,
        controls=CONTROLS,
        length=LENGTH,
        novel=NOVEL,
        novel_word=NOVEL_WORD,
        prevalence=PREVALENCE,
        with_verdict=WITH_VERDICT,
    )
    return record


def draw_ways(found: Mapping[str, Mapping[str, Interval]], xlabel: str, *, reference: float = 0.5) -> Figure:
    """A line a name, with a dot and its interval for each way, ours on top; dots stand at `reference` by
    chance."""
    with themed():
        drawn = blank((0.8 * WIDTH, 0.42 * len(found) + 1.1))
        ax = drawn.subplots()
        ax.axvline(reference, color="0.4", ls=":", lw=1)
        for k, (way, (marker, colour)) in enumerate(MARKERS.items()):
            known = {
                place: ways[way]
                for place, ways in enumerate(found.values())
                if way in ways and ways[way].value is not None
            }
            if known:
                value, low, high = bounds(list(known.values()))
                ax.errorbar(
                    value,
                    [place + (min(k, 2) - 1) * 0.22 for place in known],
                    xerr=np.maximum([value - low, high - value], 0),
                    fmt=marker,
                    color=colour,
                    mfc=colour if way == OURS else "white",
                    ms=5,
                    lw=1.4,
                    label=label(way),
                )
        ax.set_yticks(range(len(found)), [label(name, 60) for name in found])
        ax.set(xlabel=xlabel, xlim=(-0.02, 1.02), ylim=(len(found) - 0.4, -0.6))
        ax.grid(visible=False, axis="y")
        legend_below(drawn, [ax])
        return drawn


def _aurocs(found: Mapping[str, Figures | None]) -> dict[str, dict[str, Interval]]:
    """By what is ranked, in words."""
    pairs, halueval, wice = (found[name] for name in (PAIRS, HALUEVAL, WICE))
    named: Figures = {} if pairs is None else {"minimal pairs, responses": pairs["lines"]}
    for name, part in ({} if halueval is None else halueval["parts"]).items():
        named[f"HaluEval, answers: {name}"] = part["lines"]
    if wice is not None:
        named |= {"WiCE, words": wice["words"], "WiCE, claims": wice["lines"]}
    for name in (SUMMEDITS, BUMP):
        if (summaries := found[name]) is not None:
            named[f"{name}, summaries"] = summaries["lines"]
    shown = {
        name: {way: line["metrics"]["auroc"] for way, line in lines.items() if way in MARKERS}
        for name, lines in named.items()
    }
    return {name: ways for name, ways in shown.items() if any(one.value is not None for one in ways.values())}


def _words(kind: str) -> str:
    return WORDS.get(kind, kind)
