"""`lrp4rag calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, check_written, count, file_option, hidden
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say

if TYPE_CHECKING:
    from rich.table import Table

    from lrp4rag.classifiers.card import Metrics

SET = "everyday"


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
    from lrp4rag import __version__
    from lrp4rag.reader.comparer import bundled_comparer
    from lrp4rag.reader.published import Calibration, PublishedComparer
    from lrp4rag.report.cards import metrics_table
    from lrp4rag.training.calibrate import figures, fit_scales, log_odds_of
    from lrp4rag.training.comparer.pairs import answer_pairs, distinct
    from lrp4rag.training.sets import load_set
    from lrp4rag.util.strict_json import sealed

    names = [] if labels is None else [name.strip() for name in labels.split(",")]
    published, bundled = PublishedComparer.load(model, names, device), bundled_comparer()
    examples = load_set(Path(SET))
    sources = set(sorted({one.source for one in examples})[::every])
    chosen = [one for one in examples if one.source in sources]
    pairs = distinct(answer_pairs(chosen, SET))
    own = log_odds_of(published, pairs, f"read by {published.published.name}")
    others = log_odds_of(bundled, pairs, "read by the comparer")
    metrics, kinds = figures(own, others, pairs, resamples)
    told = {name: {key: one.model_dump() for key, one in row.items()} for name, row in metrics.items()}
    calibration = Calibration(
        model=published.place,
        revision=published.published.revision,
        weights=published.published.weights,
        settings=published.settings,
        labels=published.labels,
        comparer=bundled.digest,
        scales=fit_scales(own, others, pairs),
        seen=tuple(sorted({one.content_hash for one in chosen})),
        figures={
            **{"set": SET, "every": every, "sources": len(sources), "sentences": len(pairs)},
            **{"wrong": sum(one.wrong for one in pairs), "metrics": told},
            "kinds": {
                kind: {name: one.model_dump() for name, one in row.items()} for kind, row in kinds.items()
            },
        },
        package=__version__,
    )
    record = sealed(calibration.model_dump(mode="json", exclude={"sha256"}))
    write_atomically(out, json.dumps(record, indent=2, allow_nan=False) + "\n")
    console = open_console()
    rows = {"before": metrics["before"], "after": metrics["after"], "the comparer": metrics["bundled"]}
    console.print(metrics_table(f"{len(pairs)} sentences of answers to {len(sources)} questions", rows))
    console.print(_kinds_table(kinds))
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
        table.add_row(Text(kind), with_interval(row["model"]), with_interval(row["bundled"]))
    return table
