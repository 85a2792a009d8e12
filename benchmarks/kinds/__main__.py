"""How many faults of each kind are flagged where few right answers are?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from benchmarks import command
from benchmarks.command import SETTINGS, as_json, exit_codes
from benchmarks.elsewhere.sets import PAIRS, SETS, read_pairs
from benchmarks.harness import silence
from benchmarks.kinds.folds import Learned, are_fitted, fit_folds, judge_folds
from benchmarks.kinds.judging import (
    EVIDENCE,
    MINIMAL,
    cases_of_evidence,
    cases_of_pairs,
    judge_cases,
    scores_of_folds,
    write_scores,
)
from benchmarks.kinds.page import KIND, RAW, SETUP, write
from experiments.pages import RESULTS, claim
from lrp4rag.classifiers.card import package_versions
from lrp4rag.classifiers.folder import BUNDLED
from lrp4rag.example import first_sources
from lrp4rag.judge import Detector
from lrp4rag.training.train import refuse_seen
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder, write_atomically
from lrp4rag.util.strict_json import read_record

EDITS = "evidence.jsonl"
_FOLDER: Any = click.Path(path_type=Path, file_okay=False)


@click.group(context_settings=SETTINGS)
def main() -> None:
    """How many faults of each kind are flagged where few right answers are?"""
    silence()


@main.command()
@click.option(
    "--data",
    required=True,
    type=_FOLDER,
    help=f"Folder with {SETS[PAIRS].file}, and {PAIRS}/{EDITS} if there is one.",
)
@click.option("--out", required=True, type=_FOLDER, help=f"Folder of the page; scores are in its {RAW}/.")
@click.option("--detector", default=BUNDLED, show_default=True, help="Name of a bundled one, or its folder.")
@command.dtype
@click.option("--limit", type=click.IntRange(1), help="Questions.  [default: all]")
def judge(data: Path, out: Path, detector: str, dtype: str, limit: int | None) -> None:
    """Judge the minimal pairs and their edited passages. A run that was killed resumes."""
    with exit_codes():
        path = data / SETS[PAIRS].file
        items = read_pairs(path)
        sources = first_sources((item.example.source for item in items), limit)
        items = [item for item in items if item.example.source in sources]
        sets = {MINIMAL: cases_of_pairs(items)}
        if (edits := data / PAIRS / EDITS).exists():
            sets[EVIDENCE] = cases_of_evidence(edits, items)
        judging = Detector.load(detector, dtype=dtype, truncation="passages")
        refuse_seen(judging.card, [item.example for item in items], path)
        words = ["--data", data.resolve().name, "--out", out.resolve().name]
        words += [] if detector == BUNDLED else ["--detector", Path(detector).name]
        words += [] if dtype == "float32" else ["--dtype", dtype]
        words += [] if limit is None else ["--limit", str(limit)]
        raw = check_folder(out / RAW)
        raw.mkdir(parents=True, exist_ok=True)
        write_setup(
            raw / SETUP,
            {
                "command": f"{KIND} judge {shlex.join(words)}",
                "card": judging.card.sha256,
                "reader": str(judging.reader.identity),
                "dtype": judging.reader.identity.dtype,
                "versions": package_versions(),
            },
        )
        for name, cases in sets.items():
            judge_cases(judging, name, cases, raw / f"{name}.jsonl")


@main.command()
@click.option("--store", required=True, type=_FOLDER, help="What `lrp4rag train` of the bundled one kept.")
@click.option("--ragtruth", required=True, type=click.Path(path_type=Path), help="RAGTruth's folder.")
@click.option("--detectors", required=True, type=_FOLDER, help="Folder for the detectors of the folds.")
@click.option("--out", required=True, type=_FOLDER, help=f"Folder of the page; scores are in its {RAW}/.")
@command.dtype
@command.count("--every", 1, "Of everyday's questions, the first, and each so-many-th after it.")
@command.count("--edits-every", 1, "The same, of those whose passages are edited.")
@command.count("--jobs", 2, "Processes that fit detectors.")
def held(
    store: Path,
    ragtruth: Path,
    detectors: Path,
    out: Path,
    dtype: str,
    every: int,
    edits_every: int,
    jobs: int,
) -> None:
    """Judge the set everyday, each question by a detector that did not learn from it. A run that was killed
    resumes."""
    with exit_codes():
        (out / RAW).mkdir(parents=True, exist_ok=True)
        if not are_fitted(detectors):
            fit_folds(Learned.of(store, ragtruth, jobs), detectors, jobs)
        judge_folds(detectors, out / RAW, dtype, every, edits_every)


@main.command()
@click.option("--out", required=True, type=_FOLDER, help=f"Folder of the page; scores are in its {RAW}/.")
@click.option(
    "--folds",
    type=(click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path)),
    metavar="FILE RAGTRUTH",
    help=f"What `lrp4rag train RAGTRUTH --scores FILE` wrote of the detector; kept in {RAW}/oof.jsonl.",
)
@as_json
def page(out: Path, folds: tuple[Path, Path] | None, as_json: bool) -> None:
    """Compute README.md, results.json and figures from the raw scores."""
    with exit_codes():
        claim(out, KIND, RESULTS)
        if folds is not None:
            (out / RAW).mkdir(exist_ok=True)
            write_scores(out / RAW / "oof.jsonl", list(scores_of_folds(*folds)))
        results = write(out)
    click.echo(json.dumps(results, indent=2) if as_json else f"Written to {out}")


def write_setup(path: Path, setup: dict[str, Any]) -> None:
    """Write what judged; raises `InputError` where scores of something else are there."""
    earlier = read_record(path, "the setup of raw scores") if path.exists() else setup
    for name in ("card", "reader", "dtype"):
        if earlier.get(name) != setup[name]:
            raise InputError(f"scores of another {name} are here; name another folder", path=path)
    write_atomically(path, json.dumps(setup, indent=1) + "\n")


if __name__ == "__main__":
    main()
