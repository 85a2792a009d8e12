"""Load styles, scripts and templates of pages in HTML and Markdown; templates escape every value."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from lrp4rag.util.text import visible

WEB = Path(__file__).parent / "web"
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
"""Scripts in their order: each uses those before it."""
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
    """Return the text of a file of the pages."""
    return (WEB / name).read_text(encoding="utf-8")


def joined(names: tuple[str, ...]) -> str:
    """Join the texts of files of the pages."""
    return "\n".join(map(asset, names))


def content_policy(script: str, style: str, *directives: str) -> str:
    """Return a content-security policy with further directives, under which only these sources run and load,
    and no script makes markup of text."""
    sources = f"default-src 'none'; script-src {script}; style-src {style}"
    rules = "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types"
    return "; ".join((sources, *directives, rules))


def hash_source(content: str) -> str:
    """Return the source that allows an inline script or style of this content, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


class Markdown(str):
    """Text that is Markdown already: it is not escaped again.

    Whatever is made of it (joined, cut, formatted) is a plain string, which is escaped: names of generators,
    readers, stores and files stand in our pages. What could start a tag, a link, an image, a code span, a
    heading, a list, emphasis or a cell of a table is escaped, and nothing else: "log_prob" and "R* along the
    response" stay as they are, and so do intervals such as "[0.68, 0.75]".
    """

    __slots__ = ()


# "_" outside of words only, inside of which it is a letter; "*" but in our "R*".
_SPECIAL = re.compile(
    r"""
    (?P<interval> \[ [-+]?\d+(\.\d+)? ,[ ] [-+]?\d+(\.\d+)? \] (?![(\[]) )
    | [\\`|\[\]$>]
    | < (?![ \d=])
    | & (?=\#?\w+;)
    | (?<!\bR)[*] | [*](?=\w)
    | (?<![^\W_])_ | _(?![^\W_])
    | ~(?=~) | (?<=~)~
    | (?<=[A-Za-z]):(?=//) | (?<=www)\.        # GitHub makes links of these by itself
    """,
    re.VERBOSE,
)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
# Headings and what underlines them, lists and rules; and numbered lists.
_AT_START = re.compile(r"^(\d{1,9}(?=[.)](?: |$)))?([-+=#](?=[-=#]*(?: |$))|(?<=\d)[.)])")


def text(value: object) -> Markdown:
    """Escape a value and put it on one line; `Markdown` stays."""
    if isinstance(value, Markdown):
        return value
    line = _SPECIAL.sub(_escaped, _single_line(value).lstrip())
    return Markdown(_AT_START.sub(r"\1\\\2", line))


def code(value: object, *, cell: bool = False) -> Markdown:
    """Make a code span, whose fence is longer than any run of backticks in it: nothing is escaped there.

    In a `cell` of a table bars end it even there.
    """
    line = _single_line(value)
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    if cell:
        line = line.replace("|", r"\|")
    return Markdown(f"{fence}{pad}{line}{pad}{fence}")


def code_line(value: object) -> Markdown:
    """Make a line of an indented block, where everything but a line break is literal."""
    return Markdown(_single_line(value))


def strong(value: object) -> Markdown:
    """Make text bold."""
    return Markdown(f"**{text(value).strip()}**")


def emphasised(value: object) -> Markdown:
    """Make text italic."""
    return Markdown(f"*{text(value).strip()}*")


def _single_line(value: object) -> str:
    return re.sub("[ \n]+", " ", visible(str(value)))


def _escaped(match: re.Match[str]) -> str:
    if match["interval"]:  # at the start, with a colon after it, it would say what it stands for elsewhere
        defines = match.start() == 0 and match.string[match.end() :].startswith(":")
        return f"\\{match[0][:-1]}\\]" if defines else match[0]
    return _ENTITIES.get(match[0], f"\\{match[0]}")


FOLDER = Path(__file__).parent


@cache
def html_template(name: str, folder: Path = FOLDER) -> Template:
    """Load a template of a folder, by default this one. Every value is escaped but `Markup`, and control
    characters and marks that reorder text are shown, as on a terminal; a name that is not given is an
    error."""
    return _environment(folder, autoescape=True, finalize=_shown).get_template(name)


def markdown_templates(folder: Path) -> Environment:
    """Load the templates of a folder. Every value is escaped but `Markdown`; a name that is not given is an
    error.

    Text that a template joins is escaped as a whole, what a macro gives too: `safe` marks that as meant. In
    code, filters are `code` (a span), `code(cell=True)` (in a table) and `code_line` (in a block)."""
    # Not autoescape, which escapes for HTML what is joined with something safe.
    environment = _environment(folder, finalize=text, keep_trailing_newline=True)
    environment.filters |= {
        "safe": Markdown,
        "strong": strong,
        "emphasised": emphasised,
        "code": code,
        "code_line": code_line,
    }
    return environment


def _environment(folder: Path, **options: Any) -> Environment:
    loader = FileSystemLoader(folder)
    return Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options
    )


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
