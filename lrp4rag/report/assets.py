"""Styles and scripts of the server's page and of the page of one verdict."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "web"
VIEW_STYLES = ("base.css", "view.css")
VIEW_SCRIPTS = (
    "text.js",
    "words.js",
    "model.js",
    "why.js",
    "pieces.js",
    "joins.js",
    "view.js",
    "banner.js",
)
"""In their order: each uses those before it."""
STATIC_STYLES = (*VIEW_STYLES, "heatmap.css")
STATIC_SCRIPTS = (*VIEW_SCRIPTS, "static.js", "heatmap.js")
SERVER_STYLES = (*VIEW_STYLES, "server.css")
SERVER_SCRIPTS = (
    *VIEW_SCRIPTS,
    "client.js",
    "result.js",
    "ask.js",
    "review.js",
    "plot.js",
    "history.js",
    "server.js",
)


@cache
def asset(name: str) -> str:
    """Return the text of a file."""
    return (FOLDER / name).read_text(encoding="utf-8")


def joined(names: tuple[str, ...]) -> str:
    """Join files."""
    return "\n".join(map(asset, names))


def content_policy(script: str, style: str, *others: str) -> str:
    """Return a content-security policy under which only these sources run and load, and no script makes
    markup of text."""
    sources = (f"default-src 'none'; script-src {script}; style-src {style}", *others)
    return "; ".join(
        (
            *sources,
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types",
        )
    )


def hash_source(content: str) -> str:
    """Return the source that allows an inline script or style of this content, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
