"""The page of the sets: Markdown and figures, with no number typed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment
from matplotlib.figure import Figure

from benchmarks.elsewhere.judging import CONTROLS, LENGTH, NOVEL, OURS
from benchmarks.elsewhere.measures import (
    ALL,
    NOVEL_WORD,
    PREVALENCE,
    WITH_VERDICT,
    HaluEval,
    Pairs,
    Wice,
)
from benchmarks.elsewhere.sets import FREE, HALUEVAL, NEAR, PAIRS, SETS, WICE
from experiments.claim import PAGE, claim
from experiments.figures.results import bounds
from experiments.figures.style import CONTROL, DETECTOR, WIDTH, blank, legend_below, save, themed
from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.report.figure_text import label
from lrp4rag.report.numbers import difference, percent_interval, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.training.records import rounded, to_json
from lrp4rag.util.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
KIND, RESULTS = "python -m benchmarks.elsewhere", "results.json"
AUROCS, RANKED = "auroc", "kinds"

WORDS = {
    "number": "number",
    "entity": "name",
    "negation": "negation",
    "date_unit": "date or unit",
    "condition": "condition",
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

Ways = Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured, None for a set that is not in the data; `about` says of what, and how."""

    about: dict[str, Any]
    pairs: Pairs | None
    halueval: HaluEval | None
    wice: Wice | None


def claim_page(out: Path) -> None:
    """Make the folder of a page; raises `InputError` where it has one that this benchmark did not write."""
    claim(out, KIND, RESULTS)


def write_page(found: Found, out: Path) -> dict[str, Any]:
    """README.md, its figures and results.json, whose content is returned."""
    claim_page(out)
    sets = {PAIRS: found.pairs, HALUEVAL: found.halueval, WICE: found.wice}
    # First, since it says who wrote what is here.
    record: dict[str, Any] = rounded(
        to_json({"kind": KIND, **found.about, "versions": package_versions(), "sets": sets})
    )
    write_atomically(out / RESULTS, json.dumps(record, indent=1, allow_nan=False) + "\n")
    aurocs = _aurocs(found)
    if aurocs:
        save(draw_ways(aurocs, "AUROC"), out / AUROCS)
    if found.pairs is not None and found.pairs.faults:
        near = {f"{_words(one.kind)} ({one.pairs})": one.near for one in found.pairs.faults}
        save(
            draw_ways(near, "part of faulty answers that score higher than their faithful one"), out / RANKED
        )
    page = (
        _environment()
        .get_template("page.md.j2")
        .render(
            **found.about,
            pairs=found.pairs,
            halueval=found.halueval,
            wice=found.wice,
            missing=[name for name in SETS if sets[name] is None],
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
    )
    write_atomically(out / PAGE, page)
    return record


def draw_ways(found: Mapping[str, Ways], xlabel: str) -> Figure:
    """A line a name, with a dot and its interval for each way, ours on top; 0.5 is chance."""
    with themed():
        drawn = blank((0.8 * WIDTH, 0.42 * len(found) + 1.1))
        ax = drawn.subplots()
        ax.axvline(0.5, color="0.4", ls=":", lw=1)
        for k, (way, (marker, colour)) in enumerate(MARKERS.items()):
            known = {
                place: ways[way]
                for place, ways in enumerate(found.values())
                if way in ways and ways[way].value is not None
            }
            if not known:
                continue
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


def _aurocs(found: Found) -> dict[str, Ways]:
    """By what is ranked, in words."""
    named = {}
    if found.pairs is not None:
        named["minimal pairs, responses"] = found.pairs.lines
    if found.halueval is not None:
        for name, part in found.halueval.parts.items():
            named[f"HaluEval, answers: {name}"] = part.lines
    if found.wice is not None:
        named |= {"WiCE, words": found.wice.words, "WiCE, claims": found.wice.lines}
    shown = {
        name: {way: line.metrics["auroc"] for way, line in lines.items() if way in MARKERS}
        for name, lines in named.items()
    }
    return {name: ways for name, ways in shown.items() if any(one.value is not None for one in ways.values())}


def _words(kind: str) -> str:
    return "all" if kind == ALL else WORDS.get(kind, kind)


def _environment() -> Environment:
    environment = markdown_templates(TEMPLATES)
    environment.filters |= {"interval": with_interval, "share": percent_interval, "signed": difference}
    return environment
