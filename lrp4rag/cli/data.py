"""`lrp4rag extract`, `train` and `evaluate`: commands over labelled data."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.options import open_detector, open_reader, reader_options
from lrp4rag.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.experiments.extract import Extraction

RESAMPLES = click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(10),
    help="Bootstrap resamples behind the intervals.",
)
STORE_HELP = "Folder that keeps relevance: nothing is computed twice, and a killed run goes on."
GENERATOR_HELP = "Only responses of this generator; repeat it for several."


@click.command(short_help="Compute relevance of labelled or unlabelled responses into a store.")
@click.argument("data", metavar="DATA")
@click.option("--store", required=True, type=click.Path(path_type=Path), help=STORE_HELP)
@click.option("--generator", multiple=True, help=GENERATOR_HELP)
@reader_options
def extract(data: str, store: Path, generator: tuple[str, ...], **options: Any) -> None:
    """Compute the relevance of every response in DATA and keep it in a store.

    Kill it and run it again at any time. Responses that fail are logged in STORE/failures.jsonl.
    """
    extraction = _extract(_load(data, generator), store, None, **options)
    click.echo(
        f"{extraction.computed} computed, {extraction.present} there already, "
        f"{len(extraction.failures)} failed"
    )


@click.command(short_help="Train a detector on labelled responses.")
@click.argument("data", metavar="DATA")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the detector.")
@click.option("--store", required=True, type=click.Path(path_type=Path), help=STORE_HELP)
@click.option("--generator", multiple=True, help=GENERATOR_HELP)
@click.option("--classifier", default="svm", show_default=True, type=click.Choice(["svm"]))
@click.option(
    "--vector",
    default="total",
    show_default=True,
    type=click.Choice(["total", "response"]),
    help="The relevance of the whole prompt per response token, or its mean over prompt tokens "
    "(R_response, as in the paper).",
)
@click.option("--length", default=220, show_default=True, help="Length that it is resampled to.")
@click.option(
    "--resampling",
    default="interpolate",
    show_default=True,
    type=click.Choice(["interpolate", "pad_last", "zeros"]),
    help="How responses shorter than that are stretched.",
)
@RESAMPLES
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@reader_options
def train(
    data: str,
    out: Path,
    store: Path,
    generator: tuple[str, ...],
    classifier: str,
    vector: str,
    length: int,
    resampling: str,
    resamples: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a detector on labelled DATA: a JSONL file with "labels", or a RAGTruth directory.

    Relevance is extracted into the store first (resumable), then the detector is cross-validated
    with folds grouped by source, fitted on all rows, and written with its card.
    """
    from lrp4rag.classifiers import Features
    from lrp4rag.classifiers.detector import check_target
    from lrp4rag.experiments.train import labelled
    from lrp4rag.experiments.train import train as fit

    check_target(out)  # before the expensive part
    features = Features(vector, length, mode=resampling)  # type: ignore[arg-type]
    examples = labelled(_load(data, generator), data)
    extraction = _extract(examples, store, None, **options)
    detector = fit(
        examples,
        extraction,
        features=features,
        classifier=classifier,
        command=click.get_current_context().find_root().obj,
        resamples=resamples,
    )
    folder = detector.save(out)
    from lrp4rag.report.cards import print_card

    print_card(detector.card, as_json=as_json)
    click.echo(f"wrote {folder}", err=True)


@click.command(short_help="Metrics of a detector on labelled responses it has not seen.")
@click.argument("data", metavar="DATA")
@click.option("--detector", "detector_name", default="default", show_default=True, metavar="FOLDER")
@click.option("--store", type=click.Path(path_type=Path), help=f"{STORE_HELP}  [default: not kept]")
@click.option("--generator", multiple=True, help=GENERATOR_HELP)
@click.option("--allow-seen", is_flag=True, help="Evaluate also on sources of the training data.")
@RESAMPLES
@click.option("--json", "as_json", is_flag=True, help="Metrics and probabilities as JSON.")
@reader_options
def evaluate(
    data: str,
    detector_name: str,
    store: Path | None,
    generator: tuple[str, ...],
    allow_seen: bool,
    resamples: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a detector over labelled DATA and print its metrics per generator, with intervals.

    DATA that shares sources with the detector's training data is refused, unless --allow-seen.
    """
    from lrp4rag.experiments.evaluate import evaluate as run
    from lrp4rag.experiments.evaluate import refuse_seen
    from lrp4rag.experiments.train import labelled
    from lrp4rag.report.cards import evaluation_record, print_evaluation

    detector = open_detector(detector_name)
    if detector is None:
        raise InputError("evaluate needs a detector")
    examples = labelled(_load(data, generator), data)
    if not allow_seen:
        refuse_seen(detector.card, examples, data)
    with ExitStack() as stack:
        folder = store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lrp4rag-")))
        extraction = _extract(examples, folder, detector, **options)
        evaluation = run(detector, examples, extraction, resamples=resamples)
    if as_json:
        click.echo(json.dumps(evaluation_record(evaluation, detector.card)))
    else:
        print_evaluation(evaluation)


def _load(data: str, generators: Sequence[str]) -> list[Example]:
    from lrp4rag.dataset import load_examples

    examples = load_examples(data)
    if not generators:
        return examples
    known = sorted({example.generator or "unknown" for example in examples})
    for name in generators:
        if name not in known:
            raise InputError(f"no responses of '{name}'; there are: {', '.join(known)}", path=data)
    return [example for example in examples if (example.generator or "unknown") in generators]


def _extract(
    examples: Sequence[Example],
    store: Path,
    detector: Any,
    *,
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
) -> Extraction:
    from lrp4rag.experiments.extract import extract as run

    reader = open_reader(reader_name, device, dtype, chat_template, detector)
    chosen = composite or (detector.card.composite if detector else "attnlrp")
    if detector is not None:  # before the expensive part
        detector.require(reader.identity.as_dict(), chosen, detector.card.target)
    extraction = run(examples, reader, store, composite=chosen, truncation=truncate)  # type: ignore[arg-type]
    for id, why in extraction.failures.items():
        click.echo(f"Warning: example '{id}' failed: {why}", err=True)
    return extraction
