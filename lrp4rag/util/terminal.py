"""Print to the terminal: text of users is shown and never obeyed. Nothing else in the package prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from lrp4rag.util.errors import LONGEST
from lrp4rag.util.strict_json import finite_or_none
from lrp4rag.util.text import clipped, visible

NARROWEST = 40
"""Columns: what is written for a narrower terminal is wrapped by it."""
LONGEST_FIGURE, LEAST_TEXT = 24, 16
"""Columns of a cell that is printed whole, and those that a longer one has at least."""

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group
    from rich.table import Table
    from rich.text import TextType


_OPTIONS = {
    "chat_template=False": "--no-chat-template",
    "chat_template=True": "--chat-template",
    "detector=None": "--detector none",
    "dtype='float32'": "--dtype float32",
    "raise max_memory": "raise --max-memory",
    "truncation='passages'": "--truncate passages",
}
"""Options of the command line by the arguments that messages of the library name."""


def say(text: str, *, err: bool = False, end: bool = True) -> None:
    """Print text, its control characters made visible."""
    import click

    click.echo(visible(text), err=err, nl=end)


def tell(kind: Literal["Error", "Warning"], message: object) -> None:
    """Print a message on standard error, with options in place of the library's arguments. Its further lines
    are indented, so that none of them can pose as a message of its own."""
    text = str(message)
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    say(f"{kind}: {clipped(text, LONGEST)}".replace("\n", "\n  "), err=True)


def say_json(record: Any, *, indent: int | None = None) -> None:
    """Print a record as JSON in ASCII; a number that is not finite becomes null."""
    say(json.dumps(finite_or_none(record), indent=indent))


def open_console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console that reads no markup, shows control characters of what it is given to print, and cuts
    no figures: tables that are too wide wrap."""
    from rich.console import Console
    from rich.segment import Segment
    from rich.table import Table

    class Plain(Console):
        def render(self, renderable: Any, options: Any = None) -> Any:
            if isinstance(renderable, Table):
                renderable = _fitting(renderable, self, options or self.options)
            for segment in super().render(renderable, options):
                shown = visible(segment.text)
                if segment.control or shown == segment.text:
                    yield segment
                else:
                    yield Segment(shown, segment.style)

    console = Plain(stderr=stderr, markup=False, emoji=False, highlight=False, **options)
    console.width = max(console.width, NARROWEST)  # COLUMNS can be anything, and at 0 nothing is printed
    return console


def _fitting(table: Table, console: Console, options: ConsoleOptions) -> Table | Group:
    """Return a table that fits, or several below each other, each with the first column. Words wrap, figures
    do not; on a terminal, long texts are cut where their column says so."""
    from rich.console import Group
    from rich.measure import Measurement

    if all(column.width is not None for column in table.columns):
        return table  # as it comes from here
    wide = options.update(width=10_000)
    _, right, _, left = table.padding
    between, edges = right + left + bool(table.box), (1 if table.show_edge else -1) if table.box else 0
    room = options.max_width - edges + (0 if table.pad_edge else right + left)
    least, most, widths = [], [], []
    for k, column in enumerate(table.columns):
        heading = Measurement.get(console, wide, column.header)
        cells = [Measurement.get(console, wide, cell) for cell in column.cells]
        most.append(max([heading.minimum, *(cell.maximum for cell in cells)]))
        widths.append(max(most[-1], heading.maximum))
        word = max([heading.minimum, *(cell.minimum for cell in cells)])
        figures = k > 0 and any(map(str.isdigit, "".join(map(str, column.cells))))
        if not column.no_wrap and not figures and word <= LONGEST_FIGURE:
            least.append(word)
        else:
            least.append(most[-1] if most[-1] <= LONGEST_FIGURE else LEAST_TEXT)
    if sum(widths) + between * len(widths) <= room:
        return table
    groups = [[0]]
    for k in range(1, len(least)):
        if len(groups[-1]) > 1 and sum(least[j] + between for j in [*groups[-1], k]) > room:
            groups.append([0])
        groups[-1].append(k)

    def table_of(numbers: Sequence[int], title: TextType | None) -> Table:
        spare = room - sum(least[k] + between for k in numbers)
        narrow = sum(least[k] < most[k] for k in numbers)
        columns = []
        for index, k in enumerate(numbers):
            more = max(0, min(most[k] - least[k], spare // narrow)) if least[k] < most[k] else 0
            spare, narrow = spare - more, narrow - (least[k] < most[k])
            cut = console.is_terminal and table.columns[k].no_wrap and most[k] > LONGEST_FIGURE
            columns.append(
                replace(
                    table.columns[k],
                    width=max(least[k] + more, 1),
                    ratio=None,
                    no_wrap=cut,
                    overflow="ellipsis" if cut else "fold",
                    _index=index,
                )
            )
        fitted = copy(table)
        fitted.columns, fitted.title, fitted.expand = columns, title, False
        return fitted

    return Group(*(table_of(numbers, None if k else table.title) for k, numbers in enumerate(groups)))
