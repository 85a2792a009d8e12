"""Load templates of pages in HTML and Markdown, which escape every value."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from lrp4rag.report.markdown import Markdown, code, code_line, emphasised, strong, text
from lrp4rag.util.text import visible

FOLDER = Path(__file__).parent


@cache
def html_template(name: str, folder: Path = FOLDER) -> Template:
    """Load a template of a folder, by default this one. Every value is escaped but `Markup`, and control
    characters and marks that reorder text are shown, as on a terminal; a name that is not given is an
    error."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def encodable(page: str) -> str:
    """Replace each lone surrogate (of a JSON escape, say), which has no encoding, by "?"."""
    return page.encode("utf-8", "replace").decode("utf-8")


def markdown_templates(folder: Path) -> Environment:
    """Load the templates of a folder. Every value is escaped but `Markdown`; a name that is not given is an
    error.

    Text that a template joins is escaped as a whole, what a macro gives too: `safe` marks that as meant. In
    code, filters are `code` (a span), `code(cell=True)` (in a table) and `code_line` (in a block)."""
    # Not autoescape, which escapes for HTML what is joined with something safe.
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        finalize=text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "safe": Markdown,
        "strong": strong,
        "emphasised": emphasised,
        "code": code,
        "code_line": code_line,
    }
    return environment


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
