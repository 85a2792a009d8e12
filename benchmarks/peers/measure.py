"""What is measured of every peer: the table of one size, and how time grows with length.

The table's rounds alternate between the peers, so that ratios hold on a noisy machine. In the scaling run,
each cell is a fresh process, which times three rows (or columns) one at a time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import click

from benchmarks.cells import Cell, Cells
from benchmarks.harness import difference, exponent, exponents
from benchmarks.peers.client import Answer, Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError

QUANTITIES = ("response", "prompt", "matrix")
"""R_response, R_prompt and the full R*."""
ROWS = 3
"""Rows (or columns) timed in a cell of the scaling run."""


class Total(NamedTuple):
    """Seconds of a whole quantity; extrapolated where only some rows were timed."""

    seconds: float
    extrapolated: bool


def unit_seconds(about: dict[str, Any], units: Sequence[Cell]) -> float:
    """Mean seconds of a row (or column): positions are spread evenly, so their mean stands for all."""
    return statistics.fmean(unit["seconds"] / (unit["count"] + about["extra_units"]) for unit in units)


def totals(
    about: dict[str, Any], response: float | None, prompt: float | None, units: Sequence[Cell]
) -> dict[str, Total]:
    """Every quantity that what was timed allows to state.

    R_prompt in one pass is what units share (a graph, a replay) and one unit more, so that the shared
    part is told from it without being timed alone.
    """
    found: dict[str, Total] = {}
    if units:
        unit = unit_seconds(about, units)
        shared = 0.0 if prompt is None else max(prompt - unit, 0.0)
        covered = {one["first"]: one["count"] for one in units}
        whole = shared + (about["units"] + about["extra_units"]) * unit
        found = dict.fromkeys(QUANTITIES, Total(whole, sum(covered.values()) < about["units"]))
    for name, seconds in (("response", response), ("prompt", prompt)):
        if name in about["whole"]:
            found.pop(name, None)
            if seconds is not None:
                found[name] = Total(seconds, False)
    return found


def spread(about: dict[str, Any], chunk: int, calls: int) -> list[tuple[int, int]]:
    """First unit and number of units of `calls` chunks in the middle of equal parts of the response."""
    slots = math.ceil(about["units"] / chunk)
    firsts = [int((k + 0.5) / calls * slots) * chunk for k in range(calls)]
    return [(first, min(chunk, about["units"] - first)) for first in firsts]


def timed_units(worker: Worker, parts: list[tuple[int, int]]) -> tuple[list[Cell], list[Answer]]:
    """One timed call for `count` rows (or columns) of R*, from `first` on, for each of the parts."""
    answers = [worker.ask("units", first=first, count=count) for first, count in parts]
    units: list[Cell] = [
        {"first": first, "count": count, "seconds": answer.seconds}
        for (first, count), answer in zip(parts, answers, strict=True)
    ]
    return units, answers


# The table


@dataclass
class Session:
    """The workers of one table, each started when it is first needed."""

    job: Job
    opened: ExitStack
    _workers: dict[tuple[str, str], Worker] = field(default_factory=dict)
    _ours: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def worker(self, peer: str, composite: str = "attnlrp") -> Worker:
        key = peer, composite
        if key not in self._workers:
            worker = self.opened.enter_context(closing(Worker(peer, self.job, composite)))
            worker.ask("units", first=0, count=1)  # the first call of a library sets things up
            self._workers[key] = worker
        return self._workers[key]

    def ours(self, composite: str, what: str, **request: int) -> Any:
        """What ours gives under a composite: the explained logits (`forward`), R_response, R_prompt, rows."""
        key = (composite, what, *request.values())
        if key not in self._ours:
            self._ours[key] = self.worker("ours", composite).ask(what, **request).values
        return self._ours[key]


def measure_table(
    job: Job, peers: Sequence[str], rounds: int, cells: Cells
) -> tuple[dict[str, list[Cell]], dict[str, str]]:
    """By peer, its memory and then its rounds; and why the peers that are missing are missing."""
    size = f"{len(job.prompt_ids)}+{len(job.response_ids)}"
    found: dict[str, list[Cell]] = {peer: [] for peer in peers}
    missing: dict[str, str] = {}
    with ExitStack() as opened:
        session = Session(job, opened)
        steps: list[tuple[str, str, Callable[[], Cell]]]
        steps = [(peer, f"memory {size} {peer}", partial(_memory, job, peer)) for peer in peers]
        steps += [
            (
                peer,
                f"table {size} round {k + 1} of {rounds} {peer}",
                partial(_round, session, peer, k, rounds),
            )
            for k in range(rounds)
            for peer in peers
        ]
        for peer, key, measure in steps:
            if peer not in missing:
                try:
                    found[peer].append(cells.cell(key, measure))
                except (UnavailableError, PeerError) as error:
                    missing[peer] = str(error)
                    click.echo(f"{peer}: {error}", err=True)
    return found, missing


def _memory(job: Job, peer: str) -> Cell:
    """Peak resident bytes of a fresh process, for each thing it does, its weights included."""
    with closing(Worker(peer, job)) as worker:
        about, peaks = worker.about, {}
        for what in ("forward", *about["whole"]):
            worker.ask("forget")
            peaks[what] = worker.ask(what).peak_bytes
        worker.ask("forget")
        count = min(about["chunk"], about["units"])
        last = worker.ask("units", first=about["units"] - count, count=count)  # these need the most
    return {what: peaks.get(what, last.peak_bytes) for what in ("forward", *QUANTITIES)}


def _round(session: Session, peer: str, k: int, rounds: int) -> Cell:
    """One round of one peer: a plain forward, what it gets whole, some rows, a plain forward."""
    worker = session.worker(peer)
    about = worker.about
    before = worker.ask("forward")
    whole = {what: worker.ask(what) for what in about["whole"]}
    units, answers = timed_units(worker, spread(about, about["chunk"], rounds * about["picks"])[k::rounds])
    after = worker.ask("forward")
    errors = {"logits": difference(before.values, session.ours("attnlrp", "forward"))}
    if about["agrees_with"] and peer != "ours":
        rows = {
            j: row
            for unit, answer in zip(units, answers, strict=True)
            for j, row in enumerate(answer.values, unit["first"])
        }
        errors |= _agreement(partial(session.ours, about["agrees_with"]), rows)
        if "prompt" in whole:
            expected = session.ours(about["agrees_with"], "prompt")
            errors["prompt"] = difference(whole["prompt"].values, expected)
    return {
        "about": about,
        "forward": (before.seconds + after.seconds) / 2,
        **{what: answer.seconds for what, answer in whole.items()},
        "units": units,
        "errors": errors,
    }


def _agreement(ours: Callable[..., Any], rows: dict[int, list[float]]) -> dict[str, float]:
    """Relative errors of rows of R*, and of their means (against R_response, pushed)."""
    response = ours("response")
    largest = max(abs(value) for value in response)
    return {
        "response": max(abs(statistics.fmean(row) - response[j]) / largest for j, row in rows.items()),
        "row": max(difference(row, ours("units", first=j, count=1)[0]) for j, row in rows.items()),
    }


# The scaling run


@dataclass(frozen=True)
class Sweep:
    """Lengths of one side, with the other side's length fixed."""

    side: str  # prompt or response
    lengths: tuple[int, ...]
    fixed: int

    def sizes(self) -> list[tuple[int, int]]:
        """(prompt, response) of every cell, from small to large."""
        pairs = [(length, self.fixed) for length in sorted(self.lengths)]
        return pairs if self.side == "prompt" else [(n, t) for t, n in pairs]


