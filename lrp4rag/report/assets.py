"""The page's own files, one source for the server's page and for that of one analysis: styles and scripts."""

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
    """The text of one of the files."""
    return (FOLDER / name).read_text(encoding="utf-8")


def joined(names: tuple[str, ...]) -> str:
    """Several of the files as one."""
    return "\n".join(map(asset, names))


def content_policy(script: str, style: str, *others: str) -> str:
    """A content-security policy under which nothing runs and nothing loads but these sources, and no script
    makes markup of text."""
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
    """What allows an inline script or style of this content, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
