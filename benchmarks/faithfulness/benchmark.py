"""One run: measure what is missing in a folder, compare the methods, write tables and figures."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faithfulness import figures, tables
from benchmarks.faithfulness.cases import MAX_PROMPT, Case, ablation_cases, needle_cases, real_cases
from benchmarks.faithfulness.experiments import EXPERIMENTS, evaluate, run
from benchmarks.faithfulness.from_captum import STEPS
from benchmarks.faithfulness.methods import Attributor
from benchmarks.faithfulness.perturbation import POINTS
from benchmarks.faithfulness.rows import Rows
from benchmarks.faithfulness.statistics import Comparison
from lrp4rag.data import RAGTRUTH_FILES
from lrp4rag.errors import InputError
from lrp4rag.files import write_atomically
from lrp4rag.reader import Reader

# To be raised when the synthetic cases or a measurement change: rows of before and after do not mix.
FORMAT = 1
NAMES = tuple(EXPERIMENTS)
TITLES = {name: dict(experiment.titles) for name, experiment in EXPERIMENTS.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found. `results[experiment][measure]` compares the methods."""

    reader: str
    configuration: dict[str, Any]
    samples: dict[str, int]
    results: dict[str, dict[str, Comparison]]

    def as_dict(self) -> dict[str, Any]:
        """For --json; the keys are documented in `__main__`."""
        measures = {
            name: {measure: comparison.as_dict() for measure, comparison in comparisons.items()}
            for name, comparisons in self.results.items()
        }
        return {"configuration": self.configuration, "samples": self.samples, **measures}

    @property
    def note(self) -> str:
        counts = ", ".join(f"{name}: {count} prompts" for name, count in self.samples.items())
        data, seed = self.configuration["data"], self.configuration["seed"]
        kind = data if data == "synthetic" else f"{data} (the needle's are synthetic)"
        return f"Reader {self.reader}, data {kind}, seed {seed}; {counts}."


def benchmark(
    reader: Reader,
    folder: Path,
    *,
    samples: int,
    seed: int = 0,
    only: list[str],
    methods: list[str],
    data: Path | None = None,
    limit: int = MAX_PROMPT,
) -> Outcome:
    """Run what is missing in `folder`, and write tables, JSON and figures there."""
    reader.model.requires_grad_(False)
    settings = configuration(reader, seed, data, limit)
    rows, attributor = Rows.open(folder, settings), Attributor(reader)
    counts: dict[str, int] = {}
    results: dict[str, dict[str, Comparison]] = {}
    for name in only:
        cases = cases_of(name, samples, seed, data, reader, limit)
        if len(cases) < 2:
            raise InputError(f"{name}: intervals need at least two samples, found {len(cases)}")
        run(EXPERIMENTS[name], cases, attributor, methods, rows, limit)
        ids = [case.id for case in cases]
        counts[name], results[name] = len(ids), evaluate(EXPERIMENTS[name], ids, methods, rows)
        figures.bars(results[name], TITLES[name], folder / f"{name}.png")
        if name == "perturbation":
            found = {method: rows.of(name, ids, method) for method in methods}
            figures.perturbation_curves(found, folder / "perturbation-curves.png")
    outcome = Outcome(str(reader.identity), settings, counts, results)
    write_atomically(folder / "results.json", json.dumps(outcome.as_dict(), indent=2) + "\n")
    write_atomically(folder / "report.md", tables.markdown(results, TITLES, outcome.note))
    return outcome


def configuration(reader: Reader, seed: int, data: Path | None, limit: int) -> dict[str, Any]:
    """What rows must share to stand in one folder. The number of samples may grow, methods may join."""
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


def _digest(data: Path) -> str:
    """SHA-256 (16 digits) of the file, or of a RAGTruth folder's two files."""
    if not data.exists():
        raise InputError("no such file or directory", path=data)
    files = [data / name for name in RAGTRUTH_FILES] if data.is_dir() else [data]
    parts = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
