"""lrp4rag against LXT, captum and the paper's algorithm: time, memory, agreement of the numbers."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import click

from benchmarks import command
from benchmarks.command import Report, benchmark, count, listed, table
from benchmarks.harness import difference
from benchmarks.peers.environments import python_of, variables
from benchmarks.peers.methods import PEERS
from lrp4rag.reader.weights import DEFAULT_READER, resolve
from lrp4rag.util.errors import InputError, LRP4RAGError

ROWS = 3
"""Rows of R* that are timed in a round."""
Round = dict[str, Any]


def run(peer: str, task: dict[str, Any], composite: str = "attnlrp") -> Round:
    """One round in a fresh process. Raises `LRP4RAGError` with its last line where it fails."""
    given = json.dumps({"peer": peer, "composite": composite, **task})
    process = subprocess.run(
        [str(python_of(peer)), "-m", "benchmarks.peers.worker", given],
        capture_output=True, text=True, env=variables(peer), check=False,
    )  # fmt: skip
    if process.returncode:
        raise LRP4RAGError(f"{peer}: {(process.stderr.strip().splitlines() or ['no message'])[-1][:300]}")
    measured: Round = json.loads(process.stdout.splitlines()[-1])
    return measured


def rows_of(response: int, rounds: int) -> list[list[int]]:
    """By round, rows in the middle of equal parts of the response: their mean stands for all."""
    parts = min(rounds * ROWS, response)
    middles = [int((k + 0.5) / parts * response) for k in range(parts)]
    return [middles[k::rounds] or middles[:1] for k in range(rounds)]


def summary(rounds: Sequence[Round], whole: Sequence[str], response: int) -> dict[str, Any]:
    """Medians of a peer's rounds. A quantity that it does not get whole takes all rows of R*, from those that
    were timed; R_prompt in one pass is what the rows share, and one row more."""
    row = statistics.median(
        seconds for one in rounds for name, seconds in one["seconds"].items() if name.startswith("row")
    )
    taken = {name: statistics.median(one["seconds"][name] for one in rounds) for name in ("forward", *whole)}
    shared = max(taken["prompt"] - row, 0.0) if "prompt" in whole else 0.0
    matrix = shared + response * row
    result = {f"{name}_seconds": taken.get(name, matrix) for name in ("forward", "response", "prompt")}
    peaks = {
        name: max(peak for one in rounds for key, peak in one["peak_bytes"].items() if key.startswith(name))
        for name in ("forward", *whole, "row")
    }
    return result | {"matrix_seconds": matrix, "row_seconds": row, "whole": list(whole), "peak_bytes": peaks}


def errors(rounds: Sequence[Round], ours: Sequence[Round]) -> dict[str, float]:
    """The largest differences from ours over the largest expected value: of the logits of a plain forward, of
    R_prompt, of rows, and of the rows' means from R_response."""
    found = defaultdict[str, list[float]](list)
    for theirs, expected in (
        (one["values"], other["values"]) for one, other in zip(rounds, ours, strict=True)
    ):
        for name, values in theirs.items():
            kind, _, j = name.partition(" ")
            found["logits" if kind == "forward" else kind].append(difference(values, expected[name]))
            if kind == "row":
                error = statistics.fmean(values) - expected["response"][int(j)]
                found["response"].append(abs(error) / max(map(abs, expected["response"])))
    return {kind: max(values) for kind, values in found.items()}


@benchmark
@count("--prompt", 400, "Prompt tokens.")
@count("--response", 240, "Response tokens.", least=2)
@listed("--peers", click.Choice(list(PEERS)), ",".join(PEERS), "Compared.")
@command.rounds(default=5)
@click.option("--reader", default=DEFAULT_READER, show_default=True, help="A Llama: name, folder or .gguf.")
def main(prompt: int, response: int, peers: tuple[str, ...], rounds: int, reader: str) -> Report:
    """lrp4rag against LXT, captum and the paper's algorithm: time, memory, agreement.

    \b
    First make the environment of LXT (once, about 1 GB):
      python -m benchmarks.peers.environments
    Then, on a quiet machine:
      python -m benchmarks.peers.run --out docs/results/speed/table.json

    All peers get the same model, tokens, machine and threads, and each a fresh process a round, in turn, that
    also times a plain forward pass. A few rows of R* are timed, and their mean stands for all.
    """
    model = str(resolve(reader))
    known: dict[str, list[Round]] = {peer: [] for peer in ("ours", *peers)}
    expected: dict[str, list[Round]] = {"attnlrp": known["ours"], "paper": []}
    missing: dict[str, str] = {}
    for rows in rows_of(response, rounds):
        task = {"model": model, "prompt": prompt, "response": response, "rows": rows}
        for peer in known:
            try:
                known[peer] += [run(peer, task)] if peer not in missing else []
            except (InputError, LRP4RAGError) as error:
                missing[peer] = str(error)
        expected["paper"] += [run("ours", task, "paper")] if "paper-loop" in known else []
    result: dict[str, Any] = {peer: {"reason": reason} for peer, reason in missing.items()}
    for peer in known.keys() - missing.keys():
        found = summary(known[peer], PEERS[peer].whole, response)
        composite = PEERS[peer].agrees_with
        found["versions"] = known[peer][0]["versions"]
        found["errors"] = errors(known[peer], expected[composite]) if composite else {}
        result[peer] = found
    heads = ("response", "prompt", "matrix", "row", "forward")
    lines = [
        (
            peer,
            *(f"{result[peer][f'{head}_seconds']:.3g}" for head in heads),
            f"{result[peer]['response_seconds'] / result['ours']['response_seconds']:.3g}",
            f"{max(result[peer]['peak_bytes'].values()) / 1e9:.2f}",
            f"{result[peer]['errors'].get('response', 0):.0e}",
        )
        for peer in known
        if peer not in missing
    ]
    columns = ("", "R_response, s", "R_prompt", "R*", "a row", "forward", "over ours", "peak GB", "error")
    return {"peers": result}, [*table(columns, lines), "", *(f"{p}: {why}" for p, why in missing.items())]


if __name__ == "__main__":
    main()
