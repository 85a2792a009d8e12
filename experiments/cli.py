"""`python -m experiments`: the commands of the research that stands beside the product."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.group import CONTEXT, CommandGroup, LazyCommand, prepare_output
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import (
    BOOTSTRAP,
    GENERATOR,
    LIMIT,
    PATH,
    STORE_HELP,
    ReaderChoice,
    check_written,
    count,
    reader_options,
    shown_command,
    together,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder
from lrp4rag.util.terminal import say, say_json

if TYPE_CHECKING:
    from experiments.cache import Cache
    from experiments.systems.folds import FoldRunner
    from experiments.systems.resources import Resources
    from lrp4rag.training.localisation import Localisation

FEWEST = 10
"""Sources of a slow baseline."""
FOLD_WORKERS = count("--workers", help="Processes of the cross-validation.  [default: one per core]")
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SECTIONS_OF_PAPER = (
    "table2",
    "baselines",
    "thresholds",
    "length",
    "distributions",
    "ablations",
    "implicit",
    "reliability",
    "transfer",
    "findings",
)

# Options that several commands share.

OUT = click.option("--out", required=True, type=PATH, help="Folder for the page.")
CACHE = click.option(
    "--cache",
    type=PATH,
    help="Folder that keeps what takes long; it is unpickled, so take none from others.  "
    "[default: ~/.cache/lrp4rag/experiments]",
)
SOURCES = click.option(
    "--sources",
    default=200,
    type=click.IntRange(FEWEST),
    help="Sources of the sample that slow systems learn from, and are judged on.",
)
DEVICE = click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]")
READER = together(
    click.option(
        "--reader",
        metavar="MODEL",
        help="The model that judges, samples and is fine-tuned: a hub id or a folder.  "
        "[default: the store's, if that is smollm2-135m]",
    ),
    advanced(
        "--chat-template/--no-chat-template",
        default=None,
        help="Wrap its prompts in its chat template, or not.  [default: as the store's]",
    ),
    DEVICE,
    advanced("--dtype", default="auto", help="Its precision."),
    advanced(
        "--judge",
        metavar="MODEL",
        help="Put prompts to this model instead of the reader: its name at an OpenAI-compatible endpoint "
        "(the key is read from OPENAI_API_KEY).",
    ),
    advanced("--judge-url", metavar="URL", help="The endpoint.  [default: OpenAI's]"),
)
WEIGHTS = together(
    advanced(
        "--entailment",
        metavar="MODEL",
        help="Cross-encoder of entailment: hhem, minicheck, a hub id or a folder.  "
        "[default: trained in the folds]",
    ),
    advanced(
        "--token-classifier",
        metavar="MODEL",
        help="LettuceDetect's model: a hub id or a folder.  [default: trained in the folds]",
    ),
)


def store_option(parts: str) -> Callable[..., Any]:
    help = f"Store of labelled responses (python -m experiments extract --parts {parts})."
    return click.option("--store", required=True, type=FOLDER, help=help)


def sections_option(names: tuple[str, ...]) -> Callable[..., Any]:
    return click.option(
        "--section",
        "sections",
        multiple=True,
        type=click.Choice(names),
        help="Compute only this; repeat it for several.  [default: all]",
    )


def _open_cache(cache: Path | None, workers: int | None = None) -> Cache:
    from experiments.cache import Cache

    return Cache.open(cache, workers or os.cpu_count() or 1)


def _wrote(files: list[Path]) -> None:
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")


# The paper.


@command()
@store_option("relevance")
@click.option(
    "--variant",
    multiple=True,
    metavar="NAME=FOLDER",
    help="Store of the same responses made another way (composite, prompt); repeat it for several.",
)
@OUT
@GENERATOR
@sections_option(SECTIONS_OF_PAPER)
@click.option(
    "--baseline",
    multiple=True,
    metavar="NAME[=SOURCES]",
    help="Run this one of Table 2's baselines too (the command baseline lists them), a slow one with "
    "the responses to so many sources (200); repeat it for several. They take long.",
)
@click.option("--reader", metavar="MODEL", help="The model that baselines ask and train.")
@advanced(
    "--beside",
    multiple=True,
    type=FOLDER,
    help="Folder of other results of this command, which have a part of what is left out here: the page "
    "links to them. Repeat it for several.",
)
@BOOTSTRAP
@FOLD_WORKERS
@CACHE
def reproduce(
    store: Path,
    variant: tuple[str, ...],
    out: Path,
    generator: tuple[str, ...],
    sections: tuple[str, ...],
    baseline: tuple[str, ...],
    reader: str | None,
    beside: tuple[Path, ...],
    resamples: int,
    workers: int | None,
    cache: Path | None,
) -> None:
    """Make the tables and figures of LRP4RAG (arXiv 2408.15533) from a STORE, and a page that shows them.

    Safe to interrupt: running it again resumes. Parts that the store lacks are left out, and the page says
    what would add them.
    """
    from experiments.paper.context import Context
    from experiments.paper.data import Settings
    from experiments.paper.run import reproduce as run

    context = Context.open(
        store,
        variants=_variants(variant),
        generators=generator,
        cache=_open_cache(cache, workers),
        settings=Settings(resamples=resamples),
        baselines=_baselines(baseline),
        reader=reader,
    )
    _wrote(run(context, out, sections or SECTIONS_OF_PAPER, shown_command(), beside))


def _baselines(options: tuple[str, ...]) -> dict[str, int]:
    """The sources of each baseline, by its name."""
    from experiments.systems.registry import baseline_named

    baselines: dict[str, int] = {}
    for option in options:
        name, _, sources = option.partition("=")
        if not baseline_named(name).facts.slow and sources:
            raise InputError(f"{name} has all responses, and takes no number of sources", field="--baseline")
        if sources and not (sources.isdecimal() and sources.isascii() and int(sources[:9]) >= FEWEST):
            raise InputError(f"--baseline takes NAME=SOURCES, {FEWEST} or more, got '{option}'")
        baselines[name] = int(sources[:9]) if sources else 200
    return baselines


def _variants(options: tuple[str, ...]) -> dict[str, Path]:
    variants: dict[str, Path] = {}
    for option in options:
        name, _, folder = option.partition("=")
        if not (name and folder) or not Path(folder).is_dir():
            raise InputError(f"--variant takes NAME=FOLDER with a store's folder, got '{option}'")
        if name in variants:
            raise InputError(f"the variant '{name}' is given twice")
        variants[name] = Path(folder)
    return variants


@command()
@click.option("--paper", required=True, type=FOLDER, help="Results of reproduce (experiments/results/paper).")
@click.option(
    "--matrix", required=True, type=FOLDER, help="Those of a store with R* (experiments/results/matrix)."
)
@click.option(
    "--baselines",
    multiple=True,
    type=FOLDER,
    help="Those with baselines that were run (experiments/results/prompt); repeatable.",
)
@OUT
def claims(paper: Path, matrix: Path, baselines: tuple[Path, ...], out: Path) -> None:
    """Set LRP4RAG's four claims beside the tables that reproduce wrote, with a verdict on each part."""
    from experiments.pages import write_results
    from experiments.paper.claims import lines

    check_folder(out)
    _wrote(write_results(out, "claims", {"lines": lines(paper, matrix, baselines)}, shown_command()))


