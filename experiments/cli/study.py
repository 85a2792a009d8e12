"""`python -m experiments study`: what token detectors are worth, from a store."""

from __future__ import annotations

import os
from pathlib import Path

import click

from experiments.cli.options import cache_option, sections_option, store_option
from lrp4rag.cli.command import command
from lrp4rag.cli.options import BOOTSTRAP, FOLD_WORKERS, GENERATOR, PATH, shown_command
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.terminal import say

SECTIONS = ("ways", "learners", "curve", "transfer")
COSTS = ("R_response", "fast", "segments", "full")
KEEPS_STATES = "saplma-linear"
"""The system whose cost is that of one plain pass that keeps hidden states."""
MOST_FORWARDS = 1e6


@command()
@store_option("Store with signals and states (lrp4rag extract --parts relevance,signals,states).")
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@GENERATOR
@sections_option(SECTIONS, "Only this beside the ways; repeat it for several.")
@click.option(
    "--costs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What python -m benchmarks.verdict --out wrote: adds accuracy against cost.",
)
@click.option(
    "--systems",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What benchmarks.systems --out wrote (experiments/results/compare/costs.json): adds what a "
    "pass that keeps hidden states costs.",
)
@BOOTSTRAP
@FOLD_WORKERS
@cache_option("Folder that keeps features and finished folds.  [default: STORE/study]")
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

    Safe to interrupt: running it again resumes after the last finished fold.
    """
    from experiments.results_page import claim_page
    from experiments.study import study as run
    from experiments.study.page import KIND, write_page
    from experiments.systems.comparison.compare import read_costs
    from lrp4rag.training.rows import Rows

    check_folder(out)
    forwards = {} if costs is None else _forwards(costs)
    if systems is not None:
        measured = read_costs(systems).systems
        if KEEPS_STATES not in measured:
            raise InputError("it has no cost of a pass that keeps states", path=systems, field=KEEPS_STATES)
        forwards["state"] = measured[KEEPS_STATES].forwards
    rows = Rows.open(store).select_generators(generator)
    claim_page(out, KIND)
    found = run(
        rows,
        cache or store / "study",
        jobs=workers or os.cpu_count() or 1,
        resamples=resamples,
        sections=sections or SECTIONS,
    )
    command = shown_command()
    files = write_page(found, rows, out, command, resamples=resamples, costs=forwards)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")


def _forwards(path: Path) -> dict[str, float]:
    """Plain forwards of each way, by the clock; raises `InputError` for a file that does not have them."""
    measured = read_record(path, "what python -m benchmarks.verdict wrote")
    found = {}
    for way in COSTS:
        value = measured.get(f"{way}_over_forward")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < MOST_FORWARDS:
            why = "not what python -m benchmarks.verdict wrote: no number of plain forwards"
            raise InputError(why, path=path, field=f"{way}_over_forward")
        found[way] = float(value)
    return found
