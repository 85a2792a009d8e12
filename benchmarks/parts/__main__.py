"""What does each part of the bundled detector add? It is cross-validated with one part left out at a time."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.cells import Cells
from benchmarks.command import SETTINGS, as_json, exit_codes
from benchmarks.harness import silence
from benchmarks.kinds.judging import EVERYDAY, RAGTRUTH, out_of_fold
from benchmarks.kinds.page import ALL, RATE
from benchmarks.pages import write_page
from benchmarks.parts.leaving_out import NAMES, NOTHING, is_complete, leave_out
from benchmarks.parts.measures import measure
from experiments.numbers import percent_interval
from experiments.pages import PAGE, RESULTS, claim
from experiments.records import rounded, to_json
from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.data import load_examples
from lrp4rag.example import first_sources
from lrp4rag.features.blocks import PLAIN_BLOCKS, blocks_named, reads_comparer
from lrp4rag.reader.comparer import bundled_comparer
from lrp4rag.report.numbers import percent, with_interval
from lrp4rag.report.templates import Markdown
from lrp4rag.training.comparing import entailments_of
from lrp4rag.training.corpus import ANNOTATED, Corpus
from lrp4rag.training.rows import Rows
from lrp4rag.training.sets import load_set
from lrp4rag.training.store import Store
from lrp4rag.training.token_folds import ALARM_VERSION, VERSION
from lrp4rag.training.train import CACHE, TokenRecipe, labelled
from lrp4rag.util.files import write_atomically
from lrp4rag.util.hashes import json_hash

KIND = "python -m benchmarks.parts"
SETS = {RAGTRUTH: ANNOTATED, EVERYDAY: EVERYDAY}
"""What is measured, and what the corpus calls it."""
MORE_EVERY, PAIRS_EVERY = 2, 12
"""As the bundled detector is trained (`make detector`)."""


def benchmark(
    ragtruth: Path,
    store: Path,
    out: Path,
    *,
    blocks: tuple[str, ...] = PLAIN_BLOCKS,
    cache: Path | None = None,
    limit: int | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Leave out each part and write the page; returns what results.json holds (benchmarks/README.md has the
    keys). Raises `InputError` where the store lacks what the training would read."""
    recipe, opened = TokenRecipe(blocks_named(blocks)), Store.existing(store)
    annotated, more = labelled(load_examples(ragtruth), ragtruth), load_set(Path(EVERYDAY))
    corpus = Corpus.of(
        annotated, {EVERYDAY: more}, more_every=MORE_EVERY, pairs=True, pairs_every=PAIRS_EVERY
    ).without(opened.failures())
    if limit is not None:
        # Pairs are made of all responses, which lend each other passages.
        sources = {
            name for some in (annotated, more) for name in first_sources((one.source for one in some), limit)
        }
        corpus = Corpus(tuple(row for row in corpus.rows if row.example.source in sources))
    recipe.require_enough(corpus.examples)
    claim(out, KIND, RESULTS)
    folder = opened.folder / CACHE if cache is None else cache
    folder.mkdir(parents=True, exist_ok=True)
    cells = read_parts(Rows(opened, corpus.examples), corpus, recipe, folder, workers)
    without = {name: np.array(cells[name]["probabilities"]) for name in cells[NAMES]["names"]}
    sets = {}
    for name, of_corpus in SETS.items():
        numbers = corpus.numbers(of_corpus)
        scores = list(
            out_of_fold(name, [corpus.examples[k] for k in numbers], without[NOTHING][numbers].tolist())
        )
        sets[name] = measure(scores, {part: values[numbers] for part, values in without.items()})
    words = [ragtruth.resolve().name, "--store", store.resolve().name, "--out", out.resolve().name]
    words += [word for name in blocks if blocks != PLAIN_BLOCKS for word in ("--block", name)]
    words += [] if limit is None else ["--limit", str(limit)]
    about = {
        "command": f"{KIND} {shlex.join(words)}",
        "blocks": list(blocks),
        "limit": limit,
        "rate": RATE,
        "versions": package_versions(),
        "learned": [name for name in without if cells[name]["learned"]],
        "minutes": {name: cells[name]["minutes"] for name in without},
    }
    return write(about, sets, out)


def read_parts(rows: Rows, corpus: Corpus, recipe: TokenRecipe, folder: Path, workers: int) -> Cells:
    """Return the probabilities of all rows by the part that is left out; what a killed run had is read."""
    entailed = reads_comparer(recipe.blocks.values())
    setup = {
        "rows": rows.digest,
        "sets": json_hash(corpus.names.tolist()),
        "blocks": {name: str(block) for name, block in recipe.blocks.items()},
        "versions": [FEATURE_VERSION, VERSION, ALARM_VERSION],
        "comparer": bundled_comparer().digest if entailed else "",
    }
    cells = Cells(folder / f"parts-{json_hash(setup)[:16]}.json", setup)
    if not is_complete(cells):
        if entailed:
            rows = replace(rows, entailments=entailments_of(rows.examples, folder, workers))
        leave_out(recipe.tokens(rows, corpus, folder), rows, recipe.blocks, cells, folder, workers)
    return cells


def write(about: dict[str, Any], sets: dict[str, Any], out: Path) -> dict[str, Any]:
    """README.md and results.json, whose content is returned."""
    record: dict[str, Any] = rounded(to_json({"kind": KIND, **about, "sets": sets}))
    write_atomically(out / RESULTS, json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_page(
        out / PAGE,
        Path(__file__).with_name("page.md.j2"),
        {
            "interval": with_interval,
            "share": percent_interval,
            "percent": percent,
            "adds": adds,
            "points": partial(adds, scale=100, digits=1),
        },
        **about,
        ragtruth=sets[RAGTRUTH],
        everyday=sets[EVERYDAY],
        nothing=NOTHING,
        every=ALL,
    )
    return record


def adds(interval: Interval, *, scale: float = 1, digits: int = 3) -> Markdown:
    """Write a difference, bold where its interval is without 0; nothing for none."""
    if interval.value is None or interval.low is None or interval.high is None:
        return Markdown("")
    value, low, high = (
        f"{scale * number:+.{digits}f}" for number in (interval.value, interval.low, interval.high)
    )
    text = f"{value} [{low}, {high}]"
    return Markdown(f"**{text}**" if interval.low > 0 or interval.high < 0 else text)


_FOLDER: Any = click.Path(path_type=Path, file_okay=False)


@click.command(context_settings=SETTINGS)
@click.argument("ragtruth", type=click.Path(path_type=Path, exists=True))
@click.option("--store", required=True, type=_FOLDER, help="That of `lrp4rag train`, with its readings.")
@click.option("--out", required=True, type=_FOLDER, help="Folder for README.md and results.json.")
@click.option("--block", "blocks", multiple=True, default=PLAIN_BLOCKS, help="Blocks of the detector.")
@click.option("--limit", type=click.IntRange(1), help="Questions of each set.  [default: all]")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--cache",
    type=_FOLDER,
    help="Folder of features and scores: a run that was killed resumes from there.  [default: the store's]",
)
@as_json
def main(as_json: bool, **options: Any) -> None:
    """What does each part of the bundled detector add, on RAGTRUTH and on the set everyday?

    It is cross-validated with one part left out at a time: a block of features of tokens, a group of features
    within one, an alarm, or the comparer. Features and scores of the training are read from its store. A part
    that is scored by itself is left out in a minute; where networks learn anew it takes some.
    """
    silence()
    with exit_codes():
        found = benchmark(**options)
    click.echo(json.dumps(found, indent=2) if as_json else f"Written to {options['out']}")


if __name__ == "__main__":
    main()
