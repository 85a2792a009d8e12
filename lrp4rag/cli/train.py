"""`lrp4rag train` and `evaluate`: commands over labelled data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.memory import memory_option
from lrp4rag.cli.options import (
    BLOCKS,
    GENERATOR,
    JOBS,
    RESAMPLES,
    SOURCES,
    WORKERS,
    attribution_options,
    open_detector,
    open_reader,
    open_reader_of_worker,
    operating_options,
    reader_options,
    shown_command,
)
from lrp4rag.errors import InputError
from lrp4rag.files import check_folder
from lrp4rag.terminal import say, say_json, tell

if TYPE_CHECKING:
    from lrp4rag.classifiers import Features
    from lrp4rag.example import Example
    from lrp4rag.training.extract import Extraction
    from lrp4rag.training.train import TokenRecipe, VectorRecipe

STORE_HELP = "Folder that keeps relevance: nothing is computed twice, and a killed run goes on."
CLASSIFIERS = ("tokens", "threshold", "svm", "mlp", "forest", "lstm")
VECTORS = ("total", "response", "prompt", "segments", "matrix", "matrix_t")


@click.command(short_help="Train a detector on labelled responses.")
@click.argument("data", metavar="DATA")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the detector.")
@click.option("--store", required=True, type=click.Path(path_type=Path), help=STORE_HELP)
@GENERATOR
@SOURCES
@click.option(
    "--classifier",
    type=click.Choice(CLASSIFIERS),
    help="What decides: networks that judge single tokens, or a classifier of one vector (--vector); the "
    "LSTM reads it step by step.  [default: tokens, or svm where a vector is described]",
)
@BLOCKS
@click.option(
    "--vector",
    type=click.Choice(VECTORS),
    help="What such a classifier reads, per response token: the relevance of the whole prompt, its mean over "
    "prompt tokens (response: R_response), or its split among passages, question and template (segments). "
    "Per prompt token: R_prompt (prompt). R* in 64 x 16 bins: along the response (matrix) or the prompt "
    "(matrix_t).  [default: total]",
)
@click.option(
    "--length",
    type=int,
    help="Length that it is resampled to.  [default: 220, or for R* the bins it has]",
)
@click.option(
    "--resampling",
    type=click.Choice(["interpolate", "pad_last", "zeros"]),
    help="How responses shorter than that are stretched.  [default: interpolate]",
)
@RESAMPLES
@JOBS
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@WORKERS
@memory_option
@attribution_options
def train(
    data: str,
    out: Path,
    store: Path,
    generator: tuple[str, ...],
    sources: int | None,
    classifier: str | None,
    blocks: tuple[str, ...],
    vector: str | None,
    length: int | None,
    resampling: str | None,
    resamples: int,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a detector on labelled DATA: a JSONL file with "labels", or a RAGTruth directory.

    Relevance is extracted into the store first (resumable), then the detector is cross-validated
    with folds grouped by source, fitted on all rows, and written with its card. Kill it and run it again at
    any time: finished folds are kept in the store. 200 labelled responses, some of them with spans marked as
    hallucinated, are the fewest that were tried; more are better (docs/results/detector).
    """
    from lrp4rag.classifiers.folder import check_target
    from lrp4rag.training.train import labelled
    from lrp4rag.training.train import train as fit

    check_target(out)  # before the expensive part
    one, other = out.resolve(), store.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise InputError("--out and --store are two folders, and neither is in the other", path=out)
    reads = _reads(classifier, blocks, vector, length, resampling)
    examples = labelled(load_data(data, generator, sources), data)
    extraction = _extract(examples, store, None, parts=reads.needs, **options)
    detector = fit(
        examples,
        extraction,
        reads=reads,
        command=shown_command(click.get_current_context().find_root().obj),
        resamples=resamples,
        jobs=jobs or os.cpu_count() or 1,
    )
    folder = detector.save(out)
    from lrp4rag.report.cards import print_card

    print_card(detector.card, as_json=as_json)
    say(f"wrote {folder}", err=True)


