"""What is the detector worth on data that no detector learned from? Minimal pairs, HaluEval and WiCE."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS, as_json, exit_codes
from benchmarks.elsewhere.judging import cache_of, judge_all
from benchmarks.elsewhere.measures import measure_halueval, measure_pairs, measure_wice
from benchmarks.elsewhere.page import KIND, RESULTS, write
from benchmarks.elsewhere.sets import HALUEVAL, PAIRS, SETS, WICE, read_sets
from benchmarks.harness import silence
from experiments.pages import claim
from lrp4rag.classifiers.folder import BUNDLED
from lrp4rag.judge import Detector
from lrp4rag.training.seen import refuse_seen

MEASURES = {PAIRS: measure_pairs, HALUEVAL: measure_halueval, WICE: measure_wice}


def benchmark(
    data: Path, out: Path, *, detector: str = BUNDLED, limit: int | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """Judge the sets in a folder and write the page; returns what results.json holds (benchmarks/README.md
    has the keys).

    Raises `InputError` for malformed data, for data that the detector learned from, and where `out` has other
    files or `cache` what another detector says.
    """
    sets = read_sets(data, limit)
    claim(out, KIND, RESULTS)
    # A page may be longer than the reader's window.
    judge = Detector.load(detector, truncation="passages")
    caches = {name: cache_of(cache, name, judge) for name in sets}
    for name, items in sets.items():
        refuse_seen(judge.card, [item.example for item in items], data / name / SETS[name].file)
    judged = {name: judge_all(judge, items, caches[name], name) for name, items in sets.items()}
    # As given, of each path its last part only: pages name no folders of a machine.
    words = ["--data", data.resolve().name, "--out", out.resolve().name]
    words += [] if detector == BUNDLED else ["--detector", Path(detector).name]
    words += [] if limit is None else ["--limit", str(limit)]
    about = {
        "command": f"{KIND} {shlex.join(words)}",
        "detector": Path(detector).name,
        "card": judge.card.sha256,
        "reader": str(judge.reader.identity),
        "dtype": judge.reader.identity.dtype,
        "threshold": judge.card.threshold,
        "limit": limit,
    }
    found = {name: measure(judged[name]) if name in judged else None for name, measure in MEASURES.items()}
    return write(about, found, out)


_FOLDER: Any = click.Path(path_type=Path)
_FILES = ", ".join(f"{name}/{one.file}" for name, one in SETS.items())


@click.command(context_settings=SETTINGS)
@click.option(
    "--data", required=True, type=_FOLDER, help=f"Folder with {_FILES}; what is missing is left out."
)
@click.option("--out", required=True, type=_FOLDER, help="Folder for README.md, results.json and figures.")
@click.option("--detector", default=BUNDLED, show_default=True, help="Name of a bundled one, or its folder.")
@click.option(
    "--limit", type=click.IntRange(1), help="Questions of each set (of WiCE, pages).  [default: all]"
)
@click.option(
    "--cache", type=_FOLDER, help="Folder for what was judged: a run that was killed resumes from there."
)
@as_json
def main(data: Path, out: Path, as_json: bool, **options: Any) -> None:
    """What is the detector worth on data that no detector learned from?

    \b
    minimal_pairs  faithful answers and copies with one fault: are those ranked above, and flagged?
    halueval_qa    a right and a wrong answer to each question: which is more probable?
    wice           claims with unsupported words: are those the suspect ones?

    Beside it stand the response's length and its novel words, which read no model.

    \b
    Try first:
      python -m benchmarks.elsewhere --data DATA --out out/elsewhere --limit 2
    """
    silence()
    with exit_codes():
        found = benchmark(data, out, **options)
    click.echo(json.dumps(found, indent=2) if as_json else f"Written to {out}")


if __name__ == "__main__":
    main()
