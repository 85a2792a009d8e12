"""What Material's pages lack for people who cannot see them: a name of the search, no empty heads."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: object) -> str:
    """A table's corner is an empty cell, and heads nothing."""
    return html.replace("<th></th>", "<td></td>")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    return named(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    return named(output_content)


def named(html: str) -> str:
    """With a name for the search, which is a dialog where the window is narrow."""
    return html.replace('role="dialog"', 'role="dialog" aria-label="Search"')