def measure_sweep(job: Job, sweep: Sweep, peers: Sequence[str], window: int, cells: Cells) -> dict[str, Any]:
    """Records of all cells of a sweep and its fitted exponents; README.md documents the keys."""
    records = []
    for peer in peers:
        smaller: list[Cell] = []
        for n, t in sweep.sizes():
            measure = partial(_cell, job.cut(n, t), peer, smaller)
            try:
                if n + t - 1 > window:
                    raise UnavailableError(f"{n} + {t} tokens do not fit the model's window of {window}")
                smaller.append(cells.cell(f"scaling {n}+{t} {peer}", measure))
                quantities = _records(smaller[-1])
            except UnavailableError as error:  # not stored: the next run may have its environment
                quantities = [{"seconds": None, "skipped": str(error), "quantity": one} for one in QUANTITIES]
            base = {"peer": peer, "sweep": sweep.side, "prompt": n, "response": t}
            records += [base | one for one in quantities]
    fits = exponents(records, ("peer", "sweep", "quantity"), sweep.side, "seconds", least=3)
    return {"cells": records, "exponents": fits}


def _cell(job: Job, peer: str, smaller: list[Cell]) -> Cell:
    """Time what the smaller cells say takes no more than the limit, and say why the rest is skipped."""
    with closing(Worker(peer, job)) as worker:
        about, tokens = worker.about, len(job.prompt_ids) + len(job.response_ids) - 1
        cell: Cell = {"about": about, "tokens": tokens, "seconds": {}, "peak_bytes": {}, "skipped": {}}
        shares = "prompt" in about["whole"]  # what it made for that, rows begin with
        for what in ("forward", *about["whole"], "units"):
            reason = _too_long(smaller, what, tokens, job.limit)
            if not reason and what == "units" and shares and "prompt" not in cell["seconds"]:
                reason = "what its rows share was not made, see prompt"
            try:
                if not reason:
                    if what != "units" or not shares:
                        worker.ask("forget")
                    _time(worker, what, cell)
            except PeerError as error:
                reason = str(error)
            if reason:
                cell["skipped"][what] = reason
    return cell


