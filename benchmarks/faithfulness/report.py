"""What the report shows: tables with a sentence of verdict under each, bars with intervals, and curves."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.command import table
from benchmarks.faithfulness.measures import EXPERIMENTS, FRACTIONS
from benchmarks.faithfulness.methods import METHODS, OURS, Array
from benchmarks.faithfulness.statistics import Comparison
from experiments.figures.style import DPI, blank, themed
from lrp4rag.report.figure_text import png_of
from lrp4rag.report.markdown import text
from lrp4rag.util.files import write_atomically

RESAMPLES = 500
MADE = "`python -m benchmarks.faithfulness` made this page; its figures are in [results.json](results.json)."


def markdown(results: dict[str, dict[str, Comparison]], note: str) -> str:
    parts = ["# Faithfulness", MADE, text(note)]  # which names a reader, and data
    for experiment, comparisons in results.items():
        for measure, comparison in comparisons.items():
            ranked = sorted(comparison.methods, key=lambda name: -comparison.methods[name].value)
            lines = [
                (name, str(comparison.methods[name]), str(comparison.differences.get(name, "")))
                for name in ranked
            ]
            parts += [
                f"## {experiment}: {measure}\n\n{EXPERIMENTS[experiment].titles[measure]}",
                "\n".join(table(("method", "value [95 % interval]", "best of ours minus it"), lines)),
                verdict_sentence(comparison),
            ]
    return "\n\n".join(parts) + "\n"


def verdict_sentence(comparison: Comparison) -> str:
    """Whether the best of our composites is best, level with the best other method, or worse."""
    if comparison.verdict is None or comparison.ours is None or comparison.other is None:
        return "No verdict: it needs one of our composites and one other method."
    words = {
        "best": "is best: better than the best other method",
        "level": "is level with the best other method",
        "worse": "is WORSE than the best other method",
    }[comparison.verdict]
    difference = comparison.differences[comparison.other]
    return (
        f"{comparison.ours} {words}, {comparison.other} (difference {difference}; "
        "paired bootstrap over samples)."
    )


def colours() -> dict[str, Any]:
    """One colour-blind-safe colour a method, the same in every figure."""
    import seaborn as sns

    palette = sns.color_palette("colorblind", len(METHODS))
    return dict(zip(METHODS, palette, strict=True)) | {"random": (0.6, 0.6, 0.6)}


def bars(experiment: str, comparisons: dict[str, Comparison], path: Path) -> None:
    """A panel a measure; our composites are filled, the others pale. The best is on top."""
    with themed():
        drawn = blank((4.4 * len(comparisons), 3.4))
        axes = drawn.subplots(1, len(comparisons), squeeze=False)[0]
        for ax, (measure, comparison) in zip(axes, comparisons.items(), strict=True):
            ranked = sorted(comparison.methods, key=lambda name: comparison.methods[name].value)
            for row, name in enumerate(ranked):
                estimate = comparison.methods[name]
                ax.barh(
                    row,
                    estimate.value,
                    xerr=[[estimate.value - estimate.low], [estimate.high - estimate.value]],
                    color=colours()[name],
                    alpha=1.0 if name in OURS else 0.35,
                    error_kw={"lw": 1, "capsize": 2},
                )
            ax.set_yticks(range(len(ranked)), [_label(name) for name in ranked])
            ax.grid(visible=False, axis="y")
            ax.set_title(
                "\n".join(textwrap.wrap(EXPERIMENTS[experiment].titles[measure], 44)), loc="left", fontsize=9
            )
            ax.set_xlabel(measure)
            ax.spines[["top", "right", "left"]].set_visible(False)
        drawn.supxlabel("filled: our composites; pale: other methods; lines: 95 % intervals", fontsize=8)
        write_atomically(path, png_of(drawn, DPI))


def perturbation_curves(rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Mean change of the target logit over the fraction zeroed, in both orders, with 95 % bands."""
    orders = {
        "morf": "Most relevant first (MoRF, lower is better)",
        "lerf": "Least relevant first (LeRF, higher is better)",
    }
    with themed():
        drawn = blank((10.5, 4.4))
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, (curve, title) in zip(axes, orders.items(), strict=True):
            for name, found in rows.items():
                values = np.array([row[curve] for row in found])
                # Against its own start, or the bands show how unlike the prompts are.
                _curve(ax, values - values[:, :1], name)
            ax.set_title(title, loc="left")
            ax.set(xlabel="passage tokens zeroed, %", xlim=(0, 100))
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("change of the logit of the answer's first token")
        drawn.legend(*axes[1].get_legend_handles_labels(), loc="outside right center", frameon=False)
        write_atomically(path, png_of(drawn, DPI))


def _curve(ax: Axes, values: Array, name: str) -> None:
    """The mean of `values` (samples, 10) and its bootstrap band; our composites are solid."""
    draws = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[draws].mean(1), [0.025, 0.975], axis=0)
    style: dict[str, Any] = {"ls": "-", "lw": 2} if name in OURS else {"ls": "--", "lw": 1.3}
    colour, x = colours()[name], 100 * FRACTIONS
    ax.plot(x, values.mean(0), color=colour, label=_label(name), **style)
    ax.fill_between(x, low, high, color=colour, alpha=0.1, lw=0)


def _label(name: str) -> str:
    return name if name in OURS else name.replace("_", " ")
