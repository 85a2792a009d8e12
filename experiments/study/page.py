"""The page of a study: Markdown and figures from its results, with no number typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.figures.cost import draw_cost, draw_curve
from experiments.figures.results import draw_reliability
from experiments.figures.style import save
from experiments.results_page import Results, write_record
from experiments.study.plan import (
    BY_LEARNER,
    FAST,
    FULL,
    SEGMENTS,
    SIGNALS,
    STATE,
)
from experiments.study.study import PROTOCOL, Study
from experiments.tokens.controls import RELEVANCE_VECTOR
from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.report.numbers import METRICS, slug
from lrp4rag.training.localisation import ALL, Localisation
from lrp4rag.training.rows import Rows

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments study"
RESPONSES = {name: METRICS[name] for name in ("auroc", "accuracy", "f1", "ece")}
COSTS = {
    RELEVANCE_VECTOR: "R_response",
    FAST: "fast",
    SEGMENTS: "segments",
    SIGNALS: "full",
    FULL: "full",
    STATE: "state",
}
"""Which measured cost is whose: names of `benchmarks.verdict`, and `state` of a plain pass that keeps hidden
states (`benchmarks.systems`). Beside provenance states come at no cost."""


def write_page(
    found: Study, rows: Rows, out: Path, command: str, *, resamples: int, costs: Mapping[str, float]
) -> list[Path]:
    """README.md, its figures and results.json; `costs` are plain forwards by the names in `COSTS`.

    Raises `InputError` where the folder has a page that this did not write.
    """
    write_record(
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
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md and the figures of the results.json that is there, which stands last.

    Raises `InputError` where that is not what a study writes.
    """
    results = Results.of(out)
    found, costs = results.found(Study), results.get("forwards", dict[str, float])
    files: list[Path] = []
    for name, line in found.reliability.items():
        files += save(draw_reliability({FULL: line}, title=name), out / f"reliability-{slug(name)}")
    if found.curve:
        files += save(draw_curve(found.curve), out / "curve")
    judged = found.ways.responses[ALL]
    forwards = {way: costs[name] for way, name in COSTS.items() if name in costs and way in judged}
    if forwards:
        files += save(draw_cost(_aurocs(found.ways), forwards), out / "cost")
    page = results.write_page(
        TEMPLATE,
        found=found,
        generators=[name for name in found.ways.lines if name != ALL],
        names=[*found.ways.lines],
        responses=RESPONSES,
        costs=forwards,
        rows=found.ways.rows[ALL],
        resamples=results.get("resamples", int),
        protocol=results.get("protocol", str),
        full=FULL,
        state=STATE,
        learners=list(BY_LEARNER),
    )
    return [page, *files, results.path]


def _aurocs(ways: Localisation) -> dict[str, dict[str, Interval]]:
    return {
        name: {way: metrics["auroc"] for way, metrics in lines.items()}
        for name, lines in ways.responses.items()
        if name != ALL
    }
