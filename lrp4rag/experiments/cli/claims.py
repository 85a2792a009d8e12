"""`lrp4rag experiments claims`: LRP4RAG's claims beside what was measured."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import shown_command
from lrp4rag.files import check_folder
from lrp4rag.terminal import say

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@command(short_help="The paper's claims beside what was measured, from results.")
@click.option("--paper", required=True, type=_FOLDER, help="Results of reproduce (docs/results/paper).")
@click.option("--matrix", required=True, type=_FOLDER, help="Those of a store with R* (docs/results/matrix).")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the page.")
def claims(paper: Path, matrix: Path, out: Path) -> None:
    """Set LRP4RAG's four claims beside the tables that reproduce wrote, with a verdict on each part."""
    import pandas as pd

    from lrp4rag.experiments.paper.claims import Tables, lines, write

    check_folder(out)
    files = write(lines(Tables.read(paper), pd.read_csv(matrix / "findings.csv")), out, shown_command())
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
