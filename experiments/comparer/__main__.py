"""`python -m experiments.comparer`: learn the comparer that comes with the package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from sklearn.utils.parallel import Parallel, delayed

from experiments.comparer.claims import read_claims, read_measured
from experiments.comparer.learning import ANNOTATED, NETWORKS, Course, half_of, learn, network_at
from experiments.comparer.rules import by_rules
from experiments.comparer.saving import save_comparer
from lrp4rag.data import load_examples
from lrp4rag.reader.comparer import KIND, new_network
from lrp4rag.training.labelled_pairs import answer_pairs, distinct
from lrp4rag.training.sets import SETS, load_set
from lrp4rag.training.train import labelled
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import check_folder
from lrp4rag.util.tensors import read_tensors
from lrp4rag.util.terminal import say, tell

MEASURED = 500
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("ragtruth", type=_PATH)
@click.argument("claims", type=_PATH)
@click.option("--out", required=True, type=_PATH, help="File of the comparer; checkpoints are beside it.")
@click.option("--steps", default=1700, show_default=True, type=click.IntRange(1), help="Steps of a network.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Learn for so long at most, whatever the steps; the texts are read before.",
)
@click.option("--after", type=_PATH, help="Comparer with whose networks they begin, instead of the encoder.")
def main(**options: Any) -> None:
    """Learn the comparer from the answers of RAGTRUTH (a folder), of the sets that come with the package, and
    from a folder of CLAIMS with evidence. A run that was stopped goes on."""
    try:
        run(**options)
    except LRP4RAGError as error:
        tell("Error", error)
        raise SystemExit(error.exit_code) from error


def run(
    ragtruth: Path,
    claims: Path,
    out: Path,
    steps: int,
    device: str,
    minutes: float | None,
    after: Path | None,
) -> None:
    """Read the texts, learn the networks, on processors at once and on a GPU one after the other, and write
    them with the sources that each of them learned from."""
    check_folder(out.parent)
    new_network()  # where its weights are not there, that is said at once
    texts, measured = read_claims(claims), read_measured(claims, MEASURED)
    sets = {name: load_set(Path(name)) for name in SETS}
    sets[ANNOTATED] = load_examples(ragtruth)
    sets = {name: labelled(examples, name) for name, examples in sets.items()}
    answers = distinct(pair for name, examples in sets.items() for pair in answer_pairs(examples, name))
    learned = {one.source: NETWORKS - 1 - half_of(one.source) for one in answers}
    if after is not None:
        _require_apart(after, learned)
    answers += list(by_rules(answers))
    say(f"{len(texts)} claims, {len(answers)} sentences of answers", err=True)
    at_once = 1 if device == "cuda" else NETWORKS
    seconds = math.inf if minutes is None else 60 * minutes * at_once / NETWORKS
    course = Course(steps, seconds, device)
    paths = [out.with_name(f"{out.stem}-{number}.learning.safetensors") for number in range(NETWORKS)]
    tasks = (
        delayed(learn)(number, texts, answers, measured, path, course, after)
        for number, path in enumerate(paths)
    )
    Parallel(n_jobs=at_once)(tasks)
    seen = {one.content_hash for examples in sets.values() for one in examples}
    save_comparer(out, [network_at(path) for path in paths], learned, seen)
    say(f"Written to {out}", err=True)


def _require_apart(comparer: Path, learned: Mapping[str, int]) -> None:
    """Raise `InputError` where a network of a comparer learned from a source that it is not to learn from."""
    before = read_tensors(comparer, KIND)[0]["learned"]
    moved = [source for source, number in learned.items() if before.get(source, number) != number]
    if moved:
        raise InputError(f"another network of it learned from {moved[0]}", path=comparer)


if __name__ == "__main__":
    main(prog_name="python -m experiments.comparer")
