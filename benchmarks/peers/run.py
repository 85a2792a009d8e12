"""The command: the table of one size, or the scaling run."""

from __future__ import annotations

import json
import os
import platform
import random
from pathlib import Path
from typing import Any

import click

from benchmarks.cells import Cells
from benchmarks.command import SETTINGS, OutputFile, as_json, count, exit_codes, listed, rounds
from benchmarks.peers import report
from benchmarks.peers.client import Job
from benchmarks.peers.environments import default_folder
from benchmarks.peers.measure import Sweep, measure_sweep, measure_table
from benchmarks.peers.methods import PEERS
from lrp4rag.reader.weights import DEFAULT_READER, resolve, weights_hash
from lrp4rag.util.strict_json import read_record

SCALED = ("ours", "lxt", "paper-loop")


def example_ids(folder: str, length: int) -> list[int]:
    """Random token ids from a seed: whole words, so that peers that take texts see the same tokens.

    Distinct where the vocabulary allows it; captum chooses what to ablate by token id.
    """
    from transformers import AutoTokenizer

    vocabulary = AutoTokenizer.from_pretrained(folder, trust_remote_code=False).get_vocab()
    words = sorted(
        ident
        for token, ident in vocabulary.items()
        if token[0] in "Ġ▁" and token[1:].isascii() and token[1:].isalpha()
    )
    drawn = random.Random(0)
    return drawn.sample(words, length) if length <= len(words) else drawn.choices(words, k=length)


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


@click.command(context_settings=SETTINGS)
@count("--prompt", 400, "Prompt tokens.")
@count("--response", 240, "Response tokens.")
@click.option(
    "--peers",
    multiple=True,
    type=click.Choice(list(PEERS)),
    help="Measure these only (repeat the option). Default: all; with --scaling: " + ", ".join(SCALED) + ".",
)
@rounds(default=5)
@click.option("--scaling", is_flag=True, help="The scaling run instead of the table.")
@listed(
    "--prompts",
    click.IntRange(1),
    "250,500,1000,2000,4000,8000",
    "Prompt lengths of the scaling run; the response has the shortest length of --responses.",
)
@listed(
    "--responses",
    click.IntRange(1),
    "50,100,250,500,1000,2000",
    "Response lengths of the scaling run; the prompt has --prompt tokens.",
)
@click.option("--plot", type=OutputFile(), help="Log-log plot of the scaling run (.png, .svg).")
@click.option(
    "--out",
    type=OutputFile(),
    help="Keep measured cells in this file; a run with the same file resumes after the last one.",
)
@as_json
@click.option("--reader", default=DEFAULT_READER, show_default=True, help="A Llama: name, folder or .gguf.")
@click.option("--envs", type=click.Path(path_type=Path), help="Folder of the peers' environments.")
@click.option("--limit", default=120.0, show_default=True, help="Seconds a cell may take, or it is skipped.")
def main(
    prompt: int,
    response: int,
    peers: tuple[str, ...],
    rounds: int,
    scaling: bool,
    prompts: tuple[int, ...],
    responses: tuple[int, ...],
    plot: Path | None,
    out: Path | None,
    as_json: bool,
    reader: str,
    envs: Path | None,
    limit: float,
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
    if plot is not None and not scaling:
        raise click.UsageError("--plot shows the scaling run; add --scaling")
    with exit_codes():
        folder = str(resolve(reader))
        setup = measured_setup(folder, limit)
        cells = Cells(out, setup)
    sweeps = (Sweep("prompt", prompts, min(responses)), Sweep("response", responses, prompt))
    sizes = [size for sweep in sweeps for size in sweep.sizes()] if scaling else [(prompt, response)]
    ids = tuple(example_ids(folder, max(map(sum, sizes))))
    job = Job(folder, ids[:1], ids[1:], envs or default_folder(), limit)
    if scaling:
        window = read_record(Path(folder) / "config.json", "a model's config")["max_position_embeddings"]
        found = {sweep.side: measure_sweep(job, sweep, peers or SCALED, window, cells) for sweep in sweeps}
        if plot is not None:
            report.plot(found, plot)
        result: dict[str, Any] = {f"{side}_sweep": sweep for side, sweep in found.items()}
        text = [line for sweep in found.values() for line in report.scaling_lines(sweep)]
    else:
        job = job.cut(prompt, response)
        table = report.summarise(*measure_table(job, peers or tuple(PEERS), rounds, cells))
        result = {"prompt": prompt, "response": response, "peers": table}
        about = f"{prompt} prompt and {response} response tokens, float32; seconds, ~: extrapolated"
        text = [about, "", *report.lines(table)]
    click.echo(json.dumps({"setup": setup, **result}, indent=2) if as_json else "\n".join(text))


if __name__ == "__main__":
    main()
