"""The log-log plot of a scaling run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from benchmarks.peers.totals import QUANTITIES
from lrp4rag.files import write_atomically
from lrp4rag.report.figure_text import save_as

TITLES = {"response": "R_response", "prompt": "R_prompt", "matrix": "full R*"}


def plot(sweeps: dict[str, dict[str, Any]], path: Path) -> None:
    """A row of panels per sweep, a column per quantity; hollow markers are extrapolated."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import seaborn as sns

    sns.set_theme(style="whitegrid", context="paper")
    figure, axes = plt.subplots(
        len(sweeps), len(QUANTITIES), figsize=(11, 3.6 * len(sweeps)), squeeze=False, sharey="row"
    )
    for row, (side, sweep) in enumerate(sweeps.items()):
        for column, what in enumerate(QUANTITIES):
            _panel(axes[row, column], side, what, sweep)
    figure.tight_layout()
    content = io.BytesIO()
    save_as(figure, content, path.suffix[1:] or "png", dpi=150)
    write_atomically(path, content.getvalue())
    plt.close(figure)


def _panel(axis: Any, side: str, what: str, sweep: dict[str, Any]) -> None:
    import seaborn as sns

    axis.set(xscale="log", yscale="log", xlabel=f"{side} tokens", ylabel="seconds", title=TITLES[what])
    peers = list(dict.fromkeys(cell["peer"] for cell in sweep["cells"]))
    powers = {fit["peer"]: fit["exponent"] for fit in sweep["exponents"] if fit["quantity"] == what}
    for peer, colour in zip(peers, sns.color_palette("colorblind", len(peers)), strict=True):
        cells = [cell for cell in sweep["cells"] if cell["peer"] == peer and cell["quantity"] == what]
        cells = [cell for cell in cells if cell["seconds"] is not None]
        if not cells:
            continue
        x, y = [cell[side] for cell in cells], [cell["seconds"] for cell in cells]
        label = peer + (f"  (power {powers[peer]:.2f})" if peer in powers else "")
        sns.lineplot(x=x, y=y, color=colour, label=label, ax=axis)
        filled = ["none" if cell["extrapolated"] else colour for cell in cells]
        axis.scatter(x, y, facecolors=filled, edgecolors=[colour] * len(x), s=22, zorder=3)
    lengths = sorted({cell[side] for cell in sweep["cells"]})
    axis.set_xticks(lengths, [f"{length:,}" for length in lengths], minor=False)
    axis.set_xticks([], minor=True)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7)
