"""`lrp4rag train` and `evaluate`: commands over labelled data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.engine import EngineChoice
from lrp4rag.cli.extract import extraction_of
from lrp4rag.cli.inputs import load_data
from lrp4rag.cli.options import (
    BOOTSTRAP,
    GENERATOR,
    LIMIT,
    PATH,
    STORE_HELP,
    ReaderChoice,
    blocks_option,
    count,
    reader_options,
    shown_command,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say

if TYPE_CHECKING:
    from lrp4rag.classifiers import Features
    from lrp4rag.training.train import TokenRecipe, VectorRecipe

CLASSIFIERS = ("tokens", "threshold", "svm", "mlp", "forest", "lstm")
one_in = partial(advanced, type=click.IntRange(min=1), default=1, show_default=True)
VECTORS = ("total", "response", "prompt", "segments", "matrix", "matrix_t")


@command()
@click.argument("data", metavar="DATA")
@click.option("--out", required=True, type=PATH, help="Folder for the detector.")
@click.option("--store", required=True, type=PATH, help=STORE_HELP)
@GENERATOR
@LIMIT
@click.option(
    "--classifier",
    type=click.Choice(CLASSIFIERS),
    help="Networks that judge single tokens, or a classifier of one vector (--vector), which the LSTM reads "
    "step by step.  [default: tokens, or svm if a vector is described]",
)
@blocks_option("plain, around")
@click.option(
    "--more",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Also learn from the labelled examples of FILE, which are judged apart; 'everyday' is a set of 550 "
    "questions that comes with the package. May be repeated.",
)
@one_in(
    "--more-every",
    help="Of each FILE of --more, use all faithful responses and about one in so many of the others.",
)
@click.option(
    "--no-pairs",
    is_flag=True,
    help="Do not make minimal pairs and other shapes of input of DATA (blocks of plain passes).",
)
@one_in(
    "--pairs-every",
    help="Make them of about one source in so many: all take long to read.",
)
@click.option(
    "--compare-with",
    metavar="DETECTOR",
    help="Also measure a former detector ('default', or a folder) on DATA, beside this one on the rows that "
    "its folds hold out: did it help to learn from DATA? Prompts are framed as the former's.",
)
@advanced(
    "--compare-blocks",
    is_flag=True,
    help="Also measure what single blocks of plain passes add to hidden states, for the card.",
)
@advanced(
    "--leave-kinds-out",
    is_flag=True,
    help="Also measure how minimal pairs of each kind are ranked by models that did not learn from it.",
)
@advanced(
    "--vector",
    type=click.Choice(VECTORS),
    help="The vector of such a classifier. Per response token: the relevance of the whole prompt, its mean "
    "over prompt tokens (response: R_response), or its split among passages, question and template "
    "(segments). Per prompt token: R_prompt (prompt). R* in 64 x 16 bins: along the response (matrix) or the "
    "prompt (matrix_t).  [default: total]",
)
@advanced(
    "--length",
    type=int,
    help="Length that the vector is resampled to.  [default: 220, or the number of bins of R*]",
)
@advanced(
    "--resampling",
    type=click.Choice(["interpolate", "pad_last", "zeros"]),
    help="How shorter vectors are stretched to that length.  [default: interpolate]",
)
@BOOTSTRAP
@count(
    "--workers",
    help="Processes of the extraction (they share --max-memory) and of the cross-validation.  [default: one "
    "for the extraction, one per core for the cross-validation]",
)
@reader_options()
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
def train(
    data: str,
    out: Path,
    store: Path,
    generator: tuple[str, ...],
    limit: int | None,
    classifier: str | None,
    blocks: tuple[str, ...],
    more: tuple[Path, ...],
    more_every: int,
    no_pairs: bool,
    pairs_every: int,
    compare_with: str | None,
    compare_blocks: bool,
    leave_kinds_out: bool,
    vector: str | None,
    length: int | None,
    resampling: str | None,
    resamples: int,
    workers: int | None,
    reader: ReaderChoice,
    as_json: bool,
) -> None:
    """Train a detector on labelled DATA: a JSONL file with "labels", or a RAGTruth directory.

    Features are extracted into the store first; then the detector is cross-validated with folds grouped
    by source, fitted on all rows, and written with its card. Safe to interrupt: running it again resumes
    after the last finished fold. Use at least 200 labelled responses, some of them with hallucinated
    spans: fewer have not been tried, and more are better (experiments/results/detector).

    \b
    Examples:
      lrp4rag train labelled.jsonl --store store/ --out mine/
      lrp4rag train labels.jsonl --more everyday --compare-with default --store store/ --out mine/
    """
    from lrp4rag.classifiers import FittedDetector
    from lrp4rag.classifiers.folder import BUNDLED, check_target
    from lrp4rag.features.parts import READING
    from lrp4rag.report.cards import print_card
    from lrp4rag.training.corpus import ANNOTATED, Corpus
    from lrp4rag.training.former_evidence import Former
    from lrp4rag.training.sets import set_path
    from lrp4rag.training.train import TokenRecipe, labelled, require_enough
    from lrp4rag.training.train import train as fit

    check_target(out)  # before the expensive part
    one, other = out.resolve(), store.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise InputError("--out and --store are two folders, and neither is in the other", path=out)
    if compare_with not in (None, BUNDLED) and one == Path(str(compare_with)).resolve():
        raise InputError("--compare-with names the detector in this folder, which would be lost", path=out)
    reads = _reads(classifier, blocks, vector, length, resampling)
    plain = reads.needs == (READING,)
    if compare_blocks or leave_kinds_out:
        if not (plain and isinstance(reads, TokenRecipe)):
            raise InputError("--compare-blocks and --leave-kinds-out are for blocks of plain passes")
        reads = replace(reads, compares=compare_blocks, leaves_out=leave_kinds_out)
    if (more or no_pairs) and not plain:
        raise InputError("--more and --no-pairs are for blocks of plain passes")
    if len({path.stem for path in more}) < len(more):
        raise InputError("two files of --more have one name, by which results are shown; rename one")
    corpus = Corpus.of(
        labelled(load_data(data, generator, limit), data),
        {path.stem: labelled(load_data(str(set_path(path)), ()), path) for path in more},
        more_every=more_every,
        pairs=plain and not no_pairs,
        pairs_every=pairs_every,
    )
    require_enough(corpus, reads)  # before the expensive part
    former, needs = None, reads.needs
    if compare_with is not None:
        former = Former(Path(compare_with).name, FittedDetector.load(compare_with))
        former.unseen([corpus.examples[k] for k in corpus.numbers(ANNOTATED)])  # before the expensive part
        needs = (*needs, *(part for part in former.detector.needs if part not in needs))
    beside = None if former is None else former.detector
    detector = fit(
        corpus,
        extraction_of(corpus.examples, store, reader, needs, EngineChoice(workers=workers), beside),
        reads=reads,
        former=former,
        command=shown_command(),
        resamples=resamples,
        jobs=workers or os.cpu_count() or 1,
    )
    folder = detector.save(out)
    print_card(detector.card, as_json=as_json)
    say(f"wrote {folder}", err=True)


def _reads(
    classifier: str | None,
    blocks: Sequence[str],
    vector: str | None,
    length: int | None,
    resampling: str | None,
) -> VectorRecipe | TokenRecipe:
    from lrp4rag.features.blocks import PLAIN_BLOCKS, blocks_named
    from lrp4rag.training.train import TokenRecipe, VectorRecipe

    described = any(option is not None for option in (vector, length, resampling))
    chosen = classifier or ("svm" if described else "tokens")
    if chosen == "tokens":
        if described:
            raise InputError("--vector, --length and --resampling are not for --classifier tokens")
        return TokenRecipe(blocks_named(blocks or PLAIN_BLOCKS))
    if blocks:
        raise InputError(f"--block is for --classifier tokens; '{chosen}' reads a --vector")
    return VectorRecipe(_features(vector or "total", length, resampling or "interpolate"), chosen)


def _features(vector: str, length: int | None, resampling: str) -> Features:
    from lrp4rag.classifiers import Features
    from lrp4rag.classifiers.features import VECTORS
    from lrp4rag.features.parts import MATRIX

    if resampling != "interpolate" and MATRIX in VECTORS[vector].needs:
        raise InputError(
            f"R* is stored interpolated, so --resampling {resampling} is not possible for {vector}"
        )
    length = VECTORS[vector].length if length is None else length
    return Features(vector, length, mode=resampling)  # type: ignore[arg-type]
