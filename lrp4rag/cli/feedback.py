"""`lrp4rag feedback export`."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.audit import DATABASE
from lrp4rag.cli.command import Command
from lrp4rag.cli.options import PATH, check_written
from lrp4rag.util.terminal import say


@click.group()
def feedback() -> None:
    """What reviewers and users said of answers, as labelled examples."""


@feedback.command(cls=Command)
@click.argument("file", type=PATH)
@DATABASE
def export(file: Path, database: str) -> None:
    """Write to FILE, as JSON Lines, the answers that were reviewed or corrected, with their labels.

    A reviewer's word goes before a user's. Answers whose texts were not kept (the server's setting
    keep_texts), or were erased, are left out. `lrp4rag train` and `lrp4rag evaluate` read the file.

    \b
    Example:
      lrp4rag feedback export labels.jsonl --database lrp4rag-audit.db
      lrp4rag evaluate labels.jsonl
    """
    from lrp4rag.data import json_line
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.service.reviews import labelled
    from lrp4rag.util.files import write_atomically

    with AuditLog.open(database, read_only=True) as log:
        path = check_written(file, log.files)
        lines = [json_line(one) for one in labelled(log)]
    write_atomically(path, "".join(f"{line}\n" for line in lines))
    say(f"wrote {len(lines)} labelled answers to {file}", err=True)
