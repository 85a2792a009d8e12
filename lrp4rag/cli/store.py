"""`lrp4rag extract` and `lrp4rag store info|merge|export`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from lrp4rag.cli.memory import memory_option
from lrp4rag.cli.options import GENERATOR, SOURCES, WORKERS, attribution_options, open_reader_of_worker
from lrp4rag.cli.train import STORE_HELP, load_data, warn_of_failures
from lrp4rag.errors import LRP4RAGError
from lrp4rag.files import check_folder, check_output
from lrp4rag.terminal import say


@click.command(short_help="Compute relevance and signals of responses into a store.")
@click.argument("data", metavar="DATA")
@click.option("--store", required=True, type=click.Path(path_type=Path), help=STORE_HELP)
@click.option(
    "--parts",
    default="relevance,signals,prompt,sentences",
    show_default=True,
    metavar="LIST",
    help="What to extract: relevance (R_response), signals (relevance by segment, provenance, likelihoods, "
    "mean states), states (hidden states of each token: large), prompt (R_prompt), sentences (a row for each "
    "sentence, which brings R_prompt: the slowest).",
)
@click.option(
    "--matrix",
    metavar="LRxLP",
    help="Also R* resampled to LR response by LP prompt bins, such as 64x16: the LSTM's input, LP tangents.",
)
@click.option(
    "--allow-failures",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 1 where more responses than N fail.",
)
@WORKERS
@GENERATOR
@SOURCES
@memory_option
@attribution_options
def extract(
    data: str,
    store: Path,
    parts: str,
    matrix: str | None,
    allow_failures: int,
    workers: int,
    generator: tuple[str, ...],
    sources: int | None,
    max_memory: int | None,
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
) -> None:
    """Compute relevance, and whatever else detectors and baselines read, of every response in DATA.

    DATA is a JSONL or JSON file, or a RAGTruth directory. Everything is kept in a store, and parts can
    be added to it later. Responses to one prompt share its computation. Kill it and run it again at any
    time; what is damaged is computed again. A response that fails does not stop the others: why it failed
    is told at the end, and logged in STORE/failures.jsonl. The exit code is then 1 (see --allow-failures).

    \b
    Four times as fast on a CPU with bfloat16 instructions:
      lrp4rag extract DATA --store DIR --dtype bfloat16 --workers 2
    """
    from lrp4rag.training.extract import extract as run

    check_folder(store)
    examples = load_data(data, generator, sources)
    load = partial(open_reader_of_worker, reader_name, device, dtype, chat_template)
    names = [part.strip() for part in parts.split(",") if part.strip()]
    extraction = run(
        examples,
        load(0),
        store,
        composite=composite or "attnlrp",
        truncation=truncate,  # type: ignore[arg-type]
        parts=names + ([f"matrix-{matrix}"] if matrix else []),
        max_memory=max_memory,
        workers=workers,
        load=load,
    )
    warn_of_failures(extraction)
    say(
        f"{extraction.computed} computed, {extraction.present} there already, "
        f"{len(extraction.failures)} failed"
    )
    failed = len(extraction.failures)
    if failed > allow_failures:
        raise LRP4RAGError(
            f"{failed} failed, and --allow-failures is {allow_failures}; the next run tries these again"
        )


@click.group()
def store() -> None:
    """Look at what was extracted, put stores together, and take them elsewhere."""


@store.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """How the store in FOLDER was made, and what it holds of how many responses.

    All files are read, and those that are damaged are counted. Why responses failed in the last run is told
    too.
    """
    from lrp4rag.report.inventory import print_inventory
    from lrp4rag.training.inventory import inventory

    print_inventory(inventory(folder), as_json=as_json)


@store.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the merged store.")
def merge(folders: tuple[Path, ...], out: Path) -> None:
    """Copy stores of one reader and composite into one, such as those of several machines.

    OUT may exist already; what it holds is kept, unless it is damaged. Of a file that is damaged in one
    store, a whole copy is taken from another; where there is none, the others are copied and the exit code is
    1. Stores that were made differently are refused.
    """
    from lrp4rag.training.inventory import merge as run

    copied = run(folders, out)
    say(f"{copied} files copied to {out}")


@store.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Parquet file to write.")
@click.option(
    "--array",
    "arrays",
    multiple=True,
    metavar="NAME",
    help="Also this array of the signals or the sentences, such as lookback; repeat it for several.",
)
@click.option(
    "--features", is_flag=True, help="Also the features of each token and response (docs/features.md)."
)
def export(folder: Path, out: Path, arrays: tuple[str, ...], features: bool) -> None:
    """Write the store as one Parquet table, a row for each response, for pandas, polars or duckdb.

    It has ids, source, generator, texts, labels, token flags, and per response token R_response,
    log-probability, entropy and rank; R_prompt where it is stored. Arrays of more axes are flattened and
    bring their shape. Needs pyarrow: pip install 'lrp4rag[parquet]'.
    """
    from lrp4rag.training.export import export as run
    from lrp4rag.training.store import EXAMPLES, MANIFEST

    check_output(out, (folder / MANIFEST, folder / EXAMPLES))
    count = run(folder, out, arrays, features=features)
    say(f"{count} rows written to {out}")
