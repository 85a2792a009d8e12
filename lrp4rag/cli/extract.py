"""`lrp4rag extract`, and the extraction that `train` begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.engine import EngineChoice, engine_options
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import (
    CONFIG,
    FOLDER_OR_URL,
    GENERATOR,
    LIMIT,
    STORE_HELP,
    ReaderChoice,
    hidden,
    reader_options,
)
from lrp4rag.util.errors import LRP4RAGError
from lrp4rag.util.files import absolute, check_folder
from lrp4rag.util.terminal import say, tell

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.training.extract import Extraction


@command(resumes=True)
@click.argument("data", metavar="DATA")
@click.option("--store", required=True, type=FOLDER_OR_URL, help=STORE_HELP)
@click.option(
    "--parts",
    default="relevance,segments,prompt",
    metavar="LIST",
    help="Parts to extract: relevance (R_response), segments (relevance of each passage, the question and "
    "the template), prompt (R_prompt), matrix-64x16 (R* in 64 response by 16 prompt bins: the LSTM's input), "
    "reading (of a plain pass: the input of a detector that `train` makes by default).",
)
@hidden(
    click.option("--matrix", metavar="LRxLP", help="Also extract the part matrix-LRxLP."),
    GENERATOR,
    LIMIT,
)
@click.option(
    "--allow-failures",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 1 only if more than N responses fail.",
)
@CONFIG
@engine_options()
@reader_options(shown=("dtype", "max-memory"))
def extract(
    data: str,
    store: Path,
    parts: str,
    matrix: str | None,
    allow_failures: int,
    generator: tuple[str, ...],
    limit: int | None,
    engine: EngineChoice,
    reader: ReaderChoice,
) -> None:
    """Compute relevance, or the input of detectors, of every response in DATA into a store.

    DATA is a JSONL, JSON or Parquet file, a folder of JSONL and Parquet files, or a RAGTruth directory,
    here or behind a URL. The results are kept in a store; further parts can be added to it later.
    Responses to one prompt share its computation. Safe to interrupt: running it again computes only what
    is missing or damaged. A response that fails does not stop the others: the reasons are listed at the
    end and logged in STORE/failures.jsonl, and the exit code is 1 (see --allow-failures).

    \b
    Examples:
      lrp4rag extract DATA --store DIR --dtype bfloat16 --workers 2
      lrp4rag extract s3://bucket/data/ --store s3://bucket/store --engine ray --address auto
    """
    names = [part.strip() for part in parts.split(",") if part.strip()]
    names += [f"matrix-{matrix}"] if matrix else []
    check_folder(store)
    extraction = extraction_of(load_data(data, generator, limit), store, reader, names, engine)
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
    engine: EngineChoice,
) -> Extraction:
    """Extract with the chosen reader, and report failures."""
    check_folder(store)
    engine.require_possible(choice)
    if engine.ray:
        from lrp4rag.features.parts import part_named
        from lrp4rag.guard.cluster.extraction import Plan, extract_on_cluster

        load, wanted = choice.for_workers().open, tuple(part_named(part) for part in parts)
        with engine.joined(choice) as workers:
            plan = Plan(load, choice.rules, choice.truncate, wanted, choice.max_memory)
            extraction = extract_on_cluster(examples, absolute(store), plan, workers)
    else:
        from lrp4rag.lrp.families import family_of
        from lrp4rag.training.extract import extract as run

        reader = choice.open()
        _ = family_of(reader.model)
        extraction = run(
            examples,
            reader,
            store,
            composite=choice.rules,
            truncation=choice.truncate,
            parts=parts,
            max_memory=choice.max_memory,
            workers=engine.workers or 1,
            load=replace(choice, chat_template=reader.identity.chat_template).open,
        )
    warn_of_failures(extraction.failures)
    return extraction


def warn_of_failures(failures: Mapping[str, str]) -> None:
    """Say how many responses failed, and why."""
    from lrp4rag.report.inventory import reasons_table
    from lrp4rag.training.inventory import reasons_of

    if failures:
        many = len(failures)
        tell(
            "Warning",
            f"{many} response{'s' if many > 1 else ''} failed\n{reasons_table(reasons_of(failures))}",
        )
