"""What is shown of the measured cells: records and tables for both runs, and the scaling run's figure."""

from __future__ import annotations

import io
import statistics
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.command import table
from benchmarks.harness import exponent
from benchmarks.peers.measure import QUANTITIES, totals, unit_seconds
from lrp4rag.report.figure_text import save_as
from lrp4rag.util.files import write_atomically

TITLES = {"response": "R_response", "prompt": "R_prompt", "matrix": "full R*"}


def summarise(cells: dict[str, list[Cell]], missing: dict[str, str]) -> dict[str, dict[str, Any]]:
    """One record per peer, from its memory and its rounds; README.md documents the keys."""
    rows = {peer: _peer(*found) for peer, found in cells.items() if peer not in missing}
    ours = rows.get("ours")
    if ours is not None:
        for row in rows.values():
            for what in (*QUANTITIES, "row"):
                seconds = row[f"{what}_seconds"]
                row[f"{what}_over_ours"] = None if seconds is None else seconds / ours[f"{what}_seconds"]
    for peer, reason in missing.items():
        rows[peer] = {"available": False, "reason": reason}
    return {peer: rows[peer] for peer in cells}


def _peer(memory: Cell, *rounds: Cell) -> dict[str, Any]:
    about = rounds[0]["about"]
    units = [unit for cell in rounds for unit in cell["units"]]
    response, prompt = (
        statistics.median(cell[what] for cell in rounds) if what in rounds[0] else None
        for what in ("response", "prompt")
    )
    found, row = totals(about, response, prompt, units), unit_seconds(about, units)
    record: dict[str, Any] = {"available": True, "versions": about["versions"], "threads": about["threads"]}
    record["forward_seconds"] = statistics.median(cell["forward"] for cell in rounds)
    for what in QUANTITIES:
        record[f"{what}_seconds"] = found[what].seconds
        record[f"{what}_extrapolated"] = found[what].extrapolated
    return record | {
        "row_seconds": row if about["axis"] == "row" else None,
        # In the rounds, rows and the forward passes of the same process lie side by side.
        "row_forwards": row / statistics.fmean(cell["forward"] for cell in rounds),
        "unit": about["axis"],
        "units_timed": sum(unit["count"] for unit in units),
        "units": about["units"],
        "peak_bytes": memory,
        "agrees_with": about["agrees_with"] or None,
        "explains": about["explains"],
        **{f"{name}_error": max(cell["errors"][name] for cell in rounds) for name in rounds[0]["errors"]},
    }


def lines(peers: dict[str, dict[str, Any]]) -> list[str]:
    """The table for people, in seconds; `~`: extrapolated from the rows that were timed."""
    rows, ratios, notes = [], [], []
    for name, row in peers.items():
        if not row["available"]:
            notes.append(f"{name}: not measured: {row['reason']}")
            continue
        error = f"{row['response_error']:.0e}" if "response_error" in row else "-"
        figures = [_seconds(row[f"{what}_seconds"], row[f"{what}_extrapolated"]) for what in QUANTITIES]
        figures += [_seconds(row["row_forwards"]), _seconds(row["forward_seconds"])]
        peak = f"{max(row['peak_bytes'].values()) / 1e9:.2f}"
        rows.append((name, *figures, peak, error, row["agrees_with"] or "-"))
        ratios.append((name, *(_seconds(row.get(f"{what}_over_ours")) for what in (*QUANTITIES, "row"))))
        if row["logits_error"] > 1e-3:
            notes.append(f"{name}: its logits differ by {row['logits_error']:.1e}, so it runs another model")
        if not row["agrees_with"]:
            notes.append(f"{name} explains {row['explains']}, so its numbers are others")
        if row["unit"] == "column":
            notes.append(f"{name} computes columns of R*, not rows")
    head = ("", "R_response", "R_prompt", "R*", "row/fwd", "forward", "peak GB", "error", "agrees with")
    over = ("over ours", "R_response", "R_prompt", "R*", "a row")
    return [*table(head, rows), "", *table(over, ratios), "", *notes]


def _seconds(value: float | None, extrapolated: bool = False) -> str:
    return "-" if value is None else f"{'~' if extrapolated else ''}{value:.3g}"


def scaling_lines(sweep: dict[str, Any]) -> list[str]:
    """Seconds of every cell, then the exponents."""
    rows = []
    for cell in sweep["cells"]:
        known = cell["seconds"] is not None
        seconds = _seconds(cell["seconds"], cell["extrapolated"]) if known else f"skipped: {cell['skipped']}"
        rows.append((cell["peer"], cell["quantity"], f"{cell['prompt']} + {cell['response']}", seconds))
    growth = [
        f"{fit['peer']}: {fit['quantity']} grows as {fit['sweep']} length to the {fit['exponent']:.2f}"
        for fit in sweep["exponents"]
    ]
    return [*table(("peer", "", "tokens", "seconds"), rows), *growth, ""]


def plot(sweeps: dict[str, dict[str, Any]], path: Path) -> None:
    """Seconds by length, log-log: a row of panels per sweep, a column per quantity; hollow: extrapolated."""
    import matplotlib.pyplot as plt
    import pandas as pd
    import seaborn as sns

    cells = pd.DataFrame([cell for sweep in sweeps.values() for cell in sweep["cells"]])
    cells["tokens"] = cells["prompt"].where(cells["sweep"] == "prompt", cells["response"])
    cells["quantity"] = cells["quantity"].map(TITLES)
    with sns.axes_style("whitegrid"), sns.plotting_context("paper"):
        grid = sns.FacetGrid(
            cells.dropna(subset="seconds"),
            row="sweep",
            col="quantity",
            hue="peer",
            palette="colorblind",
            sharex="row",
            sharey="row",
            height=3.4,
        )
        grid.map_dataframe(_curve)
    grid.set(xscale="log", yscale="log", ylabel="seconds")
    grid.set_titles("{col_name}")
    for (side, _), axes in grid.axes_dict.items():
        lengths = sorted(cells["tokens"][cells["sweep"] == side].unique())
        axes.set_xlabel(f"{side} tokens")
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
        axes.set_xticks([], minor=True)
        axes.legend(fontsize=7)
    grid.tight_layout()
    content = io.BytesIO()
    save_as(grid.figure, content, path.suffix[1:] or "png", dpi=150)
    plt.close(grid.figure)  # seaborn makes the figure through pyplot, which would keep it
    write_atomically(path, content.getvalue())


def _curve(data: Any, label: str, color: Any, **_: Any) -> None:
    """One peer in one panel, with the power that its seconds grow by."""
    import matplotlib.pyplot as plt

    data = data.sort_values("tokens")
    x, y = data["tokens"].tolist(), data["seconds"].tolist()
    power = f"  (power {exponent(x, y):.2f})" if len(x) >= 3 else ""
    plt.plot(x, y, color=color, label=f"{label}{power}")
    filled = ["none" if extrapolated else color for extrapolated in data["extrapolated"]]
    plt.scatter(x, y, facecolors=filled, edgecolors=[color] * len(x), s=22, zorder=3)
