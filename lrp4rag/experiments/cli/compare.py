"""`lrp4rag experiments compare`, and the options that say which models baselines use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lrp4rag.cli.options import JOBS, RESAMPLES, shown_command, together
from lrp4rag.files import check_folder
from lrp4rag.terminal import say

STORE_HELP = "Store of labelled responses (lrp4rag extract --parts relevance,signals,states)."
WORK = click.option(
    "--work",
    type=click.Path(path_type=Path),
    help="Folder of measurements, trained weights and finished folds: a killed run goes on.  "
    "[default: STORE/baselines]",
)


def model_choices(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which models baselines use."""
    return together(
        [
            click.option(
                "--reader",
                metavar="MODEL",
                help="The model that judges, samples and is fine-tuned: a hub id or a folder.  "
                "[default: the store's, if that is smollm2-135m]",
            ),
            click.option(
                "--chat-template/--no-chat-template",
                default=None,
                help="Wrap what it is asked in its chat template, or not.  [default: as the store's]",
            ),
            click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]"),
            click.option("--dtype", default="auto", show_default=True, help="The reader's precision."),
            click.option(
                "--judge",
                metavar="MODEL",
                help="Put prompts to this model instead of the reader: its name "
                "at an OpenAI-compatible endpoint (the key is read from OPENAI_API_KEY).",
            ),
            click.option("--judge-url", metavar="URL", help="The endpoint.  [default: OpenAI's]"),
            click.option(
                "--entailment",
                metavar="MODEL",
                help="Cross-encoder of entailment: hhem, minicheck, a hub id "
                "or a folder.  [default: trained in the folds]",
            ),
            click.option(
                "--token-classifier",
                metavar="MODEL",
                help="LettuceDetect's model: a hub id or a folder.  [default: trained in the folds]",
            ),
        ]
    )(function)


@click.command(short_help="Compare every system with our detectors, from a store.")
@click.option(
    "--store",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help=STORE_HELP,
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the page.")
@click.option(
    "--baselines",
    "names",
    default="all",
    show_default=True,
    metavar="NAMES",
    help="Which, separated by commas (lrp4rag experiments baseline lists them).",
)
@click.option(
    "--sources",
    default=200,
    show_default=True,
    type=click.IntRange(10),
    help="Sources of the sample that slow systems are judged on.",
)
@click.option(
    "--costs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What python -m benchmarks.systems --out wrote: adds quality against cost.",
)
@click.option(
    "--stack/--no-stack",
    default=True,
    show_default=True,
    help="Combine our detector with the best text-only system.",
)
@click.option(
    "--scores",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Scores of another comparison (docs/results/compare/scores): where rows and settings are the same "
    "they are read, as those in OUT/scores always are, and the system is not run.",
)
@click.option(
    "--anew",
    default="",
    metavar="NAMES",
    help="Baselines to run whatever is kept of their folds and scores, separated by commas.",
)
@model_choices
@RESAMPLES
@JOBS
@WORK
def compare(
    store: Path,
    out: Path,
    names: str,
    sources: int,
    costs: Path | None,
    stack: bool,
    scores: Path | None,
    anew: str,
    resamples: int,
    jobs: int | None,
    work: Path | None,
    **models: Any,
) -> None:
    """Cross-validate our detectors and every baseline on the same rows of a STORE, and write a page.

    Folds are grouped by source, and every choice is made inside them. Slow systems are judged on a sample of
    llama-2-7b-chat's and llama-2-13b-chat's responses. Kill it and run it again at any time: what was
    measured, trained or judged is kept, and each system's scores are in OUT/scores.
    """
    from lrp4rag.experiments.systems.comparison.compare import Plan, comparison, judged
    from lrp4rag.experiments.systems.comparison.costs import read_costs
    from lrp4rag.experiments.systems.comparison.page import write_page
    from lrp4rag.experiments.systems.comparison.sample import GENERATORS
    from lrp4rag.experiments.systems.kit import Choices
    from lrp4rag.experiments.systems.registry import baselines_named
    from lrp4rag.training.rows import Rows

    check_folder(out)
    measured = None if costs is None else read_costs(costs)
    rows = Rows.open(store)
    plan = Plan(
        baselines=baselines_named(_names(names)),
        sources=sources,
        generators=GENERATORS,
        choices=Choices.beside(rows.store, **models),
        jobs=jobs or os.cpu_count() or 1,
        resamples=resamples,
        stack=stack,
        anew=frozenset(baselines_named(_names(anew))),
    )
    kept = judged(rows, work or store / "baselines", store / "study", out / "scores", plan, scores)
    found = comparison(rows, {name: one.judged for name, one in kept.items()}, plan)
    command = shown_command(click.get_current_context().find_root().obj)
    versions = {name: one.versions for name, one in kept.items()}
    files = write_page(found, rows, out, command, plan, measured, versions)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]
