"""What is the detector worth on data that no detector learned from?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks import command
from benchmarks.command import SETTINGS, as_json, exit_codes
from benchmarks.elsewhere.judging import cache_of, judge_all
from benchmarks.elsewhere.measures import measure_halueval, measure_pairs, measure_wice
from benchmarks.elsewhere.page import KIND, RESULTS, write
from benchmarks.elsewhere.sets import BUMP, HALUEVAL, PAIRS, SETS, SUMMEDITS, WICE, read_sets
from benchmarks.elsewhere.summaries import measure_summaries
from benchmarks.harness import silence
from experiments.pages import claim
from lrp4rag.classifiers.folder import BUNDLED
from lrp4rag.judge import Detector
from lrp4rag.training.train import refuse_seen

MEASURES = {
    PAIRS: measure_pairs,
    HALUEVAL: measure_halueval,
    WICE: measure_wice,
    SUMMEDITS: measure_summaries,
    BUMP: measure_summaries,
}


def benchmark(
    data: Path,
    out: Path,
    *,
    detector: str = BUNDLED,
    dtype: str = "float32",
    limits: Mapping[str, int | None] | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Judge the sets in a folder, those of `limits` where it is given (see `read_sets`), and write the page;
    returns what results.json holds (benchmarks/README.md has the keys).

    Raises `InputError` for malformed data, for data that the detector learned from, and where `out` has other
    files or `cache` what another detector says.
    """
    sets = read_sets(data, limits)
    claim(out, KIND, RESULTS)
    # A page may be longer than the reader's window.
    judge = Detector.load(detector, dtype=dtype, truncation="passages")
    caches = {name: cache_of(cache, name, judge) for name in sets}
    for name, items in sets.items():
        refuse_seen(judge.card, [item.example for item in items], data / SETS[name].file)
    judged = {name: judge_all(judge, items, caches[name], name) for name, items in sets.items()}
    # As given, of each path its last part only: pages name no folders of a machine.
    words = ["--data", data.resolve().name, "--out", out.resolve().name]
    words += [] if detector == BUNDLED else ["--detector", Path(detector).name]
    words += [] if dtype == "float32" else ["--dtype", dtype]
    words += [part for name, limit in (limits or {}).items() for part in ("--set", written(name, limit))]
    about = {
        "command": f"{KIND} {shlex.join(words)}",
        "detector": Path(detector).name,
        "card": judge.card.sha256,
        "reader": str(judge.reader.identity),
        "dtype": judge.reader.identity.dtype,
        "threshold": judge.card.threshold,
        "limits": {name: limit for name, limit in (limits or {}).items() if limit is not None},
    }
    figures = {name: measure(judged[name]) if name in judged else None for name, measure in MEASURES.items()}
    return write(about, figures, out)


_FOLDER: Any = click.Path(path_type=Path)
_FILES = ", ".join(source.file for source in SETS.values())


class Limit(click.ParamType[tuple[str, int | None]]):
    """The name of a set, and perhaps how much of it."""

    name = "name[:n]"

    def convert(self, value: Any, param: Any, ctx: click.Context | None) -> tuple[str, int | None]:
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition(":")
        chosen = click.Choice(list(SETS))(name, param, ctx)
        return chosen, click.IntRange(1)(number, param, ctx) if number else None


def written(name: str, limit: int | None) -> str:
    """Write what `Limit` reads."""
    return name if limit is None else f"{name}:{limit}"


@click.command(context_settings=SETTINGS)
@click.option(
    "--data", required=True, type=_FOLDER, help=f"Folder with {_FILES}; what is missing is left out."
)
@click.option("--out", required=True, type=_FOLDER, help="Folder for README.md, results.json and figures.")
@click.option("--detector", default=BUNDLED, show_default=True, help="Name of a bundled one, or its folder.")
@command.dtype
@click.option(
    "--set",
    "sets",
    type=Limit(),
    multiple=True,
    help="Only this set, or so many of it: questions, of WiCE pages, of SummEdits summaries, of BUMP pairs. "
    "May be repeated.  [default: all of all sets]",
)
@click.option(
    "--cache", type=_FOLDER, help="Folder for what was judged: a run that was killed resumes from there."
)
@as_json
def main(
    data: Path, out: Path, as_json: bool, sets: tuple[tuple[str, int | None], ...], **options: Any
) -> None:
    """What is the detector worth on data that no detector learned from?

    \b
    minimal_pairs  faithful answers and copies with one fault: are those ranked above, and flagged?
    halueval_qa    a right and a wrong answer to each question: which is more probable?
    wice           claims with unsupported words: are those the suspect ones?
    summedits      edited summaries, right and faulty: are the faulty ones flagged, by kind of edit?
    bump           summaries and copies with one fault: likewise, and are those ranked above?

    Beside it stand the response's length and its novel words, which read no model.

    \b
    Try first:
      python -m benchmarks.elsewhere --data DATA --out out/elsewhere --set bump:2
    """
    silence()
    with exit_codes():
        found = benchmark(data, out, limits=dict(sets) if sets else None, **options)
    click.echo(json.dumps(found, indent=2) if as_json else f"Written to {out}")


if __name__ == "__main__":
    main()
