"""Reliability diagram: how often rows of a predicted probability turn out to be hallucinated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.experiments.figures.style import blank, themed
from lrp4rag.report.figure_text import label
from lrp4rag.training.metrics import Reliability

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def table(found: Mapping[str, Reliability]) -> pd.DataFrame:
    """One line a name and bin."""
    import pandas as pd

    parts = [
        pd.DataFrame(
            {
                "name": name,
                "low": line.edges[:-1],
                "high": line.edges[1:],
                "probability": line.probability,
                "frequency": line.frequency,
                "count": line.count,
            }
        )
        for name, line in found.items()
    ]
    return pd.concat(parts, ignore_index=True)


def draw(found: Mapping[str, Reliability], *, title: str = "") -> Figure:
    """A line a name, with the number of rows in each bin below."""
    import seaborn as sns

    with themed():
        drawn = blank((6.4, 5.2))
        above, below = drawn.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color="0.4", ls=":", lw=1, label="perfectly calibrated")
        colours = sns.color_palette("colorblind", len(found))
        for (name, line), colour in zip(found.items(), colours, strict=True):
            described = f"{name} (ECE {calibration_error(line):.3f})"
            style = {"color": colour, "marker": "o", "markersize": 5, "linewidth": 1.4}
            used = line.count > 0
            above.plot(line.probability[used], line.frequency[used], label=described, **style)
            below.plot(line.probability[used], line.count[used], **style)
        above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of hallucinated rows", title=label(title))
        below.set(xlabel="predicted probability of a hallucination", ylabel="rows")
        below.set_ylim(bottom=0)
        above.legend(frameon=False, loc="upper left")
        return drawn


def calibration_error(line: Reliability) -> float:
    """Mean distance of probability and frequency over the bins, weighted by their rows."""
    used = line.count > 0
    gaps = np.abs(line.probability - line.frequency)[used]
    return float(np.average(gaps, weights=line.count[used]))
