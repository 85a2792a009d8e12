"""`lrp4rag calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, check_written, count, file_option, hidden
from lrp4rag.util.terminal import open_console, say

if TYPE_CHECKING:
    from rich.table import Table

    from lrp4rag.classifiers.card import Metrics


@command()
@click.argument("model", metavar="MODEL")
@file_option("--out", required=True, help="JSON file to write.")
@click.option(
    "--labels",
    metavar="NAMES",
    help="What the model's outputs mean, in their order: supported, unsupported, contradicted, not told.  "
    "[default: as its configuration names them]",
)
@count("--every", default=8, metavar="N", help="Read the answers to one in N of the everyday questions.")
@click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]")
@hidden(BOOTSTRAP)
def calibrate(
    model: str, out: Path, labels: str | None, every: int, device: str | None, resamples: int
) -> None:
    """Let a published model stand in for the comparer that comes with the package.

    MODEL is a hub id or a folder: a cross-encoder of entailment, a classifier that tells grounded claims from
    others, or a classifier of tokens, as safetensors and without code of its own. Sentences of the everyday
    set are read by it and by the comparer, and OUT maps the log odds of the one to those of the other, so
    that a detector that was trained with the comparer can take either: --comparer OUT.

    \b
    Examples:
      lrp4rag calibrate cross-encoder/nli-deberta-v3-base --out nli.json
      lrp4rag calibrate ./minicheck --labels "unsupported,supported" --out minicheck.json
      lrp4rag analyse answers.jsonl --comparer nli.json
    """
    check_written(out)
    from lrp4rag.report.cards import metrics_table
    from lrp4rag.training.calibrate import calibrate as run

    names = [] if labels is None else [name.strip() for name in labels.split(",")]
    calibration = run(model, names, every=every, device=device, resamples=resamples)
    calibration.write(out)
    figures, console = calibration.figures, open_console()
    title = f"{figures['sentences']} sentences of answers to {figures['sources']} questions"
    console.print(metrics_table(title, figures["metrics"]))
    console.print(_kinds_table(figures["kinds"]))
    say("95 % intervals over sources; each figure is of what its fold did not learn from", err=True)
    say(f"wrote {out}", err=True)


def _kinds_table(kinds: dict[str, Metrics]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from lrp4rag.report.numbers import with_interval

    table = Table(
        title="Flagged where 6 % of right sentences are", title_justify="left", title_style="bold", box=None
    )
    for name in ("", "model", "the comparer"):
        table.add_column(name, justify="right" if name else "left")
    for kind, row in kinds.items():
        table.add_row(Text(kind), with_interval(row["model"]), with_interval(row["the comparer"]))
    return table
