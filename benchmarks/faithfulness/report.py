"""Figures of the report: bars with intervals, and curves of the perturbation."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faithfulness.measures import EXPERIMENTS, FRACTIONS, Row
from benchmarks.faithfulness.methods import METHODS, OURS
from benchmarks.faithfulness.statistics import Comparison
from experiments.figures.style import DPI, blank, themed
from lrp4rag.report.figure_text import png_of
from lrp4rag.util.files import write_atomically

RESAMPLES = 500
VERDICTS = {"best": "best: better than", "level": "level with", "worse": "WORSE than"}
COLOURS = {name: f"C{number}" for number, name in enumerate(METHODS)} | {"random": "0.6"}


def bars(experiment: str, comparisons: dict[str, Comparison], path: Path) -> None:
    """A panel a measure; our composites are filled, the others pale. The best is on top."""
    with themed():
        drawn = blank((4.4 * len(comparisons), 3.4))
        axes = drawn.subplots(1, len(comparisons), squeeze=False)[0]
        for ax, (measure, comparison) in zip(axes, comparisons.items(), strict=True):
            ranked = sorted(comparison.methods.items(), key=lambda pair: pair[1].value or 0.0)
            for row, (name, one) in enumerate(ranked):
                value, low, high = one.value or 0.0, one.low or 0.0, one.high or 0.0
                alpha, error = 1.0 if name in OURS else 0.35, [[value - low], [high - value]]
                ax.barh(
                    row, value, xerr=error, color=COLOURS[name], alpha=alpha, error_kw={"lw": 1, "capsize": 2}
                )
            ax.set_yticks(range(len(ranked)), [name.replace("_", " ") for name, _ in ranked])
            ax.grid(visible=False, axis="y")
            title = "\n".join(textwrap.wrap(EXPERIMENTS[experiment].titles[measure], 44))
            ax.set_title(title, loc="left", fontsize=9)
            ax.set_xlabel(measure)
        drawn.supxlabel("filled: our composites; pale: other methods; lines: 95 % intervals", fontsize=8)
        write_atomically(path, png_of(drawn, DPI))


def perturbation_curves(rows: dict[str, list[Row]], path: Path) -> None:
    """Mean change of the target logit over the fraction zeroed, in both orders, with 95 % bands; our
    composites are solid."""
    orders = {
        "morf": "Most relevant first (MoRF, lower is better)",
        "lerf": "Least relevant first (LeRF, higher is better)",
    }
    with themed():
        drawn = blank((10.5, 4.4))
        axes, x = drawn.subplots(1, 2, sharey=True), 100 * FRACTIONS
        for ax, (curve, title) in zip(axes, orders.items(), strict=True):
            for name, found in rows.items():
                values = np.array([row[curve] for row in found])
                values -= values[:, :1]  # against its own start, or the bands show how unlike the prompts are
                draws = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
                low, high = np.quantile(values[draws].mean(1), [0.025, 0.975], axis=0)
                style: dict[str, Any] = {"ls": "-", "lw": 2} if name in OURS else {"ls": "--", "lw": 1.3}
                label = name.replace("_", " ")
                ax.plot(x, values.mean(0), color=COLOURS[name], label=label, **style)
                ax.fill_between(x, low, high, color=COLOURS[name], alpha=0.1, lw=0)
            ax.set_title(title, loc="left")
            ax.set(xlabel="passage tokens zeroed, %", xlim=(0, 100))
        axes[0].set_ylabel("change of the logit of the answer's first token")
        drawn.legend(*axes[1].get_legend_handles_labels(), loc="outside right center", frameon=False)
        write_atomically(path, png_of(drawn, DPI))
