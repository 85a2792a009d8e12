"""Escape text of users in Markdown, so that it makes no structure.

Names of generators, readers, stores and files stand in our pages. What could start a tag, a link, an image, a
code span, a heading, a list, emphasis or a cell of a table is escaped, and nothing else is: "log_prob" and
"R* along the response" stay as they are, and so do intervals such as "[0.68, 0.75]".
"""

from __future__ import annotations

import re

from lrp4rag.util.text import visible


class Markdown(str):
    """Markdown that is meant to be some: it is not escaped again.

    Whatever is made of it (joined, cut, formatted) is a plain string, which is escaped.
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
    line = _SPECIAL.sub(_escaped, _one_line(value).lstrip())
    return Markdown(_AT_START.sub(r"\1\\\2", line))


def code(value: object, *, cell: bool = False) -> Markdown:
    """Make a code span, whose fence is longer than any run of backticks in it: nothing is escaped there.

    In a `cell` of a table bars end it even there.
    """
    line = _one_line(value)
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    if cell:
        line = line.replace("|", r"\|")
    return Markdown(f"{fence}{pad}{line}{pad}{fence}")


def code_line(value: object) -> Markdown:
    """Make a line of an indented block, where everything but a line break is literal."""
    return Markdown(_one_line(value))


def strong(value: object) -> Markdown:
    """Make text bold."""
    return Markdown(f"**{text(value).strip()}**")


def emphasised(value: object) -> Markdown:
    """Make text italic."""
    return Markdown(f"*{text(value).strip()}*")


def _one_line(value: object) -> str:
    return re.sub("[ \n]+", " ", visible(str(value)))


def _escaped(match: re.Match[str]) -> str:
    if match["interval"]:  # at the start, with a colon after it, it would say what it stands for elsewhere
        defines = match.start() == 0 and match.string[match.end() :].startswith(":")
        return f"\\{match[0][:-1]}\\]" if defines else match[0]
    return _ENTITIES.get(match[0], f"\\{match[0]}")
