"""`lrp4rag review`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from lrp4rag.cli.audit import DATABASE, JSON
from lrp4rag.cli.command import command
from lrp4rag.cli.drift import SINCE
from lrp4rag.cli.options import check_written, file_option, hidden
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say, say_json


@command()
@DATABASE
@SINCE
@hidden(click.option("--limit", default=50, type=click.IntRange(0), help="Most answers beside the sample."))
@click.option(
    "--sample", default=20, type=click.IntRange(0), metavar="N", help="Answers drawn from all others."
)
@file_option("--out", "out_path", help="Write the list here too as CSV, for people to fill in.")
@JSON
def review(
    database: str,
    since: str,
    limit: int,
    sample: int,
    out_path: Path | None,
    as_json: bool,
) -> None:
    """List answers to look at, each with the reason why it is on the list.

    First those that wait for a reviewer, that a user contradicted, that were withheld, and that were served
    with doubts, the likeliest hallucinations first; then a random sample of the answers that were served
    without doubt. Answers that a reviewer has spoken on are left out. Texts are shown where the log keeps
    them.

    \b
    Examples:
      lrp4rag review --audit lrp4rag-audit.db
      lrp4rag review --since 7d --sample 50 --out week-48.csv
      lrp4rag review --since 2026-11-01..2026-11-08 --json
    """
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.monitoring.windows import period

    when = period(since, datetime.now(UTC), field="since")
    with AuditLog.open(database, read_only=True) as log:
        if out_path is not None:
            check_written(out_path, log.files)
        from lrp4rag.guard.monitoring.review import record, render, review_list, table

        reviews = review_list(log, when, limit=limit, sample=sample)
    if as_json:
        say_json(record(reviews))
    else:
        open_console().print(render(reviews), soft_wrap=True)
    if out_path is not None:
        write_atomically(out_path, table(reviews))
        say(f"wrote {len(reviews.items)} answers to {out_path}", err=True)
