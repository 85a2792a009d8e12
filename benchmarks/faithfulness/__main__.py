"""Is the relevance faithful? Needle, perturbation and passage ablation, against other methods."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from tqdm import tqdm

from benchmarks.cells import Cells
from benchmarks.command import SETTINGS, as_json, count, exit_codes, listed
from benchmarks.faithfulness.cases import MAX_PROMPT, Case, ablation_cases, needle_cases, real_cases
from benchmarks.faithfulness.measures import EXPERIMENTS, POINTS, Row, centred, spearman
from benchmarks.faithfulness.methods import METHODS, OURS, STEPS, Attributor
from benchmarks.faithfulness.report import bars, markdown, perturbation_curves
from benchmarks.faithfulness.sample import Sample
from benchmarks.faithfulness.statistics import Comparison, Draw, Statistic, compare, mean_of
from benchmarks.harness import silence
from lrp4rag.data import RAGTRUTH_FILES
from lrp4rag.reader import DEFAULT_READER, Reader, load_reader
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder, write_atomically

# To be raised when the synthetic cases or a measurement change: cells of before and after do not mix.
FORMAT = 1
CELLS = "cells.json"


def benchmark(
    reader: Reader,
    folder: Path,
    *,
    samples: int,
    seed: int = 0,
    only: Sequence[str] = tuple(EXPERIMENTS),
    methods: Sequence[str],
    data: Path | None = None,
    max_prompt: int = MAX_PROMPT,
) -> tuple[dict[str, Any], str]:
    """Run what is missing in `folder`, and write tables, JSON and figures there.

    Returns the results (benchmarks/README.md has the keys) and the report in Markdown.
    """
    reader.model.requires_grad_(False)
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    settings = configuration(reader, seed, data, max_prompt)
    cells, attributor = Cells(folder / CELLS, settings), Attributor(reader)
    counts: dict[str, int] = {}
    results: dict[str, dict[str, Comparison]] = {}
    for name in only:
        cases = cases_of(name, samples, seed, data, reader, max_prompt)
        if len(cases) < 2:
            raise InputError(f"{name}: intervals need at least two samples, found {len(cases)}")
        rows = run(name, cases, attributor, methods, cells, max_prompt)
        counts[name] = len(cases)
        results[name] = {
            measure: compare(
                {method: _statistic(measure, rows[method]) for method in methods}, len(cases), OURS
            )
            for measure in EXPERIMENTS[name].titles
        }
        bars(name, results[name], folder / f"{name}.png")
        if name == "perturbation":
            perturbation_curves(rows, folder / "perturbation-curves.png")
    of_what = "synthetic" if data is None else f"{settings['data']} (the needle's are synthetic)"
    prompts = ", ".join(f"{name}: {count} prompts" for name, count in counts.items())
    note = f"Reader {reader.identity}, data {of_what}, seed {seed}; {prompts}."
    found = {
        name: {measure: asdict(comparison) for measure, comparison in comparisons.items()}
        for name, comparisons in results.items()
    }
    report = {"configuration": settings, "samples": counts, **found}
    page = markdown(results, note)
    write_atomically(folder / "results.json", json.dumps(report, indent=2) + "\n")
    write_atomically(folder / "report.md", page)
    return report, page


def configuration(reader: Reader, seed: int, data: Path | None, limit: int) -> dict[str, Any]:
    """What cells must share to stand in one folder. The number of samples may grow, methods may join."""
    return {
        "format": FORMAT,
        "reader": reader.identity.digest,
        "dtype": reader.identity.dtype,
        "seed": seed,
        "data": "synthetic" if data is None else _digest(data),
        "max_prompt": limit,
        "points": POINTS,
        "steps": STEPS,
    }


def cases_of(
    experiment: str, samples: int, seed: int, data: Path | None, reader: Reader, limit: int
) -> list[Case]:
    """Needle cases are always synthetic: for real prompts nobody knows the tokens that hold the answer.

    A third as many for ablation: its prompts have five passages, and every passage counts.
    """
    count = max(2, samples // 3) if experiment == "ablation" else samples
    if experiment != "needle" and data is not None:
        return real_cases(data, reader, count, limit)
    make = ablation_cases if experiment == "ablation" else needle_cases
    return make(count, seed)


def run(
    experiment: str,
    cases: list[Case],
    attributor: Attributor,
    methods: Sequence[str],
    cells: Cells,
    limit: int,
) -> dict[str, list[Row]]:
    """By method, one row a case; what the cells lack is measured, case by case."""
    found: dict[str, list[Row]] = {method: [] for method in methods}
    for case in tqdm(cases, experiment, disable=None):
        keys = {method: f"{experiment} {case.id} {method}" for method in methods}
        missing = [method for method, key in keys.items() if key not in cells]
        if missing:
            sample = Sample.of(case, attributor.reader, limit)
            rows = EXPERIMENTS[experiment].measure(sample, attributor, missing)
            cells.add({keys[method]: row for method, row in rows.items()})
        for method, key in keys.items():
            found[method].append(cells[key])
    return found


def _statistic(measure: str, rows: list[Row]) -> Statistic:
    if measure != "pooled":
        return mean_of([row[measure] for row in rows])
    relevance = centred([row["relevance"] for row in rows])
    drops = centred([row["drop"] for row in rows])

    def pooled(draw: Draw) -> float:
        return spearman(
            np.concatenate([relevance[k] for k in draw]), np.concatenate([drops[k] for k in draw])
        )

    return pooled


def _digest(data: Path) -> str:
    """SHA-256 (16 digits) of the file, or of a RAGTruth folder's two files."""
    if not data.exists():
        raise InputError("no such file or directory", path=data)
    files = [data / name for name in RAGTRUTH_FILES] if data.is_dir() else [data]
    parts = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


