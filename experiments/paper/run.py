"""`reproduce`: every section of the paper's evaluation, computed, drawn and written with a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.cache import Cell
from experiments.claim import PAGE
from experiments.figures.style import save, save_table
from experiments.paper import (
    ablations,
    baselines,
    distributions,
    findings,
    implicit,
    length,
    reliability,
    table2,
    thresholds,
    transfer,
)
from experiments.paper.context import Context, Exhibit
from experiments.paper.extraction import extractions
from experiments.paper.manifest import claim_results, link_to, manifest, write
from experiments.paper.page import render
from lrp4rag.report.numbers import markdown
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically


@dataclass(frozen=True, slots=True)
class Section:
    """`measure` computes a result of type `kind`, `show` makes figures and tables of it.

    `honest` sections have the honest protocol only. Where a result is `empty`, the page has what is `lacking`
    in its place. `more` is what a result depends on that others do not;
    `version` is raised whenever the same settings give another result.
    """

    name: str
    kind: Any
    measure: Callable[[Context], Any]
    show: Callable[[Any], Exhibit]
    honest: bool = True
    more: Callable[[Context], dict[str, Any]] = lambda _: {}
    version: int = 2
    empty: Callable[[Any], bool] = lambda _: False
    lacking: str = ""

    def cell(self, context: Context) -> Cell:
        """The whole result, under everything that it depends on."""
        key = {
            "what": "section",
            "name": self.name,
            "version": self.version,
            **context.key,
            **self.more(context),
        }
        return Cell(key, self.kind, lambda: partial(self.measure, context))


FEWEST_GENERATORS = 2
"""Between which there is transfer."""

SECTIONS = {
    section.name: section
    for section in (
        Section("table2", table2.Table2, table2.measure, table2.show, honest=False),
        Section(
            "baselines",
            baselines.Baselines,
            baselines.measure,
            baselines.show,
            honest=False,
            more=baselines.depends_on,
            version=3,
            empty=lambda found: not found.generators,
        ),
        Section("thresholds", thresholds.Thresholds, thresholds.measure, thresholds.show, honest=False),
        Section("length", length.Lengths, length.measure, length.show, honest=False),
        Section(
            "distributions",
            distributions.Distributions,
            distributions.measure,
            distributions.show,
            honest=False,
        ),
        Section(
            "ablations",
            ablations.Ablations,
            ablations.measure,
            ablations.show,
            empty=lambda found: not found.changes,
            lacking="One change at a time: this store admits none.",
        ),
        Section(
            "implicit",
            implicit.Implicit,
            implicit.measure,
            implicit.show,
            empty=lambda found: not any(one.changed for one in found.generators.values()),
            lacking="Spans that are true, though no passage says so: too few responses have such, or others.",
        ),
        Section("reliability", reliability.Diagrams, reliability.measure, reliability.show),
        Section(
            "transfer",
            transfer.Transfer,
            transfer.measure,
            transfer.show,
            empty=lambda found: len(found.tests) < FEWEST_GENERATORS,
            lacking="Transfer between generators: these are responses of one.",
        ),
        Section("findings", findings.Findings, findings.measure, findings.show, version=3),
    )
}
"""In reading order."""


def sections_named(names: tuple[str, ...], protocols: tuple[str, ...]) -> list[Section]:
    """Those named (default: all that the protocols allow), in reading order.

    Raises `InputError` for an unknown one, or one that has the honest protocol only without it.
    """
    for name in names:
        if name not in SECTIONS:
            raise InputError(f"unknown section '{name}'; choose from {', '.join(SECTIONS)}")
        if SECTIONS[name].honest and "honest" not in protocols:
            raise InputError(f"section '{name}' has the honest protocol only (--protocol honest or both)")
    allowed = [section for section in SECTIONS.values() if not section.honest or "honest" in protocols]
    return [section for section in allowed if not names or section.name in names]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The page, and every file beside it."""

    page: Path
    files: tuple[Path, ...]


def reproduce(
    context: Context, out: Path, sections: Sequence[Section], command: str, beside: Sequence[Path] = ()
) -> Reproduction:
    """Compute the sections and write them, with those that were computed before under the same settings.
    What is left out links to other results, `beside`.

    Safe to interrupt: running it again resumes after the last finished cell. Raises `InputError` where `out`
    has other results.
    """
    others = [link_to(folder, out) for folder in beside]
    earlier = claim_results(out)
    results: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for section in SECTIONS.values():
        cell = section.cell(context)
        if section in sections and not context.cache.holds(cell):
            context.cache.run(cell)  # in this process, from where its cells go to the workers
        if (result := context.cache.read(cell)) is not None:
            results[section.name] = result
            seconds[section.name] = context.cache.seconds([cell])
    files: list[Path] = []
    shown: dict[str, str] = {}
    empty = {name: SECTIONS[name].lacking for name, one in results.items() if SECTIONS[name].empty(one)}
    for name, result in results.items():
        if name in empty:
            continue
        exhibit = SECTIONS[name].show(result)
        files += _write(exhibit, out)
        shown |= {title: markdown(table) for title, table in exhibit.shown.items()}
    page = out / PAGE
    whole = len(results) == len(SECTIONS)
    write_atomically(
        page,
        render(
            context,
            results,
            shown,
            command,
            others,
            out=out,
            extractions=list(extractions(context)),
            empty=empty,
            whole=whole,
        ),
    )
    files.append(page)
    write(out, manifest(context, command, seconds, files, out), earlier)
    return Reproduction(page, tuple(files))


def _write(exhibit: Exhibit, folder: Path) -> list[Path]:
    written: list[Path] = []
    for name, drawn in exhibit.figures.items():
        written += save(drawn, folder / name)
    for name, table in exhibit.tables.items():
        written.append(save_table(table, folder / f"{name}.csv"))
    for name, words in exhibit.shown.items():
        path = folder / f"{name}.md"
        write_atomically(path, markdown(words))
        written.append(path)
    return written
