"""`lrp4rag train`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.engine import EngineChoice
from lrp4rag.cli.extract import extraction_of
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import (
    BOOTSTRAP,
    CONFIG,
    GENERATOR,
    LIMIT,
    PATH,
    STORE_HELP,
    ReaderChoice,
    check_written,
    count,
    gathered,
    hidden,
    reader_options,
    shown_command,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say

if TYPE_CHECKING:
    from lrp4rag.training.corpus import Corpus
    from lrp4rag.training.train import Recipe

TOKENS, TEXT = "tokens", "text"
CLASSIFIERS = (TOKENS, TEXT, "threshold", "svm", "mlp", "forest", "lstm")
VECTORS = ("total", "response", "prompt", "segments", "matrix", "matrix_t")
MODES = ("interpolate", "pad_last", "zeros")
BUNDLED_MORE_EVERY, BUNDLED_PAIRS_EVERY = 2, 12
"""What the bundled detector used of the set 'everyday', and of minimal pairs."""
one_in = partial(click.option, type=click.IntRange(1), metavar="N")


@dataclass(frozen=True)
class Settings:
    """The data of a training, the kind of detector, and how it is measured."""

    generator: tuple[str, ...]
    limit: int | None
    classifier: str | None
    block: tuple[str, ...]
    more: tuple[Path, ...]
    more_every: int | None
    no_pairs: bool
    pairs_every: int | None
    vector: str | None
    length: int | None
    resampling: str | None
    resamples: int

    def recipe(self, data: str | None, store: Path | None) -> Recipe:
        """Return the recipe; raises `InputError` for settings that do not go together, and for a classifier
        of vectors without `data`."""
        from lrp4rag.classifiers import Features
        from lrp4rag.classifiers.vectors import VECTORS
        from lrp4rag.features.blocks import PLAIN_BLOCKS, blocks_named
        from lrp4rag.features.parts import MATRIX
        from lrp4rag.training.train import TextRecipe, TokenRecipe, VectorRecipe

        described = any(option is not None for option in (self.vector, self.length, self.resampling))
        classifier = self.classifier or ("svm" if described else TOKENS)
        if classifier == TOKENS:
            if described:
                raise InputError("vector, length and resampling are not for the classifier 'tokens'")
            return TokenRecipe(blocks_named(self.block or PLAIN_BLOCKS))
        if classifier == TEXT:
            if described or self.block:
                raise InputError("block, vector, length and resampling are not for the classifier 'text'")
            return TextRecipe(store)
        if self.block:
            raise InputError(f"block is for the classifier 'tokens', not '{classifier}'")
        if self.more or self.no_pairs:
            raise InputError(
                f"more and no-pairs are for the classifiers 'tokens' and 'text', not '{classifier}'"
            )
        if data is None:
            raise InputError(
                f"name DATA: without it the package's set 'everyday' is learned from, which teaches the "
                f"classifiers 'tokens' and 'text', not '{classifier}'"
            )
        vector, mode = self.vector or "total", self.resampling or MODES[0]
        if mode != MODES[0] and MATRIX in VECTORS[vector].needs:
            raise InputError(
                f"R* is stored interpolated, so resampling '{mode}' is not possible for {vector}"
            )
        length = VECTORS[vector].length if self.length is None else self.length
        return VectorRecipe(Features(vector, length, mode=mode), classifier)  # type: ignore[arg-type]

    def corpus(self, data: str | None, *, pairs: bool) -> Corpus:
        """Load the labelled examples of `data` (None: of the set everyday) and of the further files, with
        `pairs` made of the first."""
        from lrp4rag.training.corpus import Corpus
        from lrp4rag.training.sets import EVERYDAY, load_set, set_path
        from lrp4rag.training.train import labelled

        if len({path.stem for path in self.more}) < len(self.more):
            raise InputError("two files of --more have one name, by which results are shown; rename one")
        bundled = data is None or set_path(data) == EVERYDAY
        data = str(EVERYDAY if data is None else set_path(data))
        if data in {str(set_path(path)) for path in self.more}:
            raise InputError("DATA is learned from already; leave it out of --more", path=data)
        more_every = self.more_every or (BUNDLED_MORE_EVERY if bundled else 1)
        return Corpus.of(
            labelled(load_data(data, self.generator, self.limit), data),
            {path.stem: labelled(load_set(path), path) for path in self.more},
            every=more_every if bundled else 1,
            more_every=more_every,
            pairs=pairs and not self.no_pairs,
            pairs_every=self.pairs_every or (BUNDLED_PAIRS_EVERY if bundled else 1),
        )


@command(resumes=True)
@click.argument("data", required=False, metavar="[DATA]")
@click.option("--out", required=True, type=PATH, help="Folder for the detector.")
@click.option(
    "--store",
    type=PATH,
    help=f"{STORE_HELP}  [default: OUT-store; none for the classifier 'text']",
)
@gathered(
    Settings,
    "settings",
    click.option(
        "--classifier",
        type=click.Choice(CLASSIFIERS),
        help="Networks that judge single tokens of a plain pass; alarms that compare text, without a "
        "reader; or a classifier of one relevance vector, which the LSTM reads step by step.  [default: "
        "tokens, or svm if a vector is described]",
    ),
    click.option(
        "--more",
        multiple=True,
        type=PATH,
        metavar="FILE",
        help="Also learn from the labelled examples of FILE, which are judged apart; 'everyday' is a set of "
        "550 questions that comes with the package, and 'everyday-evidence' their faithful answers to edited "
        "passages. May be repeated.",
    ),
    hidden(
        GENERATOR,
        LIMIT,
        click.option("--block", multiple=True, help="Blocks of features (docs/features.md)."),
        one_in(
            "--more-every",
            help="Use about one in so many hallucinated responses of --more, and of the set 'everyday'.  "
            "[default: 1; with that set as DATA 2]",
        ),
        click.option("--no-pairs", is_flag=True, help="Make no minimal pairs of DATA."),
        one_in(
            "--pairs-every",
            help="Make them of about one source in so many.  [default: 1; with that set as DATA 12]",
        ),
        click.option("--vector", type=click.Choice(VECTORS), help="The vector of such a classifier."),
        click.option("--length", type=int, help="Length that the vector is resampled to."),
        click.option("--resampling", type=click.Choice(MODES), help="How shorter vectors are stretched."),
        BOOTSTRAP,
    ),
)
@CONFIG
@count(
    "--workers",
    help="Processes of the extraction (they share --max-memory) and of the cross-validation.  [default: one "
    "for the extraction, one per core for the cross-validation]",
)
@reader_options(shown=("max-memory",))
@hidden(
    click.option("--json", "as_json", is_flag=True, help="Print the card as JSON."),
    click.option(
        "--scores",
        type=PATH,
        help="Also write the cross-validated probability of each response, as JSON lines.",
    ),
)
def train(
    data: str | None,
    out: Path,
    store: Path | None,
    settings: Settings,
    workers: int | None,
    reader: ReaderChoice,
    as_json: bool,
    scores: Path | None,
) -> None:
    """Train a detector for a reader, on labelled DATA: a JSONL file with "labels", or a RAGTruth directory.

    Without DATA it learns from the set 'everyday' of the package, as much of it as the bundled detector
    did; your own labels are better. Features are extracted into the store first; then the detector is
    cross-validated with folds grouped by source, fitted on all rows, and written with its card; --detector
    takes the folder. Safe to interrupt: running it again resumes after the last response that was read, or
    the last finished fold. Use at least 200 labelled responses, some of them with hallucinated spans: fewer
    have not been tried, and more are better.

    \b
    Examples:
      lrp4rag train --reader MODEL --out mine/
      lrp4rag train labelled.jsonl --store store/ --out mine/
      lrp4rag train labels.jsonl --more everyday --store store/ --out mine/ --config train.yaml
    """
    from lrp4rag.classifiers.folder import check_target
    from lrp4rag.features.parts import READING
    from lrp4rag.report.cards import print_card
    from lrp4rag.training.train import train as fit

    check_target(out)  # before the expensive part
    if scores is not None:
        check_written(scores)
    recipe = settings.recipe(data, store)
    if recipe.needs:
        reader.require_reader()
    if store is None and recipe.needs:
        store = out.with_name(f"{out.name}-store")
        say(f"what is extracted is kept in {store}", err=True)
    if store is not None and (_within(out, store) or _within(store, out)):
        raise InputError("--out and --store are two folders, and neither is in the other", path=out)
    corpus = settings.corpus(data, pairs=READING in recipe.needs or not recipe.needs)
    recipe.require_enough(corpus.examples)
    extraction = None
    if store is not None and recipe.needs:
        engine = EngineChoice(workers=workers)
        extraction = extraction_of(corpus.examples, store, reader, recipe.needs, engine)
    detector = fit(
        corpus,
        extraction,
        recipe,
        command=shown_command(),
        resamples=settings.resamples,
        jobs=workers or os.cpu_count() or 1,
        scores=scores,
    )
    folder = detector.save(out)
    print_card(detector.card, as_json=as_json)
    say(f"wrote {folder}", err=True)


def _within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
