"""Figures: perturbation curves with bands, and bars with intervals for every measure of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.faithfulness.methods import METHODS, OURS, Array
from benchmarks.faithfulness.perturbation import FRACTIONS
from benchmarks.faithfulness.statistics import Comparison
from lrp4rag.files import write_atomically
from lrp4rag.report.figure_text import png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESAMPLES = 500
DPI = 150


def colours() -> dict[str, Any]:
    """One colour-blind-safe colour a method, the same in every figure."""
    import seaborn as sns

    palette = sns.color_palette("colorblind", len(METHODS))
    return dict(zip(METHODS, palette, strict=True)) | {"random": (0.6, 0.6, 0.6)}


def bars(comparisons: dict[str, Comparison], titles: dict[str, str], path: Path) -> None:
    """A panel a measure; our composites are filled, the others pale. The best is on top."""
    import seaborn as sns

    with sns.axes_style("whitegrid"), sns.plotting_context("paper"):
        drawn = _figure((4.4 * len(comparisons), 3.4))
        axes = drawn.subplots(1, len(comparisons), squeeze=False)[0]
        for ax, (measure, comparison) in zip(axes, comparisons.items(), strict=True):
            ranked = sorted(comparison.methods, key=lambda name: comparison.methods[name].value)
            for row, name in enumerate(ranked):
                estimate = comparison.methods[name]
                errors = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
                ax.barh(
                    row,
                    estimate.value,
                    xerr=errors,
                    color=colours()[name],
                    alpha=1.0 if name in OURS else 0.35,
                    error_kw={"lw": 1, "capsize": 2},
                )
            ax.set_yticks(range(len(ranked)), [_label(name) for name in ranked])
            ax.grid(visible=False, axis="y")
            ax.set_title(_wrapped(titles[measure]), loc="left", fontsize=9)
            ax.set_xlabel(measure)
            sns.despine(ax=ax, left=True)
        drawn.supxlabel("filled: our composites; pale: other methods; lines: 95 % intervals", fontsize=8)
        write_atomically(path, png_of(drawn, DPI))


def perturbation_curves(rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Mean change of the target logit over the fraction zeroed, in both orders, with 95 % bands."""
    import seaborn as sns

    orders = (
        ("morf", "Most relevant first (MoRF, lower is better)"),
        ("lerf", "Least relevant first (LeRF, higher is better)"),
    )
    with sns.axes_style("whitegrid"), sns.plotting_context("paper"):
        drawn = _figure((10.5, 4.4))
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, (curve, title) in zip(axes, orders, strict=True):
            for name, found in rows.items():
                values = np.array([row[curve] for row in found])
                # Against its own start, or the bands show how unlike the prompts are.
                _curve(ax, values - values[:, :1], name)
            ax.set_title(title, loc="left")
            ax.set(xlabel="passage tokens zeroed, %", xlim=(0, 100))
            sns.despine(ax=ax)
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


def _figure(size: tuple[float, float]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


def _label(name: str) -> str:
    return name if name in OURS else name.replace("_", " ")


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, 44))
