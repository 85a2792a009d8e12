"""Our mathematics in the research's figures; all other text is drawn as it is."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from lrp4rag.report.figure_text import drawing, plain_text
from lrp4rag.util.text import one_line

NAME = 40
"""Characters of a name."""


def label(name: str, limit: int = NAME) -> str:
    """Shorten a user's name for a title, a tick or a legend, where matplotlib hides what begins with "_"."""
    line = one_line(name, limit)
    return f" {line}" if line.startswith("_") else line


SYMBOLS = {
    "prompt": r"$R_{prompt}$",
    "response": r"$R_{response}$",
    "total": r"$n\,R_{response}$",
    "length": r"$L_{new}$",
}
"""The mathematics in our figures, all of it."""
LONG_NAME = 60
"""Characters of a name of a line that has the figure's width."""

# matplotlib writes powers of ten in "\mathdefault".
_OURS = re.compile("|".join([*map(re.escape, SYMBOLS.values()), r"\$\\mathdefault\{[-\d.^{}]*\}\$"]))


def png_of(drawn: Figure, dpi: int) -> bytes:
    """Render a finished figure as PNG."""
    content = io.BytesIO()
    save_as(drawn, content, "png", dpi=dpi)
    return content.getvalue()


def save_as(drawn: Figure, to: Any, kind: str, **options: Any) -> None:
    """`savefig` of a finished figure, after `plain_text`."""
    plain_text(drawn, _is_ours)
    # Ticks that are made as late as this are matplotlib's own numbers.
    with drawing(), mpl.rc_context({"text.parse_math": True}):
        drawn.savefig(to, format=kind, **options)


def _is_ours(text: str) -> bool:
    """Say whether a text has no mathematics but ours. Text without any stays as it was: matplotlib may yet
    write numbers in it."""
    return "$" not in _OURS.sub("", text)
