"""Draw names of users in figures as they are, and only our own mathematics as such."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lrp4rag.util.text import one_line, visible

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SYMBOLS = {
    "prompt": r"$R_{prompt}$",
    "response": r"$R_{response}$",
    "total": r"$n\,R_{response}$",
    "length": r"$L_{new}$",
}
"""The mathematics in our figures, all of it."""
LONGEST, LINES = 160, 4
"""Characters of a line, and lines, that a text may have: no name makes a figure of a mile."""
NAME, LONG_NAME = 40, 60
"""Characters of a name: of a generator, and of a line that has the figure's width."""

# matplotlib writes powers of ten in "\mathdefault".
_OURS = re.compile("|".join([*map(re.escape, SYMBOLS.values()), r"\$\\mathdefault\{[-\d.^{}]*\}\$"]))
# Which no XML may hold, not even escaped.
_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")


def label(name: str, limit: int = NAME) -> str:
    """Shorten a user's name for a title, a tick or a legend, where matplotlib hides what begins with "_"."""
    line = one_line(name, limit)
    return f" {line}" if line.startswith("_") else line


@contextmanager
def drawing(*, mathematics: bool = False) -> Iterator[None]:
    """Draw a figure in this context: new text is plain, also where seaborn lays it out before
    `plain_text`."""
    import matplotlib as mpl

    with warnings.catch_warnings(), mpl.rc_context({"text.parse_math": mathematics}):
        # No font has every script; a box in its place will do, as will a panel that a name leaves no room.
        warnings.filterwarnings("ignore", message=r".*Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r".*layout not applied")
        # seaborn 0.13 calls it of matplotlib 3.11.
        warnings.filterwarnings("ignore", message=r"The set_bad function will be deprecated")
        yield


def plain_text(drawn: Figure) -> None:
    """Make all text of a finished figure fit to be saved: of reasonable length, without control characters,
    and with "$" and backslashes as they are, but in `SYMBOLS`."""
    from matplotlib.text import Text

    for text_object in drawn.findobj(Text):
        assert isinstance(text_object, Text)
        text_object.set_text(_shown(text_object.get_text()))
        text_object.set_parse_math(_is_ours(text_object.get_text()))
    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            _plain_ticks(axis)


def png_of(drawn: Figure, dpi: int) -> bytes:
    """Render a finished figure as PNG."""
    content = io.BytesIO()
    save_as(drawn, content, "png", dpi=dpi)
    return content.getvalue()


def save_as(drawn: Figure, to: Any, kind: str, **options: Any) -> None:
    """`savefig` of a finished figure, after `plain_text`."""
    plain_text(drawn)
    with drawing(mathematics=True):  # ticks that are made as late as this are matplotlib's own numbers
        drawn.savefig(to, format=kind, **options)


def _plain_ticks(axis: Axis) -> None:
    """Ticks get their text from a formatter, each time that they are drawn."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FixedFormatter | FuncFormatter | StrCategoryFormatter):
        return  # numbers
    places: Any = axis.get_majorticklocs()
    words = formatter.format_ticks(places)
    for tick, word in zip(axis.get_major_ticks(len(places)), words, strict=True):
        for tick_label in (tick.label1, tick.label2):
            tick_label.set_parse_math(_is_ours(word))
    axis.set_major_formatter(FuncFormatter(lambda value, place: _shown(str(formatter(value, place)))))


def _shown(text: str) -> str:
    lines = visible(text).translate(_NO_CHARACTERS).split("\n")[:LINES]
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)


def _is_ours(text: str) -> bool:
    """Say whether a text has no mathematics but ours. Text without any stays as it was: matplotlib may yet
    write numbers in it."""
    return "$" not in _OURS.sub("", text)
