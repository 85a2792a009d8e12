"""`lrp4rag experiments baseline`: one of the systems that people would compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.inputs import input_files
from lrp4rag.cli.options import RESAMPLES
from lrp4rag.errors import InputError
from lrp4rag.experiments.cli.compare import STORE_HELP, WORK, model_choices
from lrp4rag.files import check_output
from lrp4rag.terminal import say

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.experiments.systems.baseline import Score


@click.command(short_help="Run one of the systems that people would compare with.")
@click.argument("name", required=False, metavar="[NAME]")
@click.argument("data", required=False, metavar="[DATA]")
@click.option("--store", type=click.Path(exists=True, file_okay=False, path_type=Path), help=STORE_HELP)
@click.option(
    "--sources",
    default=200,
    show_default=True,
    type=click.IntRange(10),
    help="Sources of the sample that a slow system learns from, and is judged on.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write scores here, a line of JSON a response.")
@click.option("--anew", is_flag=True, help="Run folds again, whatever is kept of them.")
@model_choices
@RESAMPLES
@WORK
def baseline(
    name: str | None,
    data: str | None,
    store: Path | None,
    sources: int,
    out: Path | None,
    anew: bool,
    resamples: int,
    work: Path | None,
    **models: Any,
) -> None:
    """List the systems; cross-validate NAME on a STORE of labelled responses; or let NAME learn from the
    STORE and judge the responses of DATA.

    \b
    lrp4rag experiments baseline
    lrp4rag experiments baseline lookback-lens --store STORE
    lrp4rag experiments baseline lettucedetect DATA.jsonl --store STORE --out scores.jsonl
    """
    if name is None:
        _list()
        return
    from lrp4rag.experiments.systems.comparison.sample import sample_of
    from lrp4rag.experiments.systems.kit import Choices, Kit
    from lrp4rag.experiments.systems.registry import baseline_named
    from lrp4rag.training.rows import Rows

    chosen = baseline_named(name)
    if store is None:
        raise InputError("name the labelled responses to learn from: --store STORE (see lrp4rag extract)")
    if out is not None:
        check_output(out, [] if data is None else input_files(data))
    rows = Rows.open(store)
    sample = sample_of(rows, sources)
    kit = Kit(work or store / "baselines", Choices.beside(rows.store, **models))
    if data is not None:
        from lrp4rag.data import load_examples
        from lrp4rag.experiments.systems.comparison.single import judge_others

        examples = load_examples(data)
        scores = judge_others(chosen, rows, sample, examples, kit)
        _write(examples, scores, out)
        return
    from lrp4rag.experiments.systems.comparison.single import cross_validate

    found = cross_validate(name, rows, sample, kit, resamples, anew=anew)
    if out is not None:
        _write(list(found.examples), list(found.scores), out)
    from lrp4rag.experiments.systems.comparison.printed import print_baseline

    print_baseline(found, kit.choices.facts_of(chosen))


def _list() -> None:
    from lrp4rag.experiments.systems.comparison.printed import print_baselines
    from lrp4rag.experiments.systems.registry import BASELINES

    print_baselines({name: one.facts for name, one in BASELINES.items()})


def _write(examples: list[Example], scores: list[Score], out: Path | None) -> None:
    """To a file, or to the terminal."""
    from dataclasses import asdict

    from lrp4rag.files import write_atomically

    lines = [
        json.dumps({"id": example.id, **asdict(score)}) + "\n"
        for example, score in zip(examples, scores, strict=True)
    ]
    if out is None:
        say("".join(lines), end=False)
    else:
        write_atomically(out, "".join(lines))
        say(f"wrote {len(lines)} scores to {out}")