@click.command(context_settings=SETTINGS)
@count("--samples", 120, "Prompts for needle and perturbation; ablation takes a third as many.", least=4)
@count("--seed", 0, "Draws the synthetic prompts.", least=0)
@listed("--only", click.Choice(list(EXPERIMENTS)), ",".join(EXPERIMENTS), "Experiments to run.")
@listed("--methods", click.Choice(list(METHODS)), ",".join(METHODS), "Methods to compare.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/faithfulness"),
    show_default=True,
    help="Folder for cells, tables and figures; a run that was killed resumes from its cells.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="RAGTruth folder or examples as JSONL for perturbation and ablation, cut to fit; the needle "
    "prompts stay synthetic.",
)
@click.option(
    "--reader", default=DEFAULT_READER, show_default=True, help="Hub id, folder or .gguf file of the reader."
)
@count(
    "--max-prompt",
    MAX_PROMPT,
    "Prompt tokens, chat template included: real prompts are cut, longer synthetic ones refused.",
)
@as_json
def main(out: Path, reader: str, as_json: bool, **options: Any) -> None:
    """Is the relevance faithful? Compare our composites with other attribution methods.

    \b
    needle        prompts with one planted passage that holds the answer: is it found?
    perturbation  zero the embeddings of passage tokens, the most or the least relevant
                  first: how far are the two curves of the answer's logit apart?
    ablation      mask a passage: does its relevance predict the drop in log-probability?

    Every table ends with a verdict: whether the best of attnlrp, cp_lrp and paper is best, level with
    the best other method, or worse, by a paired bootstrap over prompts.

    \b
    Try first (a minute or two):
      python -m benchmarks.faithfulness --samples 8 --only needle --out out/try
    All of it takes more than an hour on one core; it can be killed and run again.
    """
    silence()
    with exit_codes():
        results, page = benchmark(load_reader(reader), out, **options)
    if as_json:
        click.echo(json.dumps(results, indent=2))
    else:
        click.echo(f"{page}\nWritten to {out}")


if __name__ == "__main__":
    main()
