"""`reproduce`: every section of the paper's evaluation, computed, drawn and written with a page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.experiments.claim import PAGE
from lrp4rag.experiments.figures.style import save, save_table
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.manifest import claim_results, manifest, write
from lrp4rag.experiments.paper.page import render
from lrp4rag.experiments.paper.sections import SECTIONS, Section
from lrp4rag.files import write_atomically
from lrp4rag.report.numbers import markdown
from lrp4rag.training.records import to_json


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The page, every file beside it, and the seconds of each section (when it was computed)."""

    page: Path
    files: tuple[Path, ...]
    seconds: dict[str, float]


def reproduce(context: Context, out: Path, sections: Sequence[Section], command: str) -> Reproduction:
    """Compute the sections and write them, with those that were computed before under the same settings.

    Kill it and run it again: what was computed is kept. Raises `InputError` where `out` has other
    results.
    """
    earlier = claim_results(out)
    results: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for section in SECTIONS.values():
        cell = section.cell(context)
        if section in sections:
            _measure(context, section)
        if (result := context.cache.read(cell)) is not None:
            results[section.name] = result
            seconds[section.name] = context.cache.seconds([cell])
    files: list[Path] = []
    shown: dict[str, str] = {}
    for name, result in results.items():
        exhibit = SECTIONS[name].show(result)
        files += _write(exhibit, out)
        shown |= {title: markdown(table) for title, table in exhibit.shown.items()}
    page = out / PAGE
    names = {path.name for path in files}
    write_atomically(page, render(context, results, shown, names, command))
    files.append(page)
    write(out, manifest(context, command, seconds, files, out), earlier)
    return Reproduction(page, tuple(files), seconds)


def _measure(context: Context, section: Section) -> None:
    """Compute a section here, where its cells go to the workers."""
    cell = section.cell(context)
    if not context.cache.holds(cell):
        started = time.perf_counter()
        value = to_json(section.measure(context))
        context.cache.write(cell, value, time.perf_counter() - started)


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
