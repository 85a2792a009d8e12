"""The table: what the rounds say about every peer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.cells import Cell
from benchmarks.command import table
from benchmarks.peers.totals import QUANTITIES, totals, unit_seconds


def summarise(
    cells: dict[str, list[Cell]], memory: dict[str, Cell], missing: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """One record per peer; README.md documents the keys."""
    rows = {peer: _peer(rounds, memory[peer]) for peer, rounds in cells.items() if peer not in missing}
    ours = rows.get("ours")
    if ours is not None:
        for row in rows.values():
            for what in (*QUANTITIES, "row"):
                seconds = row[f"{what}_seconds"]
                known = seconds is not None and ours[f"{what}_seconds"]
                row[f"{what}_over_ours"] = seconds / ours[f"{what}_seconds"] if known else None
    for peer, reason in missing.items():
        rows[peer] = {"available": False, "reason": reason}
    return {peer: rows[peer] for peer in cells}


def _peer(rounds: Sequence[Cell], memory: Cell) -> dict[str, Any]:
    about = rounds[0]["about"]
    units = [unit for cell in rounds for unit in cell["units"]]
    found = totals(about, _median(rounds, "response"), _median(rounds, "prompt"), units)
    forward, row = statistics.median(cell["forward"] for cell in rounds), unit_seconds(about, units)
    names = sorted({name for cell in rounds for name in cell["errors"]})
    errors = {f"{name}_error": max(cell["errors"][name] for cell in rounds) for name in names}
    record: dict[str, Any] = {"available": True, "versions": about["versions"], "threads": about["threads"]}
    record["forward_seconds"] = forward
    for what in QUANTITIES:
        record[f"{what}_seconds"] = found[what].seconds
        record[f"{what}_extrapolated"] = found[what].extrapolated
    record |= {
        "row_seconds": row if about["axis"] == "row" else None,
        # In the rounds, rows and the forward passes of the same process lie side by side.
        "row_forwards": row / statistics.fmean(cell["forward"] for cell in rounds),
        "unit": about["axis"],
        "units_timed": sum(unit["count"] for unit in units),
        "units": about["units"],
        "peak_bytes": memory,
        "agrees_with": about["agrees_with"] or None,
        "explains": about["explains"],
        **errors,
    }
    return record


def _median(rounds: Sequence[Cell], what: str) -> float | None:
    seconds = [cell[what] for cell in rounds if what in cell]
    return statistics.median(seconds) if seconds else None


def lines(peers: dict[str, dict[str, Any]]) -> list[str]:
    """The table for people, in seconds; `~`: extrapolated from the rows that were timed."""
    measured = {name: row for name, row in peers.items() if row["available"]}
    head = ("", "R_response", "R_prompt", "R*", "row/fwd", "forward", "peak GB", "error", "agrees with")
    ratios = [
        (name, *(_number(row.get(f"{what}_over_ours")) for what in (*QUANTITIES, "row")))
        for name, row in measured.items()
    ]
    text = table(head, [_line(name, row) for name, row in measured.items()])
    text += ["", *table(("over ours", "R_response", "R_prompt", "R*", "a row"), ratios), ""]
    for name, row in peers.items():
        if not row["available"]:
            text.append(f"{name}: not measured: {row['reason']}")
            continue
        if row["logits_error"] > 1e-3:
            text.append(f"{name}: its logits differ by {row['logits_error']:.1e}, so it runs another model")
        if not row["agrees_with"]:
            text.append(f"{name} explains {row['explains']}, so its numbers are others")
        if row["unit"] == "column":
            text.append(f"{name} computes columns of R*, not rows")
    return text


def _line(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    marks = ["~" if row[f"{what}_extrapolated"] else "" for what in QUANTITIES]
    return (
        name,
        *(mark + _number(row[f"{what}_seconds"]) for mark, what in zip(marks, QUANTITIES, strict=True)),
        _number(row["row_forwards"]),
        _number(row["forward_seconds"]),
        f"{max(row['peak_bytes'].values()) / 1e9:.2f}",
        f"{row['response_error']:.0e}" if "response_error" in row else "-",
        row["agrees_with"] or "-",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
