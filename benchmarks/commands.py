"""How long the commands of pages of results took, as their records say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS, OutputFile, as_json, exit_codes, table
from experiments.paper.manifest import MANIFEST
from experiments.results_page import RESULTS
from lrp4rag.report.markdown import code
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.strict_json import read_record


def time_of(folder: Path) -> dict[str, Any]:
    """Of one page: its command, seconds (None where its record is older than their being kept), and how many
    sources it is of (None where the record does not say).

    Raises `InputError` for a folder without a record, and for a record that is none of a command's.
    """
    manifest = folder / MANIFEST  # of `reproduce`, which times each section
    path = manifest if manifest.exists() else folder / RESULTS
    record = read_record(path, "the record of a page of results")
    if not isinstance(record.get("command"), str):
        raise InputError("no command wrote this record", path=path, field="command")
    timed = record.get("seconds" if path == manifest else "took", {"seconds": None})
    if path != manifest and isinstance(timed, dict):
        timed = {"seconds": timed.get("seconds")}
    seconds = list(timed.values()) if isinstance(timed, dict) else None
    if not isinstance(seconds, list) or not all(
        one is None or isinstance(one, int | float) for one in seconds
    ):
        raise InputError("not a number of seconds", path=path, field="seconds")
    sources = record.get("sources")
    return {
        "command": record["command"],
        "seconds": None if None in seconds else round(sum(seconds), 1),
        "sources": sources if isinstance(sources, int) else None,
    }


def minutes(seconds: float | None) -> str:
    if seconds is None:
        return "not timed"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


@click.command(context_settings=SETTINGS)
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--out", type=OutputFile(), help="Also write JSON here.")
@as_json
def main(folders: Sequence[Path], out: Path | None, as_json: bool) -> None:
    """How long did the commands that wrote these FOLDERS of results take, with what they had cached?

    \b
    Example:
      python -m benchmarks.commands experiments/results/{breakdown,claims} --out out/commands.json
    """
    with exit_codes():
        found = {folder.name: time_of(folder) for folder in folders}
    content = json.dumps(found, indent=2)
    if out is not None:
        write_atomically(out, content + "\n")
    rows = [
        (name, code(one["command"]), str(one["sources"] or ""), minutes(one["seconds"]))
        for name, one in found.items()
    ]
    click.echo(content if as_json else "\n".join(table(("page", "command", "sources", "time"), rows)))


if __name__ == "__main__":
    main()
