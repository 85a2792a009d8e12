"""`lrp4rag corrupt`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.inputs import data_files, load_data
from lrp4rag.cli.options import GENERATOR, LIMIT, check_written, count, file_option, hidden, repeatable
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import written_atomically
from lrp4rag.util.terminal import say

# As options write them; the harmful edits are imported late.
KINDS = (
    "number",
    "name",
    "date-or-unit",
    "negation",
    "condition",
    "refusal",
    "misattributed",
    "invention",
)


@command()
@click.argument("data", metavar="DATA")
@file_option("--out", required=True, help="JSONL file to write.")
@repeatable(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    metavar="KIND",
    help=f"Make only faults of this kind: {', '.join(KINDS)}; repeatable.  [default: all]",
)
@count("--faults", default=1, help="Most faults of a copy.")
@click.option(
    "--each",
    default=1,
    type=click.IntRange(1, 1000),
    help="Most copies with faults of a response, and as many harmless ones.",
)
@click.option("--no-harmless", is_flag=True, help="Make no harmless copies.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Another seed gives other pairs.")
@hidden(GENERATOR, LIMIT)
def corrupt(
    data: str,
    out: Path,
    kinds: tuple[str, ...],
    faults: int,
    each: int,
    no_harmless: bool,
    seed: int,
    generator: tuple[str, ...],
    limit: int | None,
) -> None:
    """Make minimal pairs of the faithful responses of DATA, to train and to test detectors on.

    Each faithful response ("labels": []) is written to OUT as it is, then with a fault, then with a
    harmless change. A fault contradicts the passages: another number, name, date or unit, a "not", a
    condition dropped, a refusal although the passages answer, something said of the wrong thing, an
    invention. Its characters are labelled, with its kind. What is harmless (a synonym, "two weeks" for
    "14 days", clauses in another order) is labelled faithful, so that not every surprise is a fault.

    Copies keep the source of their response, so that cross-validation does not part them, and have ids
    such as ID~number and ID~reworded. No model is needed. DATA is a JSONL file with "labels", or a
    RAGTruth directory; responses that are hallucinated already are left out. See docs/pairs.md.

    \b
    Examples:
      lrp4rag corrupt labelled.jsonl --out pairs.jsonl
      lrp4rag corrupt labelled.jsonl --out numbers.jsonl --kind number --kind date-or-unit --each 3
      lrp4rag corrupt labelled.jsonl --out hard.jsonl --faults 3 --no-harmless --seed 1
      lrp4rag evaluate pairs.jsonl
    """
    from lrp4rag.data import json_line
    from lrp4rag.training.pairs.corrupt import KINDS as ALL
    from lrp4rag.training.pairs.corrupt import families_of
    from lrp4rag.training.train import labelled
    from lrp4rag.util.progress import track

    check_written(out, data_files(data))
    examples = labelled(load_data(data, generator, limit), data)
    faithful = sum(example.labels == () for example in examples)
    if not faithful:
        raise InputError(
            'no response is faithful ("labels": []), and pairs are made of faithful ones',
            path=data,
            field="labels",
        )
    families = families_of(
        examples,
        kinds=[kind.replace("-", " ") for kind in kinds] or ALL,
        faults=faults,
        each=each,
        harmless=not no_harmless,
        seed=seed,
    )
    counts, used, harmless = Counter[str](), 0, 0
    with written_atomically(out) as stream:
        for family in track(families, faithful, "responses"):
            used += bool(family)
            for number, row in enumerate(family):
                counts.update(label.kind for label in row.labels or ())
                harmless += number > 0 and not row.labels
                stream.write(json_line(row).encode() + b"\n")
        if not used:
            raise InputError(
                f"none of the {faithful} faithful responses admits a fault of these kinds", path=data
            )
    for kind in ALL:
        if counts[kind]:
            say(f"{counts[kind]:>7,} {kind}")
    say(f"{harmless:>7,} harmless copies")
    say(f"{used:>7,} of {faithful:,} faithful responses used; {faithful - used:,} admit no such fault")
    say(f"wrote {out}", err=True)
