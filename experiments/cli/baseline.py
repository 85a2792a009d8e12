"""`python -m experiments baseline`: one of the systems that people would compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.cli.compare import CACHE, STORE_HELP, model_choices
from lrp4rag.cli.command import command
from lrp4rag.cli.inputs import data_files
from lrp4rag.cli.options import BOOTSTRAP, PATH, check_written
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say

if TYPE_CHECKING:
    from experiments.systems.comparison.single import CrossValidated
    from experiments.systems.facts import Facts
    from experiments.systems.scoring import Score
    from lrp4rag.example import Example

SHOWN = ("auroc", "accuracy", "f1", "ece")


@command()
@click.argument("name", required=False, metavar="[NAME]")
@click.argument("data", required=False, metavar="[DATA]")
@click.option("--store", type=click.Path(exists=True, file_okay=False, path_type=Path), help=STORE_HELP)
@click.option(
    "--sources",
    default=200,
    type=click.IntRange(10),
    help="Sources of the sample that a slow system learns from, and is judged on.",
)
@click.option("--out", type=PATH, help="Write scores to this file, one line of JSON per response.")
@click.option("--anew", is_flag=True, help="Run all folds again, also those that are cached.")
@model_choices
@BOOTSTRAP
@CACHE
def baseline(
    name: str | None,
    data: str | None,
    store: Path | None,
    sources: int,
    out: Path | None,
    anew: bool,
    resamples: int,
    cache: Path | None,
    **models: Any,
) -> None:
    """List the systems; cross-validate NAME on a STORE of labelled responses; or let NAME learn from the
    STORE and judge the responses of DATA.

    \b
    python -m experiments baseline
    python -m experiments baseline lookback-lens --store STORE
    python -m experiments baseline lettucedetect DATA.jsonl --store STORE --out scores.jsonl
    """
    if name is None:
        _list()
        return
    from experiments.systems.comparison.folds import sample_of
    from experiments.systems.comparison.single import cross_validate, judge_others
    from experiments.systems.registry import baseline_named
    from experiments.systems.resources import Choices, Resources
    from lrp4rag.training.rows import Rows

    chosen = baseline_named(name)
    if store is None:
        raise InputError("name the labelled responses to learn from: --store STORE (see lrp4rag extract)")
    if out is not None:
        check_written(out, data_files(data))
    rows = Rows.open(store)
    sample = sample_of(rows, sources)
    resources = Resources(cache or store / "baselines", Choices.beside(rows.store, **models))
    if data is not None:
        from lrp4rag.data import load_examples

        examples = load_examples(data)
        scores = judge_others(chosen, rows, sample, examples, resources)
        _write(examples, scores, out)
        return
    found = cross_validate(name, rows, sample, resources, resamples, anew=anew)
    if out is not None:
        _write(list(found.examples), list(found.scores), out)
    _print_metrics(found, resources.choices.facts_of(chosen.facts))


def _list() -> None:
    from rich.table import Column, Table

    from experiments.systems.registry import BASELINES
    from lrp4rag.util.terminal import open_console

    name = Column("name", no_wrap=True, min_width=max(map(len, BASELINES)))
    table = Table(name, "system", "access", "learns from", "slow", box=None, pad_edge=False)
    for key, one in BASELINES.items():
        facts = one.facts
        table.add_row(key, facts.title, facts.access, facts.training, "yes" if facts.slow else "")
    console = open_console()
    console.print(table)
    console.print(
        "\nRun one: python -m experiments baseline NAME --store STORE; each has a page in docs/baselines.",
        style="dim",
    )


def _print_metrics(found: CrossValidated, facts: Facts) -> None:
    """A line for each generator, with 95 % intervals."""
    from rich.table import Table

    from lrp4rag.guard.evaluation.report import LONGEST_NAME
    from lrp4rag.report.numbers import METRICS, stacked
    from lrp4rag.util.terminal import open_console
    from lrp4rag.util.text import one_line

    console = open_console()
    described = f" ({facts.paper})" if facts.paper else ""
    console.print(f"{facts.title}{described}; weights: {facts.weights}", style="dim")
    table = Table("", *(METRICS[name] for name in SHOWN), "token AUROC", "span F1", show_lines=True)
    for generator, metrics in found.responses.items():
        line = found.lines[generator]
        parts = (line.tokens["auroc"], line.spans["f1"]) if line is not None else ()
        cells = [stacked(metrics[name]) for name in SHOWN] + [stacked(one) for one in parts]
        table.add_row(one_line(generator, LONGEST_NAME), *cells)
    console.print(table)
    if found.answered < 1:
        console.print(f"{1 - found.answered:.1%} of the responses had no usable answer")
    console.print(f"chosen in the folds: {'; '.join(dict.fromkeys(found.chosen))}", style="dim")


def _write(examples: list[Example], scores: list[Score], out: Path | None) -> None:
    """To a file, or to the terminal."""
    from dataclasses import asdict

    from lrp4rag.util.files import write_atomically

    lines = [
        json.dumps({"id": example.id, **asdict(score)}) + "\n"
        for example, score in zip(examples, scores, strict=True)
    ]
    if out is None:
        say("".join(lines), end=False)
    else:
        write_atomically(out, "".join(lines))
        say(f"wrote {len(lines)} scores to {out}")
