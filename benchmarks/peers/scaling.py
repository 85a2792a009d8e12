"""How time grows with the length of the prompt and of the response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.client import Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.store import Cell, Store
from benchmarks.peers.table import Say
from benchmarks.peers.totals import QUANTITIES, Unit, exponent, spread, totals

ROWS = 3
"""Rows (or columns) timed in a cell, one at a time."""


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


def measure_sweep(
    job: Job, sweep: Sweep, peers: Sequence[str], window: int, store: Store, say: Say
) -> dict[str, Any]:
    """Records of all cells of a sweep and its fitted exponents; README.md documents the keys."""
    records = []
    for peer in peers:
        known: list[Cell] = []
        for n, t in sweep.sizes():
            key = f"scaling {n}+{t} {peer}"
            if key not in store:
                say(key)
            cell = _cell(job, peer, n, t, window, known, store, key)
            if "about" in cell:
                known.append(cell)
            records += _records(cell, peer, sweep.side, n, t)
    return {"cells": records, "exponents": _exponents(records, sweep.side)}


def _cell(
    job: Job, peer: str, n: int, t: int, window: int, known: list[Cell], store: Store, key: str
) -> Cell:
    if n + t - 1 > window:
        return {"skipped": f"{n} + {t} tokens do not fit the model's window of {window}"}
    try:
        return store.cell(key, lambda: _measure(job.cut(n, t), peer, known))
    except UnavailableError as error:  # not stored: the next run may have its environment
        return {"skipped": str(error)}


def _measure(job: Job, peer: str, known: list[Cell]) -> Cell:
    """Time what the smaller cells say takes no more than the limit, and say why the rest is skipped."""
    tokens = len(job.prompt_ids) + len(job.response_ids) - 1
    reason = _too_long(known, "forward", tokens, job.limit)
    if reason:
        return {"skipped": f"a plain forward pass {reason}"}
    with Worker(peer, job) as worker:
        whole = worker.about["whole"]
        cell: Cell = {"about": worker.about, "tokens": tokens, "seconds": {}, "peak_bytes": {}, "skipped": {}}
        for what in ("forward", *whole, "units"):
            reason = _too_long(known, what, tokens, job.limit)
            if what == "units" and "prompt" in whole and "prompt" not in cell["seconds"]:
                reason = reason or "what its rows share was not made, see prompt"
            try:
                if not reason:
                    _time(worker, what, cell)
            except PeerError as error:
                reason = str(error)
            if reason:
                cell["skipped"][what] = reason
    return cell


def _time(worker: Worker, what: str, cell: Cell) -> None:
    if what != "units" or "prompt" not in worker.about["whole"]:
        worker.ask("forget")
    if what != "units":
        answer = worker.ask(what)
        cell["seconds"][what] = answer.seconds
    else:
        firsts = spread(worker.about["units"], 1, min(ROWS, worker.about["units"]))
        answers = [worker.ask("units", first=first, count=1) for first in firsts]
        cell["units"] = [
            {"first": first, "count": 1, "seconds": answer.seconds}
            for first, answer in zip(firsts, answers, strict=True)
        ]
        cell["seconds"][what] = sum(answer.seconds for answer in answers)
        answer = answers[-1]
    cell["peak_bytes"][what] = answer.peak_bytes


def _too_long(known: list[Cell], what: str, tokens: int, limit: float) -> str:
    """Why a request should be skipped, from what it took in smaller cells; empty where it should not."""
    if known and what in known[-1]["skipped"]:
        reason: str = known[-1]["skipped"][what]
        return reason if reason.startswith("a smaller cell") else f"a smaller cell was skipped: {reason}"
    timed = [(cell["tokens"], cell["seconds"][what]) for cell in known if what in cell["seconds"]]
    if not timed:
        return ""
    estimate = estimated(timed, tokens)
    return f"would take about {estimate:.0f} s, over {limit:.0f} s" if estimate > limit else ""


def estimated(timed: Sequence[tuple[int, float]], tokens: int) -> float:
    """Seconds at `tokens` by the growth of the last two cells, held between linear and quadratic."""
    last, seconds = timed[-1]
    power = 1.5
    if len(timed) > 1 and timed[-2][0] < last:
        power = math.log(seconds / timed[-2][1]) / math.log(last / timed[-2][0])
    growth: float = (tokens / last) ** min(max(power, 1.0), 2.0)
    return seconds * growth


def _records(cell: Cell, peer: str, side: str, n: int, t: int) -> list[dict[str, Any]]:
    """One record per quantity, with its seconds or with the reason why it has none."""
    base = {"peer": peer, "sweep": side, "prompt": n, "response": t}
    if "about" not in cell:
        skipped = {**base, "seconds": None, "skipped": cell["skipped"]}
        return [{**skipped, "quantity": what} for what in QUANTITIES]
    seconds, peaks, about = cell["seconds"], cell["peak_bytes"], cell["about"]
    units = [Unit(**unit) for unit in cell.get("units", [])]
    found = totals(about, seconds.get("response"), seconds.get("prompt"), units)
    records = []
    for what in QUANTITIES:
        request = what if what in about["whole"] else "units"
        record = {**base, "quantity": what, "forward_seconds": seconds.get("forward")}
        if what in found:
            total = found[what]
            record |= {"seconds": total.seconds, "extrapolated": total.extrapolated}
            record["peak_bytes"] = peaks[request]
        else:
            record |= {"seconds": None, "skipped": cell["skipped"].get(request, "not measured")}
        records.append(record)
    return records


def _exponents(records: Sequence[dict[str, Any]], side: str) -> list[dict[str, Any]]:
    """The power of the length that each peer's time grows with, where at least three cells were timed."""
    fits = []
    for peer in dict.fromkeys(record["peer"] for record in records):
        for what in QUANTITIES:
            points = [
                (record[side], record["seconds"])
                for record in records
                if record["peer"] == peer and record["quantity"] == what and record["seconds"]
            ]
            if len(points) >= 3:
                fit = {"peer": peer, "sweep": side, "quantity": what, "points": len(points)}
                fits.append({**fit, "exponent": exponent(*zip(*points, strict=True))})
    return fits
