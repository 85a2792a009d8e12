"""Write docs/results/service/README.md: the promises of promises.toml beside the measured results."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import click
from jinja2 import Environment, StrictUndefined

from benchmarks.command import SETTINGS
from benchmarks.pages import table_of, write_page

RESULTS = Path("results") / "service"
"""Below the docs."""
PROMISES = tomllib.loads(Path(__file__).with_name("promises.toml").read_text())
TEMPLATES = Environment(undefined=StrictUndefined)


def row(promise: dict[str, Any], docs: Path) -> tuple[str, ...]:
    """The cells of a promise: what was measured, and whether it holds. Without its file, it was not."""
    path, command = RESULTS / f"{promise['file']}.json", f"`{promise['command']}`"
    if not (docs / path).exists():
        return promise["promise"], "not measured", "", command, ""
    promise = promise | PROMISES["kind"].get(promise.get("kind"), {})
    found = {"most": promise.get("most")} | json.loads((docs / path).read_text())
    words = TEMPLATES.from_string(promise["words"]).render(found)
    holds = TEMPLATES.compile_expression(promise["holds"], undefined_to_none=False)(found)
    ran = f"{found['reader']} reader" + (", quick" if found.get("quick") else "")
    link = f"[{promise['file']}]({path.name})"
    return promise["promise"], f"{words} ({ran})", "yes" if holds else "**no**", command, link


def draw(docs: Path) -> Path | None:
    """Draw memory over time, where it was measured; return the figure's name."""
    path = docs / RESULTS / "soak.json"
    if not path.exists():
        return None
    from experiments.figures.style import blank, save, themed

    found = json.loads(path.read_text())
    with themed():
        drawn = blank((8.0, 3.0))
        ax = drawn.subplots()
        ax.plot(*zip(*((minute, size / 1e6) for minute, size in found["samples"]), strict=True), lw=1)
        ax.axvline(found["warm_up"], color="0.5", ls="--", lw=1)
        ax.set(xlabel="minutes (dashed: end of the warm-up)", ylabel="resident memory (MB)", ylim=(0, None))
        save(drawn, path.with_suffix(""))
    return Path("soak.svg")


@click.command(context_settings=SETTINGS)
@click.option("--docs", default="docs", show_default=True, type=click.Path(path_type=Path, file_okay=False))
def page(docs: Path) -> None:
    """Write DOCS/results/service/README.md from the files beside it."""
    head = ("must hold", "measured", "holds", "`python -m benchmarks.service` …", "results")
    rows = table_of(head, [row(promise, docs) for promise in PROMISES["promise"]])
    template = Path(__file__).with_name("page.md.j2")
    write_page(docs / RESULTS / "README.md", template, table=rows, figure=draw(docs))
