"""Figures in which users' names are as they are: without mathematics, control characters or endless lines."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lrp4rag.util.text import visible

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

LONGEST, LINES = 160, 4
"""Characters of a line, and lines, that a text may have: no name makes a figure of a mile."""
# Which no XML may hold, not even escaped.
_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, without a window or global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def drawing() -> Iterator[None]:
    """Draw a figure in this context: new text is plain, also where seaborn lays it out before
    `plain_text`."""
    import matplotlib as mpl

    with warnings.catch_warnings(), mpl.rc_context({"text.parse_math": False}):
        # No font has every script; a box in its place will do, as will a panel that a name leaves no room.
        warnings.filterwarnings("ignore", message=r".*Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r".*layout not applied")
        # seaborn 0.13 calls it of matplotlib 3.11.
        warnings.filterwarnings("ignore", message=r"The set_bad function will be deprecated")
        yield


def plain_text(drawn: Figure, is_mathematics: Callable[[str], bool] = lambda _: False) -> None:
    """Make all text of a finished figure fit to be saved: of reasonable length, without control characters,
    and with "$" and backslashes as they are, but where it `is_mathematics`."""
    from matplotlib.text import Text

    for text_object in drawn.findobj(Text):
        assert isinstance(text_object, Text)
        text_object.set_text(_shown(text_object.get_text()))
        text_object.set_parse_math(is_mathematics(text_object.get_text()))
    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            _plain_ticks(axis, is_mathematics)


def png_of(drawn: Figure, dpi: int) -> bytes:
    """Render a finished figure as PNG."""
    content = io.BytesIO()
    plain_text(drawn)
    with drawing():
        drawn.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


def _plain_ticks(axis: Axis, is_mathematics: Callable[[str], bool]) -> None:
    """Make the text of ticks plain; they get it from a formatter, each time that they are drawn."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FixedFormatter | FuncFormatter | StrCategoryFormatter):
        return  # numbers
    locations: Any = axis.get_majorticklocs()
    words = formatter.format_ticks(locations)
    for tick, word in zip(axis.get_major_ticks(len(locations)), words, strict=True):
        for tick_label in (tick.label1, tick.label2):
            tick_label.set_parse_math(is_mathematics(word))
    axis.set_major_formatter(FuncFormatter(lambda value, index: _shown(str(formatter(value, index)))))


def _shown(text: str) -> str:
    lines = visible(text).translate(_NO_CHARACTERS).split("\n")[:LINES]
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)
