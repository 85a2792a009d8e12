"""Is the relevance faithful? Needle, perturbation and passage ablation, against other methods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from tqdm import tqdm

from benchmarks.cells import Cells
from benchmarks.command import SETTINGS, as_json, count, exit_codes, listed
from benchmarks.faithfulness.cases import MAX_PROMPT, Case, ablation_cases, needle_cases
from benchmarks.faithfulness.measures import EXPERIMENTS, POINTS, Row, centred, spearman
from benchmarks.faithfulness.methods import METHODS, OURS, STEPS, Attributor
from benchmarks.faithfulness.report import VERDICTS, bars, perturbation_curves
from benchmarks.faithfulness.sample import Sample
from benchmarks.faithfulness.statistics import Comparison, Draw, Statistic, compare, mean_of
from benchmarks.harness import silence
from benchmarks.pages import write_page
from lrp4rag.reader import DEFAULT_READER, Reader, load_reader
from lrp4rag.report.numbers import with_interval
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
    max_prompt: int = MAX_PROMPT,
) -> dict[str, Any]:
    """Run what is missing in `folder`, and write tables, JSON (benchmarks/README.md has the keys) and figures
    there. Ablation takes a third as many prompts: they have five passages, and every passage counts."""
    reader.model.requires_grad_(False)
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    settings = {  # what cells must share; the number of samples may grow, methods may join
        "format": FORMAT,
        "reader": reader.identity.digest,
        "dtype": reader.identity.dtype,
        "seed": seed,
        "data": "synthetic",
        "max_prompt": max_prompt,
        "points": POINTS,
        "steps": STEPS,
    }
    cells, attributor = Cells(folder / CELLS, settings), Attributor(reader)
    counts: dict[str, int] = {}
    results: dict[str, dict[str, Comparison]] = {}
    for name in only:
        cases = (
            ablation_cases(max(2, samples // 3), seed) if name == "ablation" else needle_cases(samples, seed)
        )
        rows, counts[name] = run(name, cases, attributor, methods, cells, max_prompt), len(cases)
        results[name] = {
            measure: compare({key: _statistic(measure, rows[key]) for key in methods}, len(cases), OURS)
            for measure in EXPERIMENTS[name].titles
        }
        bars(name, results[name], folder / f"{name}.png")
        if name == "perturbation":
            perturbation_curves(rows, folder / "perturbation-curves.png")
    prompts = ", ".join(f"{name}: {count} prompts" for name, count in counts.items())
    records = {
        name: {measure: one.record() for measure, one in comparisons.items()}
        for name, comparisons in results.items()
    }
    report = {"configuration": settings, "samples": counts, **records}
    write_atomically(folder / "results.json", json.dumps(report, indent=2) + "\n")
    write_page(
        folder / "report.md",
        Path(__file__).with_name("report.md.j2"),
        {"interval": lambda one: with_interval(one, 3)},
        note=f"Reader {reader.identity}, data synthetic, seed {seed}; {prompts}.",
        results=results,
        titles={name: EXPERIMENTS[name].titles for name in results},
        words=VERDICTS,
    )
    return report


def run(
    experiment: str,
    cases: list[Case],
    attributor: Attributor,
    methods: Sequence[str],
    cells: Cells,
    limit: int,
) -> dict[str, list[Row]]:
    """By method, one row a case; what the cells lack is measured, case by case."""
    rows: dict[str, list[Row]] = {method: [] for method in methods}
    for case in tqdm(cases, experiment, disable=None):
        keys = {method: f"{experiment} {case.id} {method}" for method in methods}
        missing = [method for method, key in keys.items() if key not in cells]
        if missing:
            sample = Sample.of(case, attributor.reader, limit)
            measured = EXPERIMENTS[experiment].measure(sample, attributor, missing)
            cells.add({keys[method]: row for method, row in measured.items()})
        for method, key in keys.items():
            rows[method].append(cells[key])
    return rows


def _statistic(measure: str, rows: list[Row]) -> Statistic:
    if measure != "pooled":
        return mean_of([row[measure] for row in rows])
    relevance, drops = (centred([row[key] for row in rows]) for key in ("relevance", "drop"))

    def pooled(draw: Draw) -> float:
        return spearman(*(np.concatenate([values[k] for k in draw]) for values in (relevance, drops)))

    return pooled


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
    "--reader", default=DEFAULT_READER, show_default=True, help="Hub id, folder or .gguf file of the reader."
)
@count("--max-prompt", MAX_PROMPT, "Prompt tokens, chat template included: longer prompts are refused.")
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
        results = benchmark(load_reader(reader), out, **options)
    page = (out / "report.md").read_text()
    click.echo(json.dumps(results, indent=2) if as_json else f"{page}\nWritten to {out}")


if __name__ == "__main__":
    main()
