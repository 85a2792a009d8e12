"""`python -m experiments compare`, and the options that say which models baselines use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from experiments.cli.options import cache_option
from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.options import BOOTSTRAP, FOLD_WORKERS, PATH, shown_command, together
from lrp4rag.util.files import check_folder
from lrp4rag.util.terminal import say

STORE_HELP = "Store of labelled responses (lrp4rag extract --parts reading,relevance,signals,states)."
CACHE = cache_option(
    "Folder that keeps measurements, trained weights and finished folds.  [default: STORE/baselines]"
)


def model_choices(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which models baselines use."""
    return asked_models(
        together(
            advanced(
                "--entailment",
                metavar="MODEL",
                help="Cross-encoder of entailment: hhem, minicheck, a hub id "
                "or a folder.  [default: trained in the folds]",
            ),
            advanced(
                "--token-classifier",
                metavar="MODEL",
                help="LettuceDetect's model: a hub id or a folder.  [default: trained in the folds]",
            ),
        )(function)
    )


def asked_models(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which model is asked, and where all run."""
    return together(
        click.option(
            "--reader",
            metavar="MODEL",
            help="The model that judges, samples and is fine-tuned: a hub id or a folder.  "
            "[default: the store's, if that is smollm2-135m]",
        ),
        advanced(
            "--chat-template/--no-chat-template",
            default=None,
            help="Wrap what it is asked in its chat template, or not.  [default: as the store's]",
        ),
        click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]"),
        advanced("--dtype", default="auto", show_default=True, help="The reader's precision."),
        advanced(
            "--judge",
            metavar="MODEL",
            help="Put prompts to this model instead of the reader: its name "
            "at an OpenAI-compatible endpoint (the key is read from OPENAI_API_KEY).",
        ),
        advanced("--judge-url", metavar="URL", help="The endpoint.  [default: OpenAI's]"),
    )(function)


@command()
@click.option(
    "--store",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help=STORE_HELP,
)
@click.option("--out", required=True, type=PATH, help="Folder for the page.")
@click.option(
    "--baselines",
    "names",
    default="all",
    metavar="NAMES",
    help="Which, separated by commas (python -m experiments baseline lists them).",
)
@click.option(
    "--sources",
    default=200,
    type=click.IntRange(10),
    help="Sources of the sample that slow systems are judged on.",
)
@click.option(
    "--costs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What python -m benchmarks.systems --out wrote: adds quality against cost.",
)
@advanced(
    "--stack/--no-stack",
    default=True,
    help="Combine our detector with the best text-only system.",
)
@advanced(
    "--scores",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Scores of another comparison (experiments/results/compare/scores): where rows and settings are the "
    "same they are read, as those in OUT/scores always are, and the system is not run.",
)
@advanced(
    "--anew",
    default="",
    metavar="NAMES",
    help="Baselines to run again although their folds and scores are cached, separated by commas.",
)
@model_choices
@BOOTSTRAP
@FOLD_WORKERS
@CACHE
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
    workers: int | None,
    cache: Path | None,
    **models: Any,
) -> None:
    """Cross-validate our detectors and every baseline on the same rows of a STORE, and write a page.

    Folds are grouped by source, and every choice is made inside them. Slow systems are judged on a sample of
    llama-2-7b-chat's and llama-2-13b-chat's responses. Safe to interrupt: running it again resumes
    after what was measured, trained or judged last. Each system's scores are in OUT/scores.
    """
    from experiments.systems.comparison.compare import Plan, comparison, read_costs, run_systems
    from experiments.systems.comparison.folds import GENERATORS
    from experiments.systems.comparison.page import write_page
    from experiments.systems.registry import baselines_named
    from experiments.systems.resources import Choices
    from lrp4rag.training.rows import Rows

    check_folder(out)
    measured = None if costs is None else read_costs(costs)
    rows = Rows.open(store)
    plan = Plan(
        baselines=baselines_named(_names(names)),
        sources=sources,
        generators=GENERATORS,
        choices=Choices.beside(rows.store, **models),
        jobs=workers or os.cpu_count() or 1,
        resamples=resamples,
        stack=stack,
        anew=frozenset(baselines_named(_names(anew))),
    )
    stored = run_systems(rows, cache or store / "baselines", store / "study", out / "scores", plan, scores)
    found = comparison(rows, {name: one.scores for name, one in stored.items()}, plan)
    command = shown_command()
    versions = {name: one.versions for name, one in stored.items()}
    files = write_page(found, rows, out, command, plan, measured, versions)
    say(f"wrote {files[0]} and {len(files) - 1} files beside it")


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]
