"""The command: the table of one size, or the scaling run."""

from __future__ import annotations

import json
import os
import platform
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.outputs import OutputFile
from benchmarks.peers.client import Job
from benchmarks.peers.environments import PEERS, default_folder
from benchmarks.peers.plot import plot as save_plot
from benchmarks.peers.scaling import Sweep, measure_sweep
from benchmarks.peers.store import OtherSetupError, Store
from benchmarks.peers.summary import lines, summarise
from benchmarks.peers.table import measure_table
from lrp4rag.errors import InputError
from lrp4rag.reader.weights import DEFAULT_READER, resolve, weights_hash
from lrp4rag.strict_json import read_record

SCALED = ("ours", "lxt", "paper-loop")


class Lengths(click.ParamType[tuple[int, ...]]):
    """Lengths with commas between them."""

    name = "n,n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            lengths = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"'{value}' is not lengths with commas between them", param, ctx)
        if min(lengths) < 1:
            self.fail("lengths start at 1", param, ctx)
        return lengths


def example_ids(folder: str, count: int) -> list[int]:
    """Random token ids from a seed: whole words, so that peers that take texts see the same tokens.

    Distinct where the vocabulary allows it; captum chooses what to ablate by token id.
    """
    from transformers import AutoTokenizer

    vocabulary = AutoTokenizer.from_pretrained(folder, trust_remote_code=False).get_vocab()
    words = [ident for token, ident in vocabulary.items() if token[0] in "Ġ▁" and _plain(token[1:])]
    drawn, pools = random.Random(0), (words, list(vocabulary.values()))
    for pool in pools:
        if len(pool) >= count:
            return drawn.sample(sorted(pool), count)
    return drawn.choices(sorted(vocabulary.values()), k=count)


def _plain(word: str) -> bool:
    return word.isascii() and word.isalpha()


def measured_setup(folder: str, limit: float) -> dict[str, Any]:
    """What cells of one file must have in common."""
    threads = os.environ.get("OMP_NUM_THREADS")
    return {
        "model": weights_hash(Path(folder)),
        "dtype": "float32",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "omp_num_threads": int(threads) if threads else None,
        "limit": limit,
    }


@click.command(context_settings={"max_content_width": 110})
@click.option("--prompt", default=400, show_default=True, type=click.IntRange(1), help="Prompt tokens.")
@click.option("--response", default=240, show_default=True, type=click.IntRange(1), help="Response tokens.")
@click.option(
    "--peers",
    multiple=True,
    type=click.Choice(list(PEERS)),
    help="Measure these only (repeat the option). Default: all; with --scaling: " + ", ".join(SCALED) + ".",
)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of the table.")
@click.option("--scaling", is_flag=True, help="The scaling run instead of the table.")
@click.option(
    "--prompts",
    type=Lengths(),
    default="250,500,1000,2000,4000,8000",
    show_default=True,
    help="Prompt lengths of the scaling run; the response has the shortest length of --responses.",
)
@click.option(
    "--responses",
    type=Lengths(),
    default="50,100,250,500,1000,2000",
    show_default=True,
    help="Response lengths of the scaling run; the prompt has --prompt tokens.",
)
@click.option("--plot", type=OutputFile(), help="Log-log plot of the scaling run (.png, .svg).")
@click.option(
    "--out",
    type=OutputFile(),
    help="Keep measured cells in this file; a run with the same file goes on where the last one ended.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; README.md documents the keys.")
@click.option("--reader", default=DEFAULT_READER, show_default=True, help="A Llama: name, folder or .gguf.")
@click.option("--envs", type=click.Path(path_type=Path), help="Folder of the peers' environments.")
@click.option("--limit", default=120.0, show_default=True, help="Seconds a cell may take, or it is skipped.")
def main(
    reader: str, envs: Path | None, out: Path | None, limit: float, as_json: bool, **options: Any
) -> None:
    """lrp4rag against LXT, captum, inseq and the paper's algorithm: time, memory, agreement.

    \b
    First make the environments of LXT and inseq (once, about 1 GB each):
      python -m benchmarks.peers.environments
    Then, on a quiet machine:
      python -m benchmarks.peers.run --out table.json
      python -m benchmarks.peers.run --scaling --out scaling.json --plot scaling.png

    All peers get the same model, tokens, machine and threads (OMP_NUM_THREADS, else all cores), and each
    a process of its own that also times plain forward passes. Slow peers are timed on a few rows.
    """
    asked = Asked(**options)
    if asked.plot is not None and not asked.scaling:
        raise click.UsageError("--plot shows the scaling run; add --scaling")
    try:
        folder = str(resolve(reader))
        setup = measured_setup(folder, limit)
        store = Store(out, setup)
    except (InputError, OtherSetupError) as error:
        raise click.ClickException(str(error)) from error
    ids = example_ids(folder, asked.longest)
    job = Job(folder, tuple(ids[:1]), tuple(ids[1:]), envs or default_folder(), limit)
    result, text = (run_scaling if asked.scaling else run_table)(job, asked, store)
    click.echo(json.dumps({"setup": setup, **result}, indent=2) if as_json else "\n".join(text))


@dataclass(frozen=True)
class Asked:
    """What the options ask to measure."""

    prompt: int
    response: int
    peers: tuple[str, ...]
    rounds: int
    scaling: bool
    prompts: tuple[int, ...]
    responses: tuple[int, ...]
    plot: Path | None

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        return (
            Sweep("prompt", self.prompts, min(self.responses)),
            Sweep("response", self.responses, self.prompt),
        )

    @property
    def longest(self) -> int:
        """Tokens of the longest example."""
        if not self.scaling:
            return self.prompt + self.response
        return max(n + t for sweep in self.sweeps for n, t in sweep.sizes())


Result = tuple[dict[str, Any], list[str]]
"""For --json, and lines for people."""


def run_table(job: Job, asked: Asked, store: Store) -> Result:
    job = job.cut(asked.prompt, asked.response)
    rows = summarise(*measure_table(job, asked.peers or tuple(PEERS), asked.rounds, store, say))
    size = f"{asked.prompt} prompt and {asked.response} response tokens, float32"
    text = [f"{size}; seconds, ~: extrapolated", *lines(rows)]
    return {"prompt": asked.prompt, "response": asked.response, "peers": rows}, text


def run_scaling(job: Job, asked: Asked, store: Store) -> Result:
    window = read_record(Path(job.model) / "config.json", "a model's config")["max_position_embeddings"]
    measured = {
        sweep.side: measure_sweep(job, sweep, asked.peers or SCALED, window, store, say)
        for sweep in asked.sweeps
    }
    if asked.plot is not None:
        save_plot(measured, asked.plot)
    text = [line for sweep in measured.values() for line in scaling_lines(sweep)]
    return {f"{side}_sweep": sweep for side, sweep in measured.items()}, text


def say(text: str) -> None:
    click.echo(text, err=True)


def scaling_lines(sweep: dict[str, Any]) -> list[str]:
    """Seconds of every cell, then the exponents."""
    text = []
    for cell in sweep["cells"]:
        size = f"{cell['peer']:>16} {cell['quantity']:>9} {cell['prompt']:>5} + {cell['response']:<5}"
        if cell["seconds"] is None:
            text.append(f"{size} skipped: {cell['skipped']}")
        else:
            text.append(f"{size} {'~' if cell['extrapolated'] else ' '}{cell['seconds']:.3g} s")
    for fit in sweep["exponents"]:
        text.append(
            f"{fit['peer']}: {fit['quantity']} grows as {fit['sweep']} length to the {fit['exponent']:.2f}"
        )
    return text


if __name__ == "__main__":
    main()