def _time(worker: Worker, what: str, cell: Cell) -> None:
    if what == "units":
        parts = spread(worker.about, 1, min(ROWS, worker.about["units"]))
        cell["units"], answers = timed_units(worker, parts)
    else:
        answers = [worker.ask(what)]
    cell["seconds"][what] = sum(answer.seconds for answer in answers)
    cell["peak_bytes"][what] = answers[-1].peak_bytes


def _too_long(smaller: list[Cell], what: str, tokens: int, limit: float) -> str:
    """Why a request should be skipped, from what it took in smaller cells; empty where it should not."""
    if smaller and what in smaller[-1]["skipped"]:
        reason: str = smaller[-1]["skipped"][what]
        return reason if reason.startswith("a smaller cell") else f"a smaller cell was skipped: {reason}"
    timed = [(cell["tokens"], cell["seconds"][what]) for cell in smaller if what in cell["seconds"]]
    estimate = estimated(timed, tokens) if timed else 0.0
    return f"would take about {estimate:.0f} s, over {limit:.0f} s" if estimate > limit else ""


def estimated(timed: Sequence[tuple[int, float]], tokens: int) -> float:
    """Seconds at `tokens` by the growth of the last two cells, held between linear and quadratic."""
    last, seconds = timed[-1]
    power = 1.5
    if len(timed) > 1 and timed[-2][0] < last:
        power = exponent(*zip(*timed[-2:], strict=True))
    growth: float = (tokens / last) ** min(max(power, 1.0), 2.0)
    return seconds * growth


def _records(cell: Cell) -> list[dict[str, Any]]:
    """One record per quantity, with its seconds or with the reason why it has none."""
    seconds, about = cell["seconds"], cell["about"]
    found = totals(about, seconds.get("response"), seconds.get("prompt"), cell.get("units", []))
    records = []
    for what in QUANTITIES:
        request = what if what in about["whole"] else "units"
        record = {"quantity": what, "forward_seconds": seconds.get("forward")}
        if what in found:
            record |= {"seconds": found[what].seconds, "extrapolated": found[what].extrapolated}
            record["peak_bytes"] = cell["peak_bytes"][request]
        else:
            record |= {"seconds": None, "skipped": cell["skipped"].get(request, "not measured")}
        records.append(record)
    return records
