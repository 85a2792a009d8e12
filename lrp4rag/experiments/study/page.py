"""The page of a study: Markdown and figures from its results, with no number typed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment

from lrp4rag.classifiers.card import Interval, Metrics, package_versions
from lrp4rag.experiments.claim import PAGE, claim
from lrp4rag.experiments.figures.cost import draw_cost, draw_curve
from lrp4rag.experiments.figures.results import draw_reliability
from lrp4rag.experiments.figures.style import save
from lrp4rag.experiments.study.plan import (
    BASE,
    BY_LEARNER,
    FAST,
    FULL,
    SEGMENTS,
    SIGNALS,
    WHOLE_BASE,
    WHOLE_WITH_RELEVANCE,
    WITH_PROVENANCE,
    WITH_RELEVANCE,
)
from lrp4rag.experiments.study.study import PROTOCOL, Study
from lrp4rag.files import write_atomically
from lrp4rag.report.numbers import METRICS, difference, number, slug, verdict, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.training.localisation import ALL, RELEVANCE_VECTOR, Localisation
from lrp4rag.training.records import rounded, to_json
from lrp4rag.training.rows import Rows

TEMPLATES = Path(__file__).parent / "templates"
KIND, RESULTS = "lrp4rag experiments study", "results.json"
RESPONSES = {name: METRICS[name] for name in ("auroc", "accuracy", "f1", "ece")}
COSTS = {RELEVANCE_VECTOR: "R_response", FAST: "fast", SEGMENTS: "segments", SIGNALS: "full", FULL: "full"}
"""Which measured cost is whose: names of `benchmarks.verdict`. States come with provenance, at no cost."""
STATE = "state alone"
"""What one plain pass of the reader gives, so that is what it costs."""


def claim_page(out: Path) -> None:
    """Make the folder of a page; raises `InputError` where it has one that is not a study's."""
    claim(out, KIND, RESULTS)


def write_page(
    found: Study, rows: Rows, out: Path, command: str, *, resamples: int, costs: Mapping[str, float]
) -> list[Path]:
    """README.md, its figures and results.json; `costs` are plain forwards by a benchmark's names.

    Raises `InputError` where the folder has a page that this did not write.
    """
    claim_page(out)
    # First, since it says who wrote what is here.
    record = {
        "kind": KIND,
        "command": command,
        "protocol": PROTOCOL.words,
        "resamples": resamples,
        "rows": rows.digest,
        "versions": package_versions(),
        "forwards": dict(costs),
        **to_json(found),
    }
    write_atomically(out / RESULTS, json.dumps(rounded(record), separators=(",", ":")) + "\n")
    files: list[Path] = []
    for name, line in found.reliability.items():
        files += save(draw_reliability({FULL: line}, title=name), out / f"reliability-{slug(name)}")
    if found.curve:
        files += save(draw_curve(found.curve), out / "curve")
    judged = found.ways.responses[ALL]
    forwards = {way: costs[name] for way, name in COSTS.items() if name in costs and way in judged}
    if forwards and STATE in judged:
        forwards[STATE] = 1.0
    if forwards:
        files += save(draw_cost(_aurocs(found.ways), forwards), out / "cost")
    page = (
        _environment()
        .get_template("page.md.j2")
        .render(
            found=found,
            generators=[name for name in found.ways.lines if name != ALL],
            names=[*found.ways.lines],
            responses=RESPONSES,
            costs=forwards,
            rows=rows,
            resamples=resamples,
            protocol=PROTOCOL.words,
            command=command,
            base=BASE,
            gains=(WITH_RELEVANCE, WITH_PROVENANCE),
            full=FULL,
            whole=(WHOLE_WITH_RELEVANCE, WHOLE_BASE),
            learners=list(BY_LEARNER),
        )
    )
    write_atomically(out / PAGE, page)
    return [out / PAGE, out / RESULTS, *files]


def _aurocs(ways: Localisation) -> dict[str, dict[str, Interval]]:
    return {
        name: {way: metrics["auroc"] for way, metrics in lines.items()}
        for name, lines in ways.responses.items()
        if name != ALL
    }


@cache
def _environment() -> Environment:
    environment = markdown_templates(TEMPLATES)
    environment.filters |= {"interval": with_interval, "number": number, "held": _held, "signed": difference}
    environment.filters["slug"] = slug
    return environment


def _held(metrics: Metrics) -> str:
    """Whether the gain in AUROC is above zero by its interval."""
    return verdict(metrics["auroc"])
