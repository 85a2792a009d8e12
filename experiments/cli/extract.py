"""`python -m experiments extract`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import GENERATOR, LIMIT, PATH, STORE_HELP, ReaderChoice, count, reader_options
from lrp4rag.util.terminal import say


@command()
@click.argument("data", metavar="DATA")
@click.option("--store", required=True, type=PATH, help=STORE_HELP)
@click.option(
    "--parts",
    default="relevance,signals,prompt,sentences",
    metavar="LIST",
    help="Those of lrp4rag extract, and signals (relevance by segment, provenance, likelihoods, mean "
    "states), states (hidden states of each token: large), sentences (a row per sentence; includes "
    "R_prompt and is the slowest).",
)
@GENERATOR
@LIMIT
@count("--workers", default=1, help="Processes that share the extraction and --max-memory.")
@reader_options()
def extract(
    data: str,
    store: Path,
    parts: str,
    generator: tuple[str, ...],
    limit: int | None,
    workers: int,
    reader: ReaderChoice,
) -> None:
    """Compute what the research reads of every response in DATA, resumably, as lrp4rag extract does."""
    from experiments.tokens.extraction import ALL_FILLERS, SIGNALS, STATES
    from experiments.tokens.signals import require_signals
    from lrp4rag.lrp.composites import composite_named
    from lrp4rag.training.extract import extract as run

    names = [part.strip() for part in parts.split(",") if part.strip()]
    opened = reader.open()
    if {SIGNALS, STATES} & set(names):
        require_signals(opened.model, composite_named(reader.rules))
    found = run(
        load_data(data, generator, limit),
        opened,
        store,
        composite=reader.rules,
        truncation=reader.truncate,
        parts=names,
        max_memory=reader.max_memory,
        workers=workers,
        load=replace(reader, chat_template=opened.identity.chat_template).open_in_worker,
        fillers=ALL_FILLERS,
    )
    say(f"{found.computed} computed, {found.present} already present, {len(found.failures)} failed")
