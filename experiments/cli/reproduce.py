"""`python -m experiments reproduce`: the paper's evaluation from finished stores."""

from __future__ import annotations

import os
from pathlib import Path

import click

from experiments.cli.options import cache_option, sections_option, store_option
from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.options import BOOTSTRAP, FOLD_WORKERS, GENERATOR, PATH, shown_command
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say

SECTIONS = (
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
FEWEST = 10
"""Sources of a slow baseline."""
PROTOCOLS = {"honest": ("honest",), "paper": ("paper",), "both": ("honest", "paper")}


@command()
@store_option("Store that lrp4rag extract made of labelled responses; the data are not needed again.")
@click.option(
    "--variant",
    multiple=True,
    metavar="NAME=FOLDER",
    help="Store of the same responses made another way (composite, prompt); repeat it for several.",
)
@click.option("--out", required=True, type=PATH, help="Folder for the results.")
@GENERATOR
@click.option(
    "--protocol",
    default="both",
    type=click.Choice(list(PROTOCOLS)),
    help="Folds grouped by source with everything chosen inside them, or the paper's own, or both.",
)
@sections_option(SECTIONS, "Compute only this; repeat it for several.")
@click.option(
    "--baseline",
    multiple=True,
    metavar="NAME[=SOURCES]",
    help="Run this one of Table 2's baselines too (the command baseline lists them), a slow one with "
    "the responses to so many sources; repeat it for several. They take long.",
)
@advanced(
    "--sources",
    default=200,
    show_default=True,
    type=click.IntRange(FEWEST),
    help="Sources whose responses slow baselines learn from and judge that name no number of their own.",
)
@advanced(
    "--reader",
    metavar="MODEL",
    help="The model that baselines ask and train: a hub id or a folder.  [default: the store's, if that is "
    "smollm2-135m]",
)
@click.option(
    "--repeats",
    default=1,
    type=click.IntRange(1),
    help="Cross-validations with other folds, averaged; the time grows in proportion.",
)
@advanced(
    "--beside",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of other results of this command, which have a part of what is left out here: the page "
    "links to them. Repeat it for several.",
)
@BOOTSTRAP
@click.option(
    "--length-step",
    default=10,
    type=click.IntRange(1, 250),
    help="Step of the resampling lengths, up to 500.",
)
@click.option(
    "--length-classifier",
    multiple=True,
    type=click.Choice(["svm", "forest", "mlp"]),
    help="What is swept over the lengths; repeat it for several.  [default: svm]",
)
@FOLD_WORKERS
@cache_option("Folder that keeps finished pieces.  [default: STORE/cache]")
def reproduce(
    store: Path,
    variant: tuple[str, ...],
    out: Path,
    generator: tuple[str, ...],
    protocol: str,
    sections: tuple[str, ...],
    baseline: tuple[str, ...],
    sources: int,
    reader: str | None,
    repeats: int,
    beside: tuple[Path, ...],
    resamples: int,
    length_step: int,
    length_classifier: tuple[str, ...],
    workers: int | None,
    cache: Path | None,
) -> None:
    """Make the tables and figures of LRP4RAG (arXiv 2408.15533) from a STORE, and a page that shows them.

    Safe to interrupt: running it again resumes after the last finished piece. What the store lacks is
    left out, and the page says what would add it.
    """
    from experiments.paper import Context, Settings
    from experiments.paper import reproduce as run
    from experiments.paper.run import sections_named
    from experiments.paper.settings import LONGEST

    variants = _variants(variant)
    settings = Settings(
        protocols=PROTOCOLS[protocol],
        repeats=repeats,
        resamples=resamples,
        sweep=tuple(range(max(length_step, 2), LONGEST + 1, length_step)),
        sweep_classifiers=length_classifier or ("svm",),
    )
    chosen = sections_named(sections, settings.protocols)
    context = Context.open(
        store,
        variants=variants,
        generators=generator,
        cache=cache or store / "cache",
        settings=settings,
        jobs=workers or os.cpu_count() or 1,
        baselines=_baselines(baseline, sources),
        reader=reader,
    )
    made = run(context, out, chosen, shown_command(), beside)
    say(f"wrote {made.page} and {len(made.files) - 1} files beside it")


def _baselines(given: tuple[str, ...], usual: int) -> dict[str, int]:
    """The sources of each baseline, by its name."""
    from experiments.systems.registry import baseline_named

    found: dict[str, int] = {}
    for each in given:
        name, _, own = each.partition("=")
        if not baseline_named(name).facts.slow and own:
            raise InputError(f"{name} has all responses, and takes no number of sources", field="--baseline")
        if own and not (own.isdecimal() and own.isascii() and int(own[:9]) >= FEWEST):
            raise InputError(f"--baseline takes NAME=SOURCES, {FEWEST} or more, got '{each}'")
        found[name] = int(own[:9]) if own else usual
    return found


def _variants(given: tuple[str, ...]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for each in given:
        name, _, folder = each.partition("=")
        if not (name and folder) or not Path(folder).is_dir():
            raise InputError(f"--variant takes NAME=FOLDER with a store's folder, got '{each}'")
        if name in found:
            raise InputError(f"the variant '{name}' is given twice")
        found[name] = Path(folder)
    return found