@click.command(short_help="Metrics of a detector on labelled responses it has not seen.")
@click.argument("data", metavar="DATA")
@click.option(
    "--detector",
    "detector_name",
    default="default",
    show_default=True,
    metavar="FOLDER",
    help="A trained detector, or a bundled one (default, fast).",
)
@click.option("--store", type=click.Path(path_type=Path), help=f"{STORE_HELP}  [default: not kept]")
@GENERATOR
@click.option("--allow-seen", is_flag=True, help="Evaluate also on sources of the training data.")
@RESAMPLES
@click.option("--json", "as_json", is_flag=True, help="Metrics and probabilities as JSON.")
@operating_options
@WORKERS
@memory_option
@reader_options
def evaluate(
    data: str,
    detector_name: str,
    store: Path | None,
    generator: tuple[str, ...],
    allow_seen: bool,
    resamples: int,
    as_json: bool,
    operating_point: str | None,
    false_positive_rate: float | None,
    **options: Any,
) -> None:
    """Run a detector over labelled DATA and print its metrics per generator, with intervals.

    Of a detector that judges tokens also those of tokens, spans and sentences, beside controls. DATA that
    shares sources with the detector's training data is refused, unless --allow-seen.
    """
    from lrp4rag.report.cards import evaluation_record, print_evaluation
    from lrp4rag.training.evaluate import evaluate as run
    from lrp4rag.training.evaluate import refuse_seen
    from lrp4rag.training.train import labelled

    detector = open_detector(detector_name, operating_point, false_positive_rate)
    if detector is None:
        raise InputError("evaluate needs a detector")
    examples = labelled(load_data(data, generator), data)
    if not allow_seen:
        refuse_seen(detector.card, examples, data)
    with ExitStack() as stack:
        folder = store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lrp4rag-")))
        extraction = _extract(examples, folder, detector, parts=detector.needs, **options)
        evaluation = run(detector, examples, extraction, resamples=resamples)
    if as_json:
        say_json(evaluation_record(evaluation, detector.card))
    else:
        print_evaluation(evaluation)


def _reads(
    classifier: str | None,
    blocks: Sequence[str],
    vector: str | None,
    length: int | None,
    resampling: str | None,
) -> VectorRecipe | TokenRecipe:
    from lrp4rag.features.blocks import FULL_BLOCKS, blocks_named
    from lrp4rag.training.train import TokenRecipe, VectorRecipe

    described = any(option is not None for option in (vector, length, resampling))
    chosen = classifier or ("svm" if described else "tokens")
    if chosen == "tokens":
        if described:
            raise InputError("--vector, --length and --resampling are not for --classifier tokens")
        return TokenRecipe(blocks_named(blocks or FULL_BLOCKS))
    if blocks:
        raise InputError(f"--block is for --classifier tokens; '{chosen}' reads a --vector")
    return VectorRecipe(_features(vector or "total", length, resampling or "interpolate"), chosen)


def _features(vector: str, length: int | None, resampling: str) -> Features:
    from lrp4rag.classifiers import Features
    from lrp4rag.classifiers.features import VECTORS
    from lrp4rag.features.parts import MATRIX

    if resampling != "interpolate" and MATRIX in VECTORS[vector].needs:
        raise InputError(f"R* is kept interpolated, so --resampling {resampling} cannot be had of {vector}")
    length = VECTORS[vector].length if length is None else length
    return Features(vector, length, mode=resampling)  # type: ignore[arg-type]


def load_data(data: str, generators: Sequence[str], sources: int | None = None) -> list[Example]:
    """The examples of DATA: of these generators where some are named, of their first so many sources."""
    from lrp4rag.data import load_examples

    examples = load_examples(data)
    known = sorted({example.generator or "unknown" for example in examples})
    for name in generators:
        if name not in known:
            raise InputError(f"no responses of '{name}'; there are: {', '.join(known)}", path=data)
    if generators:
        examples = [example for example in examples if (example.generator or "unknown") in generators]
    first = set(list(dict.fromkeys(example.source for example in examples))[:sources])
    return [example for example in examples if example.source in first]


def _extract(
    examples: Sequence[Example],
    store: Path,
    detector: Any,
    *,
    parts: Sequence[str],
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
    max_memory: int | None,
    workers: int,
) -> Extraction:
    from lrp4rag.features.parts import PROMPT
    from lrp4rag.lrp.families import can_pull
    from lrp4rag.training.extract import extract as run

    check_folder(store)
    reader = open_reader(reader_name, device, dtype, chat_template, detector)
    chosen = composite or (detector.card.composite if detector else "attnlrp")
    if detector is not None:  # before the expensive part
        detector.require(reader.identity.as_dict(), chosen, detector.card.target)
    if PROMPT in parts and not can_pull(reader.model):
        raise InputError(
            "R_prompt is pulled, and this reader's layers give no derivatives (is it quantised?); "
            "a detector of another vector, such as total or matrix, needs none"
        )
    extraction = run(
        examples,
        reader,
        store,
        composite=chosen,
        truncation=truncate,  # type: ignore[arg-type]
        parts=parts,
        max_memory=max_memory,
        workers=workers,
        load=partial(open_reader_of_worker, reader_name, device, dtype, reader.identity.chat_template),
    )
    warn_of_failures(extraction)
    return extraction


def warn_of_failures(extraction: Extraction) -> None:
    """Tell why responses failed, in a line for each reason."""
    from lrp4rag.report.failures import reasons_table
    from lrp4rag.training.failures import reasons_of

    if extraction.failures:
        count = len(extraction.failures)
        reasons = reasons_table(reasons_of(extraction.failures))
        tell("Warning", f"{count} response{'s' if count > 1 else ''} failed\n{reasons}")
