"""`python -m experiments lettuce`: LettuceDetect trained for six epochs, and the best of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.cli.compare import CACHE
from experiments.cli.options import store_option
from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, PATH, shown_command
from lrp4rag.util.terminal import say


@command()
@store_option("Store of labelled responses (lrp4rag extract --parts relevance); their texts are read.")
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@click.option(
    "--compared",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A comparison of the same responses (experiments/results/compare): its model stands beside.",
)
@click.option("--fold", default=1, show_default=True, type=click.IntRange(1), help="Which is held out.")
@click.option("--epochs", default=6, show_default=True, type=click.IntRange(1, 100), help="To train for.")
@click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]")
@BOOTSTRAP
@CACHE
def lettuce(
    store: Path,
    out: Path,
    compared: Path,
    fold: int,
    epochs: int,
    device: str | None,
    resamples: int,
    cache: Path | None,
) -> None:
    """Train LettuceDetect's small model on a fold of a STORE, and judge the others after each epoch.

    It takes hours on 2 cores, and is not resumed where it is interrupted.
    """
    from experiments.lettuce.measure import evaluate
    from experiments.lettuce.page import KIND, write_page
    from experiments.results_page import claim_page
    from experiments.systems.resources import Choices, Resources
    from lrp4rag.training.rows import Rows

    claim_page(out, KIND)
    rows = Rows.open(store)
    models: dict[str, Any] = {} if device is None else {"device": device}
    resources = Resources(cache or store / "baselines", Choices.beside(rows.store, **models))
    found = evaluate(rows, fold, epochs, compared, resources, resamples)
    files = write_page(found, out, shown_command(), resamples)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