# Systems.


def _resources(store: Path, cache: Path | None, workers: int | None = None, **reader: Any) -> Resources:
    from experiments.systems.resources import ModelChoice, Resources
    from lrp4rag.training.store import Store

    name = reader.pop("reader", None)
    return Resources(_open_cache(cache, workers), ModelChoice.beside(Store.existing(store), name, **reader))


@command()
@store_option("reading,relevance,signals,states")
@OUT
@click.option(
    "--baselines",
    "names",
    default="all",
    metavar="NAMES",
    help="Which, separated by commas (python -m experiments baseline lists them).",
)
@SOURCES
@click.option(
    "--costs", type=FILE, help="What python -m benchmarks.systems --out wrote: adds quality against cost."
)
@advanced(
    "--scores",
    type=FOLDER,
    help="Scores of another comparison (experiments/results/compare/scores): where rows and settings are the "
    "same they are read, as those in OUT/scores always are, and the system is not run.",
)
@READER
@WEIGHTS
@BOOTSTRAP
@FOLD_WORKERS
@CACHE
def compare(
    store: Path,
    out: Path,
    names: str,
    sources: int,
    costs: Path | None,
    scores: Path | None,
    resamples: int,
    workers: int | None,
    cache: Path | None,
    **reader: Any,
) -> None:
    """Cross-validate our detectors and every baseline on the same rows of a STORE, and write a page.

    Folds are grouped by source, and every choice is made inside them. Slow systems are judged on a sample of
    llama-2-7b-chat's and llama-2-13b-chat's responses. Safe to interrupt: running it again resumes
    after what was measured, trained or judged last. Each system's scores are in OUT/scores.
    """
    from experiments.pages import write_results
    from experiments.systems.comparison import comparison, read_costs, run_systems
    from experiments.systems.folds import SEED, sample_of
    from experiments.systems.registry import baselines_named
    from lrp4rag.classifiers.card import package_versions
    from lrp4rag.reader.weights import label_of
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.rows import Rows

    check_folder(out)
    measured = None if costs is None else read_costs(costs)
    rows, resources = Rows.open(store), _resources(store, cache, workers, **reader)
    baselines = baselines_named(name.strip() for name in names.split(",") if name.strip())
    sample = sample_of(rows, sources)
    results = run_systems(rows, baselines, sample, resources, out / "scores", scores)
    if measured is not None and not measured.systems.keys() & results.keys():
        raise InputError("the costs are of none of these systems; measure them (benchmarks.systems)")
    stored = rows.store.configuration.reader["name"]
    files = write_results(
        out,
        "compare",
        comparison(rows, baselines, sample, results, resources.choice, resamples),
        shown_command(),
        protocol=ONCE.words,
        resamples=resamples,
        sample_seed=SEED,
        rows=rows.digest,
        reader=stored,
        asks_another=label_of(resources.choice.name) != stored,
        choices=resources.settings,
        versions=package_versions(),
        costs=measured,
    )
    _wrote(files)


