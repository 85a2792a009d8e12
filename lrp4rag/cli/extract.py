"""`lrp4rag extract`, and the extraction that `train` and `evaluate` begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import (
    EXTRACTION_WORKERS,
    GENERATOR,
    LIMIT,
    PATH,
    STORE_HELP,
    ReaderChoice,
    reader_options,
)
from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.files import check_folder
from lrp4rag.terminal import say, tell

if TYPE_CHECKING:
    from lrp4rag.classifiers import FittedDetector
    from lrp4rag.example import Example
    from lrp4rag.training.extract import Extraction


@command(short_help="Compute relevance and signals of responses into a store.")
@click.argument("data", metavar="DATA")
@click.option("--store", required=True, type=PATH, help=STORE_HELP)
@click.option(
    "--parts",
    default="relevance,signals,prompt,sentences",
    metavar="LIST",
    help="What to extract: relevance (R_response), signals (relevance by segment, provenance, likelihoods, "
    "mean states), states (hidden states of each token: large), prompt (R_prompt), sentences (a row per "
    "sentence; includes R_prompt and is the slowest), reading (of a plain pass: what a detector of `train` "
    "reads by default).",
)
@advanced(
    "--matrix",
    metavar="LRxLP",
    help="Also extract R* resampled to LR response by LP prompt bins, such as 64x16: the LSTM's input, LP "
    "tangents.",
)
@advanced(
    "--allow-failures",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 1 only if more than N responses fail.",
)
@GENERATOR
@LIMIT
@EXTRACTION_WORKERS
@reader_options()
def extract(
    data: str,
    store: Path,
    parts: str,
    matrix: str | None,
    allow_failures: int,
    generator: tuple[str, ...],
    limit: int | None,
    workers: int,
    reader: ReaderChoice,
) -> None:
    """Compute relevance, and what else detectors and baselines read, of every response in DATA.

    DATA is a JSONL or JSON file, or a RAGTruth directory. The results are kept in a store; further parts
    can be added to it later. Responses to one prompt share its computation. Safe to interrupt: running it
    again computes only what is missing or damaged. A response that fails does not stop the others: the
    reasons are listed at the end and logged in STORE/failures.jsonl, and the exit code is 1 (see
    --allow-failures).

    \b
    Example:
      lrp4rag extract DATA --store DIR --dtype bfloat16 --workers 2
    """
    names = [part.strip() for part in parts.split(",") if part.strip()]
    names += [f"matrix-{matrix}"] if matrix else []
    check_folder(store)
    extraction = extraction_of(load_data(data, generator, limit), store, reader, names, workers)
    failed = len(extraction.failures)
    say(f"{extraction.computed} computed, {extraction.present} already present, {failed} failed")
    if failed > allow_failures:
        raise LRP4RAGError(
            f"{failed} failed, and --allow-failures is {allow_failures}; the next run tries these again"
        )


def extraction_of(
    examples: Sequence[Example],
    store: Path,
    choice: ReaderChoice,
    parts: Sequence[str],
    workers: int,
    detector: FittedDetector | None = None,
) -> Extraction:
    """What the chosen reader finds, as the detector needs it where there is one; failures are reported."""
    from lrp4rag.report.inventory import reasons_table
    from lrp4rag.training.extract import extract as run
    from lrp4rag.training.inventory import reasons_of

    check_folder(store)
    if choice.device == "auto" and workers > 1:
        raise InputError("--device auto spreads one reader over all devices, so extraction has one worker")
    reader = choice.open(detector)
    composite = choice.rules
    if detector is not None:  # before the expensive part
        composite = choice.composite or detector.card.composite
        detector.require(reader.identity.as_dict(), composite, detector.card.target)
    extraction = run(
        examples,
        reader,
        store,
        composite=composite,
        truncation=choice.truncate,
        parts=parts,
        max_memory=choice.max_memory,
        workers=workers,
        load=replace(choice, chat_template=reader.identity.chat_template).open_in_worker,
    )
    if extraction.failures:
        many = len(extraction.failures)
        reasons = reasons_table(reasons_of(extraction.failures))
        tell("Warning", f"{many} response{'s' if many > 1 else ''} failed\n{reasons}")
    return extraction
