"""How pages in Markdown are made of templates."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lrp4rag.report.markdown import Markdown, code, code_line, emphasised, strong, text


def markdown_templates(folder: Path) -> Environment:
    """The templates of a folder. Every value is escaped but `Markdown`; a name that is not given is an error.

    Text that a template joins is escaped as a whole, what a macro gives too: `safe` marks that as meant.
    In code, filters are `code` (a span), `code(cell=True)` (in a table) and `code_line` (in a block).
    """
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
