"""`python -m experiments breakdown`: where systems fail, from scores that a comparison kept."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, PATH, shown_command
from lrp4rag.util.files import check_folder
from lrp4rag.util.terminal import say


@command()
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--compared",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a comparison, with scores and costs.json (experiments/results/compare).",
)
@click.option(
    "--study",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="results.json of a study (experiments/results/detector).",
)
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@BOOTSTRAP
def breakdown(data: Path, compared: Path, study: Path, out: Path, resamples: int) -> None:
    """Divide a comparison's rows by length, by how much is hallucinated, by kind of span and by prevalence,
    and set like beside like. No model runs and no store is needed: DATA are the labelled examples that the
    scores are of.
    """
    from experiments.breakdown.measure import measure
    from experiments.breakdown.page import write_page
    from experiments.systems.comparison.compare import PROTOCOL
    from lrp4rag.data import load_examples

    check_folder(out)
    found = measure(load_examples(data), compared, study, resamples)
    files = write_page(found, out, shown_command(), PROTOCOL.words, resamples)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