@command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--store", type=FOLDER, help="Store of labelled responses to learn from and judge.")
@SOURCES
@READER
@WEIGHTS
@BOOTSTRAP
@CACHE
def baseline(
    name: str | None, store: Path | None, sources: int, resamples: int, cache: Path | None, **reader: Any
) -> None:
    """List the systems, or cross-validate NAME on a STORE of labelled responses.

    \b
    python -m experiments baseline
    python -m experiments baseline lookback-lens --store STORE
    """
    if name is None:
        _list_baselines()
        return
    from experiments.systems.folds import FoldRunner, sample_of
    from lrp4rag.training.rows import Rows
    from lrp4rag.training.tokens import tokens_of

    if store is None:
        raise InputError("name labelled responses: --store STORE (python -m experiments extract)")
    rows = Rows.open(store)
    resources = _resources(store, cache, **reader)
    _cross_validate(
        name, FoldRunner(rows, tokens_of(rows, {}), sample_of(rows, sources), resources), resamples
    )


def _list_baselines() -> None:
    from rich.table import Column, Table

    from experiments.systems.registry import BASELINES
    from lrp4rag.util.terminal import open_console

    name = Column("name", no_wrap=True, min_width=max(map(len, BASELINES)))
    table = Table(name, "system", "access", "learns from", "slow", box=None, pad_edge=False)
    for key, system in BASELINES.items():
        facts = system.facts
        table.add_row(key, facts.title, facts.access, facts.training, "yes" if facts.slow else "")
    console = open_console()
    console.print(table)
    console.print(
        "\nRun one: python -m experiments baseline NAME --store STORE; each has a page in docs/baselines.",
        style="dim",
    )


