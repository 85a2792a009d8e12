"""What reaches the terminal, all of it: text of users is shown and never obeyed.

Nothing else in the package prints (a test looks). Rich and click are imported late.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from lrp4rag.errors import LONGEST
from lrp4rag.strict_json import finite_or_none
from lrp4rag.text import clipped, visible

NARROWEST = 40
"""Columns: what is written for a narrower terminal is wrapped by it."""

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str, *, err: bool = False, end: bool = True) -> None:
    """Print text, its control characters made visible."""
    import click

    click.echo(visible(text), err=err, nl=end)


def tell(kind: Literal["Error", "Warning"], message: object) -> None:
    """Print a message on standard error. Its further lines are indented, so that none of them can pose as a
    message of its own."""
    say(f"{kind}: {clipped(str(message), LONGEST)}".replace("\n", "\n  "), err=True)


def say_json(record: Any, *, indent: int | None = None) -> None:
    """Print a record as JSON in ASCII; a number that is not finite is null."""
    say(json.dumps(finite_or_none(record), indent=indent))


def open_console(*, stderr: bool = False, **options: Any) -> Console:
    """A console that reads no markup, and shows control characters of what it is given to print."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *args: Any, **kwargs: Any) -> Any:
            for segment in super().render(*args, **kwargs):
                shown = visible(segment.text)
                if segment.control or shown == segment.text:
                    yield segment
                else:
                    yield Segment(shown, segment.style)

    console = Plain(stderr=stderr, markup=False, emoji=False, highlight=False, **options)
    console.width = max(console.width, NARROWEST)  # COLUMNS can be anything, and at 0 nothing is printed
    return console
