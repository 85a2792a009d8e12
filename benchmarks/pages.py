"""Write pages of results: a Markdown template beside its benchmark, filled with what a file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import table
from lrp4rag.report.templates import Markdown, markdown_templates
from lrp4rag.util.files import write_atomically


def write_page(path: Path, template: Path, filters: Mapping[str, Any] | None = None, **values: Any) -> None:
    """Every value is escaped but `Markdown`; a name that the template asks for and nobody gives is an
    error."""
    environment = markdown_templates(template.parent)
    environment.filters |= dict(filters or {})
    write_atomically(path, environment.get_template(template.name).render(**values))


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markdown:
    """A table of cells that are Markdown already."""
    return Markdown("\n".join(table(head, rows)))