def _cross_validate(name: str, runner: FoldRunner, resamples: int) -> None:
    """Print a line for each generator, with 95 % intervals."""
    import numpy as np
    from rich.table import Table

    from experiments.numbers import stacked
    from experiments.systems.registry import baseline_named
    from lrp4rag.report.numbers import METRICS
    from lrp4rag.training.localisation import parts_of
    from lrp4rag.training.metrics import outcome_metrics
    from lrp4rag.util.terminal import open_console
    from lrp4rag.util.text import one_line

    system, rows = baseline_named(name), runner.rows
    runner.check({name: system})
    choice = runner.resources.choice
    choice.refuse_seen(rows.examples)
    scores, facts = runner.run(name, system), choice.facts_of(system.facts)
    judged = runner.sample if facts.slow else np.arange(len(rows))
    table = Table("", *(METRICS[metric] for metric in SHOWN), "token AUROC", "span F1", show_lines=True)
    for generator, indices in parts_of(rows, judged).items():
        part = rows.select(indices)
        outcome = scores.outcome.select(indices)
        metrics = outcome_metrics(outcome, part.labels, part.groups, resamples=resamples)
        line = scores.line(part, runner.tokens, indices, resamples)
        located = (line.tokens["auroc"], line.spans["f1"]) if line is not None else ()
        cells = [stacked(each) for each in (*(metrics[metric] for metric in SHOWN), *located)]
        table.add_row(one_line(generator, 60), *cells)
    console = open_console()
    described = f" ({facts.paper})" if facts.paper else ""
    console.print(f"{facts.title}{described}; weights: {facts.weights}", style="dim")
    console.print(table)
    if not scores.answered[judged].all():
        console.print(f"{1 - scores.answered[judged].mean():.1%} of the responses had no usable answer")
    console.print(f"chosen in the folds: {'; '.join(dict.fromkeys(scores.outcome.chosen))}", style="dim")


@command()
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--compared",
    required=True,
    type=FOLDER,
    help="Folder of a comparison, with scores and costs.json (experiments/results/compare).",
)
@click.option(
    "--study",
    required=True,
    type=FILE,
    help="results.json of a study (experiments/results/detector).",
)
@OUT
@BOOTSTRAP
def breakdown(data: Path, compared: Path, study: Path, out: Path, resamples: int) -> None:
    """Divide a comparison's rows by length, by how much is hallucinated, by kind of span and by prevalence,
    and set like beside like. No model runs and no store is needed: DATA are the labelled examples that the
    scores are of.
    """
    from experiments.breakdown import measure
    from experiments.pages import write_results
    from lrp4rag.data import load_examples
    from lrp4rag.training.folds import ONCE

    check_folder(out)
    results = measure(load_examples(data), compared, study, resamples)
    more = {"protocol": ONCE.words, "resamples": resamples}
    _wrote(write_results(out, "breakdown", results, shown_command(), **more))


@command()
@store_option("relevance")
@OUT
@click.option(
    "--compared",
    required=True,
    type=FOLDER,
    help="A comparison of the same responses (experiments/results/compare): its model stands beside.",
)
@click.option("--fold", default=1, type=click.IntRange(1), help="The test fold.")
@click.option("--epochs", default=6, type=click.IntRange(1, 100), help="To train for.")
@DEVICE
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
    from experiments.lettuce import evaluate
    from experiments.pages import claim, write_results
    from lrp4rag.classifiers.card import package_versions
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.rows import Rows

    claim(out, "lettuce")
    resources = _resources(store, cache, device=device)
    results = evaluate(Rows.open(store), fold, epochs, compared, resources, resamples)
    more = {"protocol": ONCE.words, "resamples": resamples, "versions": package_versions()}
    _wrote(write_results(out, "lettuce", results, shown_command(), **more))


