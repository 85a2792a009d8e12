"""`python -m experiments page`: pages of results, written again from their records."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.util.terminal import say


@command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="FOLDER...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def page(folders: tuple[Path, ...]) -> None:
    """Write a page of results again from its results.json, after its words or its figures' style changed.

    README.md, tables and figures of each FOLDER are written, and results.json is read: no store is needed
    and nothing is computed. The page is the one that the command named in the record writes (compare,
    study, breakdown, lettuce, ragulator, worth or claims).
    """
    from experiments.pages import render

    for folder in folders:
        files = render(folder)
        say(f"wrote {files[0]} and {len(files) - 2} files beside it")
