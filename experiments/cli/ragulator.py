"""`python -m experiments ragulator`: RAGulator judged as its paper judges it, sentence by sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.cli.compare import CACHE, asked_models
from experiments.cli.options import store_option
from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, GENERATOR, PATH, shown_command
from lrp4rag.util.terminal import say


@command()
@store_option("Store of labelled responses (lrp4rag extract --parts relevance); their texts are read.")
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@GENERATOR
@asked_models
@BOOTSTRAP
@CACHE
def ragulator(
    store: Path,
    out: Path,
    generator: tuple[str, ...],
    resamples: int,
    cache: Path | None,
    **models: Any,
) -> None:
    """Train RAGulator's classifiers on three fifths of a STORE's sources and judge sentences of others.

    What is trained, measured and asked is kept, so a run that was interrupted goes on there; grids of
    settings are searched again. Its times are of this machine: leave it alone meanwhile.
    """
    from experiments.ragulator.measure import evaluate
    from experiments.ragulator.page import KIND, write_page
    from experiments.results_page import claim_page
    from experiments.systems.resources import Choices, Resources
    from lrp4rag.training.rows import Rows

    claim_page(out, KIND)
    rows = Rows.open(store).select_generators(list(generator))
    resources = Resources(cache or store / "baselines", Choices.beside(rows.store, **models))
    found = evaluate(rows, resources, resamples)
    files = write_page(found, out, shown_command(), resamples)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")