@command()
@store_option("relevance")
@OUT
@GENERATOR
@READER
@BOOTSTRAP
@CACHE
def ragulator(
    store: Path,
    out: Path,
    generator: tuple[str, ...],
    resamples: int,
    cache: Path | None,
    **reader: Any,
) -> None:
    """Train RAGulator's classifiers on three fifths of a STORE's sources and judge sentences of others.

    Its times are of this machine: leave it alone meanwhile.
    """
    from experiments.pages import claim, write_results
    from experiments.ragulator import evaluate
    from lrp4rag.training.rows import Rows

    claim(out, "ragulator")
    rows = Rows.open(store).select_generators(list(generator))
    results = evaluate(rows, _resources(store, cache, **reader), resamples)
    _wrote(write_results(out, "ragulator", results, shown_command(), resamples=resamples))


@command()
@click.argument("data", metavar="DATA")
@click.option("--out", required=True, type=PATH, help="Folder for the model.")
@DEVICE
def entailment(data: str, out: Path, device: str | None) -> None:
    """Fine-tune MiniLM (22M parameters) on DATA: does a chunk of the passages support a sentence of the
    response? Sentences that an annotated span touches are not supported.

    The folder can be given to compare and baseline (--entailment) for responses to other sources; without it
    they train such a model inside each fold.
    """
    from experiments.systems.entailment import train_entailment
    from experiments.systems.resources import ModelChoice, Resources
    from lrp4rag.data import load_examples
    from lrp4rag.util.files import folder_written_whole

    check_folder(out, replace=True)
    if out.exists() and any(out.iterdir()):
        raise InputError("the model needs a new or empty folder", path=out)
    examples = [example for example in load_examples(data) if example.labels is not None]
    if not any(example.labels for example in examples):
        raise InputError("no response here has annotated spans to learn from", path=data)
    with folder_written_whole(out) as partial:
        train_entailment(examples, Resources(choice=ModelChoice(device=device)), partial)
    say(f"wrote {out}")


# Stores.


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
    from dataclasses import replace

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
        load=replace(reader, chat_template=opened.identity.chat_template).open,
        fillers=ALL_FILLERS,
    )
    say(f"{found.computed} computed, {found.present} already present, {len(found.failures)} failed")


# Detectors.

COSTS = ("R_response", "fast", "segments", "full")
KEEPS_STATES = "saplma-linear"
"""The system whose cost is that of one plain pass that keeps hidden states."""


@command()
@store_option("reading")
@click.option("--out", type=PATH, help="Also write the record to this JSON file.")
@GENERATOR
@click.option(
    "--block",
    "blocks",
    multiple=True,
    default=("plain", "around"),
    show_default=True,
    metavar="NAME",
    help="Features of tokens, of a plain pass or of passes in relevance mode (experiments/tokens/blocks.py); "
    "repeatable.",
)
@BOOTSTRAP
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def localise(
    store: Path,
    out: Path | None,
    generator: tuple[str, ...],
    blocks: tuple[str, ...],
    resamples: int,
    as_json: bool,
) -> None:
    """Cross-validate token classifiers on what a STORE holds, and print their metrics per generator.

    They learn from the chosen responses of all generators together, with folds grouped by source; thresholds
    are chosen inside the folds. Beside them stand smoothed relevance, of which only the threshold is learned,
    and controls.
    """
    import json
    from dataclasses import asdict

    from experiments.tokens.blocks import blocks_named, parts_of
    from experiments.tokens.extraction import records_for
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.localisation import CLASSIFIER, lines_record, localisation
    from lrp4rag.training.rows import Rows
    from lrp4rag.training.token_folds import cross_validate_tokens
    from lrp4rag.training.tokens import tokens_of
    from lrp4rag.util.files import write_atomically

    if out is not None:
        check_written(out)
    named = blocks_named(blocks)
    rows = Rows.open(store).select_generators(generator)
    tokens = tokens_of(rows, named, lambda missing: records_for(rows, parts_of(missing)))
    predicted = {CLASSIFIER: cross_validate_tokens(tokens, ONCE)}
    result = localisation(rows, tokens, predicted, ONCE, resamples=resamples)
    record = {
        "protocol": ONCE.words,
        "settings": {"blocks": {name: asdict(block) for name, block in named.items()}},
        "chosen": list(result.chosen),
        "generators": lines_record(result),
    }
    if out is not None:
        write_atomically(out, json.dumps(record, indent=2) + "\n")
    if as_json:
        say_json(record)
    else:
        _print_localisation(result, ONCE.words)


