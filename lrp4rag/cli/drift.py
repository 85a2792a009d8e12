"""`lrp4rag drift`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from lrp4rag.cli.audit import DATABASE, JSON
from lrp4rag.cli.command import Renamed, command
from lrp4rag.cli.options import Number, check_written, file_option, shown_command
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say, say_json

DRIFT = 3
BASELINE_LENGTHS = 4
SINCE = click.option(
    "--since",
    default="7d",
    metavar="WHEN",
    help="Where the window begins: 7d, 24h or 2w ago, an ISO date or time (UTC), or START..END.",
)


@command()
@DATABASE
@SINCE
@click.option(
    "--reference",
    "--baseline",
    "baseline",
    cls=Renamed,
    metavar="WHEN",
    help="Where the window before it begins; it ends where the other begins.  "
    f"[default: {BASELINE_LENGTHS} times as long before it]",
)
@click.option(
    "--alpha",
    default=0.05,
    type=Number(0, 0.5, min_open=True),
    help="The probability of a false alarm in all comparisons together.",
)
@file_option("--html", "html_path", help="Write a self-contained page with a figure.")
@JSON
@click.pass_context
def drift(
    ctx: click.Context,
    database: str,
    since: str,
    baseline: str | None,
    alpha: float,
    html_path: Path | None,
    as_json: bool,
) -> None:
    """Say whether the answers of a window are other than those of a baseline before it, and what to do.

    Compared are probabilities, faithfulness, fact scores, what was done and why, lengths, retrieval scores,
    and how many answers had no verdict; overall, and within the topics and generators that the server's
    settings name. docs/drift.md says by which tests.

    The exit code is 0 without drift, 3 with it, 2 where a window holds too few answers to tell.

    \b
    Examples:
      lrp4rag drift --audit lrp4rag-audit.db
      lrp4rag drift --since 24h --reference 14d --html drift.html
      lrp4rag drift --since 2026-11-01 --reference 2026-09-01..2026-10-01 --json
    """
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.monitoring.windows import period, preceding

    now = datetime.now(UTC)
    late = period(since, now, field="since")
    if baseline is None:
        early = preceding(late, BASELINE_LENGTHS)
    else:
        early = period(baseline, now, end=late.start, field="reference")
    with AuditLog.open(database, read_only=True) as log:
        if html_path is not None:
            check_written(html_path, log.files)
        from lrp4rag.guard.monitoring.drift import compare
        from lrp4rag.guard.monitoring.windows import read_window

        result = compare(read_window(log, early), read_window(log, late), alpha=alpha)
    from lrp4rag.guard.monitoring.report import record, render

    if as_json:
        say_json(record(result))
    else:
        open_console().print(render(result))
    if html_path is not None:
        from lrp4rag.guard.monitoring.report import drift_page

        write_atomically(html_path, drift_page(result, shown_command()))
        say(f"wrote {html_path}", err=True)
    ctx.exit(DRIFT if result.drifted else 0)
