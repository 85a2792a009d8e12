"""The page of a study: Markdown and figures from its results, with no number typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.experiments.figures.cost import draw_cost, draw_curve
from lrp4rag.experiments.figures.results import draw_reliability
from lrp4rag.experiments.figures.style import save
from lrp4rag.experiments.results_page import write_markdown, write_record
from lrp4rag.experiments.study.plan import (
    BY_LEARNER,
    FAST,
    FULL,
    SEGMENTS,
    SIGNALS,
)
from lrp4rag.experiments.study.study import PROTOCOL, Study
from lrp4rag.report.numbers import METRICS, slug
from lrp4rag.training.localisation import ALL, RELEVANCE_VECTOR, Localisation
from lrp4rag.training.rows import Rows

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments study"
RESPONSES = {name: METRICS[name] for name in ("auroc", "accuracy", "f1", "ece")}
COSTS = {RELEVANCE_VECTOR: "R_response", FAST: "fast", SEGMENTS: "segments", SIGNALS: "full", FULL: "full"}
"""Which measured cost is whose: names of `benchmarks.verdict`. States come with provenance, at no cost."""
STATE = "state alone"
"""What one plain pass of the reader gives, so that is what it costs."""


def write_page(
    found: Study, rows: Rows, out: Path, command: str, *, resamples: int, costs: Mapping[str, float]
) -> list[Path]:
    """README.md, its figures and results.json; `costs` are plain forwards by a benchmark's names.

    Raises `InputError` where the folder has a page that this did not write.
    """
    record = write_record(
        out,
        KIND,
        found,
        command=command,
        protocol=PROTOCOL.words,
        resamples=resamples,
        rows=rows.digest,
        versions=package_versions(),
        forwards=costs,
    )
    files = [record]
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
    page = write_markdown(
        out,
        TEMPLATE,
        found=found,
        generators=[name for name in found.ways.lines if name != ALL],
        names=[*found.ways.lines],
        responses=RESPONSES,
        costs=forwards,
        rows=rows,
        resamples=resamples,
        protocol=PROTOCOL.words,
        command=command,
        full=FULL,
        learners=list(BY_LEARNER),
    )
    return [page, *files]


def _aurocs(ways: Localisation) -> dict[str, dict[str, Interval]]:
    return {
        name: {way: metrics["auroc"] for way, metrics in lines.items()}
        for name, lines in ways.responses.items()
        if name != ALL
    }