LOCATED = ("token AUROC", "token AP", "span F1", "sentence F1")
"""Precision and recall are in the record."""
SHOWN = ("auroc", "accuracy", "f1", "ece")


def _print_localisation(localisation: Localisation, protocol: str) -> None:
    """A table for each generator; controls are dim. `protocol` says in words who learned from what."""
    from rich.table import Table

    from experiments.numbers import stacked
    from lrp4rag.report.numbers import METRICS
    from lrp4rag.training.controls import FLAG_EVERYTHING
    from lrp4rag.util.terminal import open_console
    from lrp4rag.util.text import one_line

    console, controls = open_console(), ("position", "novel words", "length only", FLAG_EVERYTHING)
    console.print(f"{protocol}; 95 % bootstrap intervals over sources", style="dim")
    for generator, lines in localisation.lines.items():
        counts = (
            f"{localisation.rows[generator]} responses, {localisation.hallucinated[generator]} hallucinated"
        )
        title = f"{one_line(generator, 60)}: {counts}"
        table = Table("", *LOCATED, title=title, title_justify="left", show_lines=True)
        for name, line in lines.items():
            values = (line.tokens["auroc"], line.tokens["auprc"], line.spans["f1"], line.sentences["f1"])
            table.add_row(name, *map(stacked, values), style="dim" if name in controls else None)
        console.print(table)
        whole = Table("whole responses", *(METRICS[name] for name in SHOWN), show_lines=True)
        for name, metrics in localisation.responses[generator].items():
            cells = [stacked(metrics[metric]) for metric in SHOWN]
            whole.add_row(name, *cells, style="dim" if name in controls else None)
        console.print(whole)


@command()
@store_option("relevance,signals,states")
@OUT
@GENERATOR
@sections_option(("ways", "learners", "curve", "transfer"))
@click.option(
    "--costs", type=FILE, help="What python -m benchmarks.verdict --out wrote: adds accuracy against cost."
)
@click.option(
    "--systems",
    type=FILE,
    help="What benchmarks.systems --out wrote (experiments/results/compare/costs.json): adds the cost of a "
    "pass that keeps hidden states.",
)
@BOOTSTRAP
@FOLD_WORKERS
@CACHE
def study(
    store: Path,
    out: Path,
    generator: tuple[str, ...],
    sections: tuple[str, ...],
    costs: Path | None,
    systems: Path | None,
    resamples: int,
    workers: int | None,
    cache: Path | None,
) -> None:
    """Compare token detectors on a STORE and write a page: by what they read, how many examples it takes, and
    generators that were not learned from. What relevance adds is another page: python -m experiments worth.
    """
    from experiments.pages import claim, write_results
    from experiments.study import SECTIONS as EVERY
    from experiments.study import study as run
    from lrp4rag.classifiers.card import package_versions
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.rows import Rows

    check_folder(out)
    forwards = _forwards(costs, systems)
    rows = Rows.open(store).select_generators(generator)
    claim(out, "study")
    results = run(rows, _open_cache(cache, workers), resamples=resamples, sections=sections or EVERY)
    files = write_results(
        out,
        "study",
        results,
        shown_command(),
        protocol=ONCE.words,
        resamples=resamples,
        rows=rows.digest,
        versions=package_versions(),
        forwards=forwards,
    )
    _wrote(files)


