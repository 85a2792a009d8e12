"""A page that would load something from another server ends the build."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page


class _Loaded(HTMLParser):
    """What a page loads when it is opened; links are not loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.add(given.get("href") or "")
        elif tag != "a":
            self.found.add(given.get("src") or "")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Raises `PluginError` for a page that loads something from another server."""
    reader = _Loaded()
    reader.feed(output)
    elsewhere = sorted(one for one in reader.found if re.match(r"(\w+:)?//", one))
    if elsewhere:
        raise PluginError(f"{page.file.src_uri} loads {', '.join(elsewhere)}")
    return output
