"""What a reader brings: the same answers, judged by detectors that learned the same beside several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import command
from benchmarks.answers import kind_of, of_some_questions
from benchmarks.command import Report, benchmark, count, table
from benchmarks.elsewhere.measures import part
from benchmarks.elsewhere.sets import PAIRS, SETS, read_pairs
from benchmarks.kinds.folds import asking_others
from benchmarks.kinds.judging import (
    EVIDENCE,
    MINIMAL,
    RAGTRUTH,
    Case,
    Score,
    cases_of_evidence,
    cases_of_pairs,
    judge_cases,
)
from benchmarks.kinds.page import RAW
from lrp4rag.classifiers.folder import BUNDLED
from lrp4rag.data import load_examples, read_rows
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.training.metrics import intervals
from lrp4rag.util.errors import InputError

OUT_OF_FOLD = Path(__file__).parents[1] / "docs" / "results" / "kinds" / RAW / "oof.jsonl"
"""What cross-validation made of RAGTruth's responses, from which the bundled detector learned."""
FIGURES = ("auroc", "balanced_accuracy")


def some_responses(examples: Sequence[Example], responses: int) -> list[Example]:
    """Return all responses to sources that lie evenly among all, about so many `responses`."""
    return of_some_questions(examples, max(1, round(len(examples) / responses)))


def cases_of(data: Path, ragtruth: Path, responses: int) -> dict[str, list[Case]]:
    """Return the minimal pairs, their edited passages, and some of RAGTruth's responses."""
    items = read_pairs(data / SETS[PAIRS].file)
    labelled = [
        Case(one, kind_of(one), None, lambda _: False)
        for one in some_responses(load_examples(ragtruth), responses)
    ]
    edits = cases_of_evidence(data / PAIRS / "evidence.jsonl", items)
    return {MINIMAL: cases_of_pairs(items), EVIDENCE: edits, RAGTRUTH: labelled}


def judged(detector: Detector, cases: Mapping[str, Sequence[Case]], folder: Path) -> dict[str, list[Score]]:
    """Return the scores of all cases; those that the folder has are not made again. The comparer is read by
    its network that did not learn from a source."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, some in cases.items():
        path = folder / f"{name}.jsonl"
        judge_cases(detector, name, some, path, asking_others)
        ids = {case.example.id for case in some}
        found[name] = [score for _, score in read_rows(path, Score) if score.id in ids]
    return found


def measured(scores: Sequence[Score], threshold: float) -> dict[str, Any]:
    """Return AUROC and balanced accuracy at the detector's threshold, the part of faulty copies that score
    above the right answer that they were made of (a tie is half), and the median seconds of an answer."""
    values = np.array([score.probability or 0.0 for score in scores])
    groups = np.array([score.question for score in scores], dtype=np.str_)
    metrics = intervals(np.array([score.label for score in scores], dtype=bool), values, groups, threshold)
    result: dict[str, Any] = {"responses": len(scores)} | {
        name: metrics[name].model_dump() for name in FIGURES
    }
    place = {score.id: number for number, score in enumerate(scores)}
    twins = [(place[score.id], place[score.copied_from]) for score in scores if score.copied_from in place]
    if twins:
        above, below = (values[list(numbers)] for numbers in zip(*twins, strict=True))
        parts = (1 + np.sign(above - below)) / 2
        result["ranked"] = part(parts, groups[[number for number, _ in twins]]).model_dump()
    seconds = [score.seconds for score in scores if score.seconds is not None]
    return result | ({"seconds": float(np.median(seconds))} if seconds else {})


@benchmark
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help=f"Folder with {SETS[PAIRS].file} and {PAIRS}/evidence.jsonl.",
)
@click.option(
    "--ragtruth", required=True, type=click.Path(path_type=Path, exists=True), help="RAGTruth's folder."
)
@click.option(
    "--detector",
    "detectors",
    required=True,
    multiple=True,
    help="NAME=FOLDER: what `lrp4rag train` made, and what it is called; 'default' and 'text' are bundled.",
)
@click.option(
    "--cache",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of scores; a run resumes.",
)
@count("--responses", 300, "About so many responses of RAGTruth.")
@command.dtype
def main(
    data: Path, ragtruth: Path, detectors: tuple[str, ...], cache: Path, responses: int, dtype: str
) -> Report:
    """The same answers, judged by detectors that learned the same beside several readers.

    \b
    Examples:
      lrp4rag train some.jsonl --reader MODEL --out large
      lrp4rag train some.jsonl --classifier text --out texts
      python -m benchmarks.readers --data DATA --ragtruth RAGTRUTH --cache out/readers \\
        --detector texts=texts --detector large=large --detector default
    """
    cases, rows = cases_of(data, ragtruth, responses), []
    for name, folder in named(detectors).items():
        detector = Detector.load(folder, dtype=dtype, truncation="passages")
        learned = not Path(folder).is_dir()  # the bundled ones, from RAGTruth
        some = {key: each for key, each in cases.items() if not (learned and key == RAGTRUTH)}
        found = judged(detector, some, cache / f"{name}-{detector.card.sha256[:12]}-{dtype}")
        if folder == BUNDLED:
            found[RAGTRUTH] = cross_validated(cases[RAGTRUTH])
        card = detector.card
        rows.append(
            {
                "name": name,
                "card": card.sha256,
                "reader": str(detector.reader.identity),
                "threshold": card.threshold,
                "sets": {key: measured(scores, card.threshold) for key, scores in found.items()},
            }
        )
    given = {"data": data.name, "ragtruth": ragtruth.name, "cache": cache.name}
    return given | {"detectors": rows}, table(HEAD, [_shown(row) for row in rows])


def named(options: Sequence[str]) -> dict[str, str]:
    """Return folders, or names of bundled detectors, by the names that are given to them."""
    found = dict[str, str]()
    for option in options:
        name, _, folder = option.partition("=")
        if not name or "/" in name or name in found:
            raise click.BadParameter(f"'{option}': give each a name of its own, NAME=FOLDER")
        found[name] = folder or name
    return found


def cross_validated(cases: Sequence[Case]) -> list[Score]:
    """Return what cross-validation made of these responses; raises `InputError` where one is missing."""
    ids = {case.example.id for case in cases}
    scores = [one for _, one in read_rows(OUT_OF_FOLD, Score) if one.set == RAGTRUTH and one.id in ids]
    if len(scores) < len(ids):
        raise InputError("it lacks responses of RAGTruth's folder", path=OUT_OF_FOLD)
    return scores


HEAD = ("detector", "pairs ranked", "pairs balanced", "edits balanced", "RAGTruth AUROC", "seconds")


def _shown(row: Mapping[str, Any]) -> list[str]:
    pairs, edits, ragtruth = (row["sets"].get(name) for name in (MINIMAL, EVIDENCE, RAGTRUTH))
    cells = [pairs["ranked"], pairs["balanced_accuracy"], edits["balanced_accuracy"]]
    cells += [] if ragtruth is None else [ragtruth["auroc"]]
    shown = [f"{one['value']:.3f} [{one['low']:.2f}, {one['high']:.2f}]" for one in cells]
    return [row["name"], *shown, *([""] * (ragtruth is None)), f"{edits['seconds']:.2f}"]


if __name__ == "__main__":
    main()