def _forwards(costs: Path | None, systems: Path | None) -> dict[str, float]:
    """Plain forwards by name, by the clock; raises `InputError` for a file that does not have them."""
    from pydantic import TypeAdapter, ValidationError

    from experiments.systems.comparison import Measured, read_costs
    from lrp4rag.util.strict_json import read_record

    forwards: dict[str, float] = {}
    if costs is not None:
        record = read_record(costs, "what python -m benchmarks.verdict wrote")
        for way in COSTS:
            field = f"{way}_over_forward"
            try:
                forwards[way] = TypeAdapter(Measured).validate_python(record.get(field), strict=True)
            except ValidationError as error:
                why = "not what python -m benchmarks.verdict wrote: no number of plain forwards"
                raise InputError(why, path=costs, field=field) from error
    if systems is not None:
        measured = read_costs(systems).systems
        if KEEPS_STATES not in measured:
            raise InputError("it has no cost of a pass that keeps states", path=systems, field=KEEPS_STATES)
        forwards["state"] = measured[KEEPS_STATES].forwards
    return forwards


@command()
@store_option("relevance,signals,states")
@OUT
@GENERATOR
@LIMIT
@click.option(
    "--seeds",
    default=3,
    type=click.IntRange(1, 50),
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
@CACHE
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

    Responses without signals, or without states where tokens are judged, are left out.
    """
    from dataclasses import replace

    from experiments.pages import claim, write_results
    from experiments.worth import LEVELS, measure, of_first_sources
    from lrp4rag.classifiers.card import package_versions
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.rows import Rows

    claim(out, "worth")
    rows = of_first_sources(Rows.open(store).select_generators(generator), limit)
    chosen = [level for level in LEVELS if level in (levels or LEVELS)]
    results = measure(rows, _open_cache(cache, workers), seeds=seeds, resamples=resamples, levels=chosen)
    files = write_results(
        out,
        "worth",
        results,
        shown_command(),
        protocol=replace(ONCE, repeats=seeds).words,
        resamples=resamples,
        reader=rows.store.configuration.reader["name"],
        versions=package_versions(),
    )
    _wrote(files)


# Pages.


@command()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=FOLDER)
def page(folders: tuple[Path, ...]) -> None:
    """Write a page of results again from its results.json, after its words or its figures' style changed.

    README.md, tables and figures of each FOLDER are written, and results.json is read: no store is needed
    and nothing is computed.
    """
    from experiments.pages import render

    for folder in folders:
        files = render(folder)
        say(f"wrote {files[0]} and {len(files) - 2} files beside it")


_here = partial(LazyCommand, module="experiments.cli")
SECTIONS = {
    "The paper": {
        "reproduce": _here("Tables 1 to 5 and Figures 2 to 5 of the paper's evaluation, from a store."),
        "claims": _here("The paper's claims beside what was measured, from results."),
    },
    "Systems": {
        "compare": _here("Compare every system with our detectors, from a store."),
        "breakdown": _here("Where systems are good and fail, from stored scores."),
        "baseline": _here("Run one of the systems that people would compare with."),
        "entailment": _here("Train a small model of whether a passage supports a sentence."),
        "lettuce": _here("LettuceDetect's training, epoch by epoch, on one fold."),
        "ragulator": _here("RAGulator's evaluation: sentences, held-out pairs, agreement, speed, a stream."),
    },
    "Stores": {"extract": _here("Compute the parts of a store that only the research reads.")},
    "Detectors": {
        "localise": _here("Cross-validate token classifiers: how well hallucinated spans are found."),
        "study": _here("What token detectors are worth, at what cost, from a store."),
        "worth": _here("What relevance adds to likelihood, attention and hidden states."),
    },
    "Pages": {"page": _here("Write pages of results again from their results.json.")},
}


@click.group(
    name="python -m experiments",
    cls=CommandGroup,
    sections=SECTIONS,
    program=("python", "-m", "experiments"),
    context_settings=CONTEXT,
)
def main() -> None:
    """Research beside the product: its tables and figures, each made from a store by one command."""
    prepare_output()
