"""`python -m experiments claims`: LRP4RAG's claims beside what was measured."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import PATH, shown_command
from lrp4rag.util.files import check_folder
from lrp4rag.util.terminal import say

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@command()
@click.option(
    "--paper", required=True, type=_FOLDER, help="Results of reproduce (experiments/results/paper)."
)
@click.option(
    "--matrix", required=True, type=_FOLDER, help="Those of a store with R* (experiments/results/matrix)."
)
@click.option(
    "--baselines",
    multiple=True,
    type=_FOLDER,
    help="Those with baselines that were run (experiments/results/prompt); repeatable.",
)
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
def claims(paper: Path, matrix: Path, baselines: tuple[Path, ...], out: Path) -> None:
    """Set LRP4RAG's four claims beside the tables that reproduce wrote, with a verdict on each part."""
    from experiments.paper.claims import lines, write_page

    check_folder(out)
    files = write_page(lines(paper, matrix, baselines), out, shown_command())
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
