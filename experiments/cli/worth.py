"""`python -m experiments worth`: what relevance adds to what is known without it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from experiments.cli.options import cache_option, store_option
from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, FOLD_WORKERS, GENERATOR, LIMIT, PATH, shown_command
from lrp4rag.util.terminal import say

MOST_SEEDS = 50


@command()
@store_option("Store with signals and states (lrp4rag extract --parts relevance,signals,states).")
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@GENERATOR
@LIMIT
@click.option(
    "--seeds",
    default=3,
    show_default=True,
    type=click.IntRange(1, MOST_SEEDS),
    help="Cross-validations with other folds and networks, averaged; the time grows in proportion.",
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(["tokens", "responses"]),
    help="Only where tokens are judged (hours), or whole responses (minutes).  [default: both]",
)
@BOOTSTRAP
@FOLD_WORKERS
@cache_option("Folder that keeps features and finished folds.  [default: STORE/study]")
def worth(
    store: Path,
    out: Path,
    generator: tuple[str, ...],
    limit: int | None,
    seeds: int,
    levels: tuple[str, ...],
    resamples: int,
    workers: int | None,
    cache: Path | None,
) -> None:
    """Cross-validate detectors on a STORE with relevance and without, and write a page: over text and
    likelihood, with the logit and attention too, with the passages' gain too, over hidden states, and over
    all of these.

    Responses without signals, or without states where tokens are judged, are left out. Safe to interrupt:
    running it again resumes after the last finished fold.
    """
    from experiments.results_page import claim_page
    from experiments.worth.measure import LEVELS, measure
    from experiments.worth.page import KIND, write_page
    from lrp4rag.training.rows import Rows

    claim_page(out, KIND)
    rows = Rows.open(store).select_generators(generator).select_sources(limit)
    found = measure(
        rows,
        cache or store / "study",
        seeds=seeds,
        jobs=workers or os.cpu_count() or 1,
        resamples=resamples,
        levels=[level for level in LEVELS if level in (levels or LEVELS)],
    )
    files = write_page(found, rows, out, shown_command(), resamples)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
