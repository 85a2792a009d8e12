"""How time grows with the length of the prompt and of the response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cells import Cell, Cells
from benchmarks.harness import exponent
from benchmarks.peers.client import Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.table import Say
from benchmarks.peers.totals import QUANTITIES, spread, totals

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
    job: Job, sweep: Sweep, peers: Sequence[str], window: int, cells: Cells, say: Say
) -> dict[str, Any]:
    """Records of all cells of a sweep and its fitted exponents; README.md documents the keys."""
    records = []
    for peer in peers:
        known: list[Cell] = []
        for n, t in sweep.sizes():
            key = f"scaling {n}+{t} {peer}"
            if key not in cells:
                say(key)
            cell = _cell(job, peer, n, t, window, known, cells, key)
            if "about" in cell:
                known.append(cell)
            records += _records(cell, peer, sweep.side, n, t)
    return {"cells": records, "exponents": _exponents(records, sweep.side)}


def _cell(
    job: Job, peer: str, n: int, t: int, window: int, known: list[Cell], cells: Cells, key: str
) -> Cell:
    if n + t - 1 > window:
        return {"skipped": f"{n} + {t} tokens do not fit the model's window of {window}"}
    try:
        return cells.cell(key, lambda: _measure(job.cut(n, t), peer, known))
    except UnavailableError as error:  # not stored: the next run may have its environment
        return {"skipped": str(error)}


def _measure(job: Job, peer: str, smaller: list[Cell]) -> Cell:
    """Time what the smaller cells say takes no more than the limit, and say why the rest is skipped."""
    with Worker(peer, job) as worker:
        whole = worker.about["whole"]
        tokens = len(job.prompt_ids) + len(job.response_ids) - 1
        cell: Cell = {"about": worker.about, "tokens": tokens, "seconds": {}, "peak_bytes": {}, "skipped": {}}
        for what in ("forward", *whole, "units"):
            reason = _too_long(smaller, what, tokens, job.limit)
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
    if what == "units":
        firsts = spread(worker.about["units"], 1, min(ROWS, worker.about["units"]))
        answers = [worker.ask("units", first=first, count=1) for first in firsts]
        cell["units"] = [
            {"first": first, "count": 1, "seconds": answer.seconds}
            for first, answer in zip(firsts, answers, strict=True)
        ]
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
        power = math.log(seconds / timed[-2][1]) / math.log(last / timed[-2][0])
    growth: float = (tokens / last) ** min(max(power, 1.0), 2.0)
    return seconds * growth


def _records(cell: Cell, peer: str, side: str, n: int, t: int) -> list[dict[str, Any]]:
    """One record per quantity, with its seconds or with the reason why it has none."""
    base = {"peer": peer, "sweep": side, "prompt": n, "response": t}
    if "about" not in cell:
        return [
            {**base, "seconds": None, "skipped": cell["skipped"], "quantity": what} for what in QUANTITIES
        ]
    seconds, about = cell["seconds"], cell["about"]
    found = totals(about, seconds.get("response"), seconds.get("prompt"), cell.get("units", []))
    records = []
    for what in QUANTITIES:
        request = what if what in about["whole"] else "units"
        record = {**base, "quantity": what, "forward_seconds": seconds.get("forward")}
        if what in found:
            record |= {"seconds": found[what].seconds, "extrapolated": found[what].extrapolated}
            record["peak_bytes"] = cell["peak_bytes"][request]
        else:
            record |= {"seconds": None, "skipped": cell["skipped"].get(request, "not measured")}
        records.append(record)
    return records


def _exponents(records: Sequence[dict[str, Any]], side: str) -> list[dict[str, Any]]:
    """The power of the length that each peer's time grows with, where at least three cells were timed."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for record in records:
        if record["seconds"]:
            key = record["peer"], record["quantity"]
            points.setdefault(key, []).append((record[side], record["seconds"]))
    return [
        {
            **{"peer": peer, "sweep": side, "quantity": what, "points": len(found)},
            "exponent": exponent(*zip(*found, strict=True)),
        }
        for (peer, what), found in points.items()
        if len(found) >= 3
    ]
