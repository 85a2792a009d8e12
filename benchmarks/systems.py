"""What one more response costs each system that `experiments compare` compares: seconds, peak memory,
and plain forwards of the reader in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import torch

from benchmarks.command import SETTINGS, OutputFile, count, exit_codes, gigabytes
from benchmarks.harness import apart, forget_peak, peak_resident, seconds
from experiments.cache import Cache
from experiments.systems.baseline import NOTHING
from experiments.systems.comparison import read_costs
from experiments.systems.folds import BUNDLED, sample_of
from experiments.systems.registry import BASELINES
from experiments.systems.resources import Resources
from lrp4rag.classifiers import Model
from lrp4rag.judge import analyse
from lrp4rag.reader.reader import check_device, fastest_dtype
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.text import one_line

Call = Callable[[int], object]
SOURCES = 80  # of which the fold learns from four fifths: enough to calibrate what is trained, in couples too


def call_of(name: str, rows: Rows, learn: np.ndarray, resources: Resources) -> Call | None:
    """What judges the row of a number from scratch; None where nothing was learned that asks no model."""
    if name in BUNDLED:
        detector = Model.load(BUNDLED[name])
        return lambda k: analyse(rows.examples[k], resources.reader, detector)
    baseline = BASELINES[name]
    fitted = baseline.fit(rows.select(learn), resources)
    if fitted.chosen == NOTHING:
        measured = fitted.read(rows.select(learn[:1]), resources).measurements
        if not any(one.asked for one in measured):
            return None

    def judge(k: int) -> None:
        if baseline.facts.needs:
            states_of(rows, k, resources)
        fitted.read(rows.select([k]), resources.uncached)

    return judge


def ids_of(rows: Rows, k: int, resources: Resources) -> torch.Tensor:
    encoded = resources.reader.encode(rows.examples[k])
    return torch.tensor([[*encoded.prompt_ids, *encoded.response_ids]], device=resources.reader.model.device)


@torch.no_grad()
def states_of(rows: Rows, k: int, resources: Resources) -> None:
    model = resources.reader.model
    model.set_attn_implementation("eager")
    model(ids_of(rows, k, resources), output_hidden_states=True, output_attentions=True)
    model.set_attn_implementation("sdpa")


@torch.no_grad()
def forward(rows: Rows, k: int, resources: Resources) -> None:
    resources.reader.model(ids_of(rows, k, resources))


def measure(name: str, store: Path, responses: int) -> dict[str, Any] | None:
    """None for a system that learned nothing, and judges nothing."""
    rows, resources = Rows.open(store), Resources(Cache.open())
    split = folds_of(tokens_of(rows, {}), ONCE)[0]
    learn = split.train[np.isin(split.train, sample_of(rows, SOURCES))]
    judged = split.test[np.isin(split.test, sample_of(rows))]
    call = call_of(name, rows, learn, resources)
    if call is None:
        return None
    warm, *some = judged[: responses + 1].tolist()
    call(warm)
    forget_peak()
    taken = [seconds(partial(call, k)) for k in some]
    peak = peak_resident()  # before the reader is loaded for the forwards: not every system needs it
    forward(rows, warm, resources)
    plain = [seconds(partial(forward, rows, k, resources)) for k in some]
    return {"seconds": median(taken), "forwards": median(taken) / median(plain), "peak_bytes": peak}


def known_costs(out: Path, conditions: str) -> dict[str, dict[str, Any]]:
    """What was measured before, under the same conditions; nothing where there is no file.

    Raises `InputError` where it was measured under others, or is none of this benchmark's.
    """
    if not out.exists():
        return {}
    found = read_costs(out)
    if found.conditions != conditions:
        raise InputError(f"measured with {one_line(found.conditions, 300)}: name another file", path=out)
    return {name: asdict(one) for name, one in found.systems.items()}


@click.command(context_settings=SETTINGS)
@click.option("--store", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=OutputFile(), help="Also write JSON here.")
@click.option("--system", "systems", multiple=True, help="Only this; repeat it for several.")
@count("--responses", 5, "Judged by each system.")
def main(store: Path, out: Path | None, systems: tuple[str, ...], responses: int) -> None:
    """Cost of one response, for every system."""
    conditions = (
        f"{Resources().choice.name} in {fastest_dtype(check_device(None))}, "
        f"{torch.get_num_threads()} threads, median of {responses}"
    )
    with exit_codes():
        known = {} if out is None else known_costs(out, conditions)
    for name in systems or [name for name in (*BUNDLED, *BASELINES) if name not in known]:
        one = apart(measure, name, store, responses)
        if one is None:
            click.echo(f"{name:<24} learned nothing from {SOURCES} sources: not measured")
            continue
        known[name] = one
        peak = gigabytes(one["peak_bytes"])
        click.echo(f"{name:<24}{one['seconds']:>8.2f} s{one['forwards']:>8.1f} forwards{peak:>12}")
        if out is not None:
            content = {"systems": known, "conditions": conditions}
            write_atomically(out, json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
