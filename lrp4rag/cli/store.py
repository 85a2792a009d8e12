"""`lrp4rag store info|merge|export`."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.options import FOLDER_OR_URL, PATH, check_written
from lrp4rag.util.terminal import say
from lrp4rag.util.text import without_secrets


@click.group()
def store() -> None:
    """Inspect, merge and export stores of what was extracted."""


@store.command()
@click.argument("folder", type=FOLDER_OR_URL)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """Show how the store in FOLDER was made, and how many responses it holds.

    All files are read, and damaged ones are counted. Failures of the last run are listed with their
    reasons.
    """
    from lrp4rag.report.inventory import print_inventory
    from lrp4rag.training.inventory import inventory

    print_inventory(inventory(folder), as_json=as_json)


@store.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER_OR_URL)
@click.option("--out", required=True, type=FOLDER_OR_URL, help="Folder of the merged store.")
def merge(folders: tuple[Path, ...], out: Path) -> None:
    """Copy stores of one reader and composite into one, such as those of several machines.

    OUT may exist already; its files are kept, unless they are damaged. If a file is damaged in one store,
    an intact copy is taken from another; if there is none, the others are copied and the exit code is 1.
    Stores with different configurations are refused.
    """
    from lrp4rag.training.inventory import merge as run

    copied = run(folders, out)
    say(f"{copied} files copied to {without_secrets(out)}")


@store.command()
@click.argument("folder", type=PATH)
@click.option("--out", required=True, type=PATH, help="Parquet file to write.")
def export(folder: Path, out: Path) -> None:
    """Write the store as one Parquet table, a row for each response, for pandas, polars or duckdb.

    The columns are ids, source, generator, texts, labels, token flags, and per response token R_response,
    and log-probability, entropy and rank where readings are stored; R_prompt where it is stored. Needs
    pyarrow: pip install 'lrp4rag[parquet]'.
    """
    from lrp4rag.training.inventory import export as run
    from lrp4rag.training.store import EXAMPLES, MANIFEST

    check_written(out, (folder / MANIFEST, folder / EXAMPLES))
    written = run(folder, out)
    say(f"{written} rows written to {out}")
