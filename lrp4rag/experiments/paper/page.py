"""The page of a reproduction: Markdown rendered from the results, with no number typed by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from lrp4rag.experiments.paper.ablations import setup
from lrp4rag.experiments.paper.context import Context
from lrp4rag.report import numbers as words
from lrp4rag.report.templates import markdown_templates

TEMPLATES = Path(__file__).parent / "templates"


def render(
    context: Context,
    results: Mapping[str, Any],
    shown: Mapping[str, str],
    files: Collection[str],
    command: str,
) -> str:
    """`results` by section, in reading order; `shown` has the tables in Markdown, `files` their names."""
    first = next(iter(context.parts.values()))
    page: str = (
        _environment()
        .get_template("page.md.j2")
        .render(
            results=results,
            shown=shown,
            files=files,
            command=command,
            parts=context.parts,
            sources={name: len(set(part.groups)) for name, part in context.parts.items()},
            settings=context.settings,
            setup=setup(first.rows.store.configuration),
            reader=Path(str(first.rows.store.configuration.reader.get("name", ""))).name,
            notes=_notes(results),
        )
    )
    return page


def _notes(results: Mapping[str, Any]) -> dict[str, str]:
    """What was left out anywhere, each once, and what would add it."""
    notes = [note for result in results.values() for note in getattr(result, "left_out", ())]
    return {note.what: note.remedy for note in notes}


@cache
def _environment() -> Environment:
    environment = markdown_templates(TEMPLATES)
    for filter in (words.number, words.percent, words.percent_interval, words.points, words.with_interval):
        environment.filters[filter.__name__] = filter
    environment.filters |= {"difference": words.difference, "slug": words.slug}
    return environment
