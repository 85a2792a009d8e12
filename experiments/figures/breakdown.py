"""AUROC of a few systems by stratum, and precision by prevalence: where a detector is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures.results import bounds
from experiments.figures.style import COLOURS, DETECTOR, blank, legend_below, themed
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.figure_text import label
from lrp4rag.training.localisation import ALL

GAP = 0.16  # between the dots of systems, in places


class Group(Protocol):
    """Rows with metrics of systems."""

    @property
    def systems(self) -> dict[str, Metrics]: ...


class Named(Group, Protocol):
    @property
    def generator(self) -> str: ...
    @property
    def by(self) -> str: ...
    @property
    def name(self) -> str: ...


class AtPrevalence(Group, Protocol):
    @property
    def prevalence(self) -> float: ...


class OfLength(Group, Protocol):
    @property
    def shortest(self) -> int: ...
    @property
    def longest(self) -> int: ...


class Claims(Protocol):
    @property
    def lengths(self) -> dict[str, tuple[int, ...]]: ...
    @property
    def groups(self) -> Sequence[OfLength]: ...


def draw_breakdown(strata: Sequence[Named], prevalences: Sequence[AtPrevalence]) -> Figure:
    """A panel for each way to divide, with all generators' rows, and one for prevalence."""
    kinds = list(dict.fromkeys(one.by for one in strata))
    with themed():
        drawn = blank((11.0, 7.6))
        axes = drawn.subplots(2, 2).flat
        for ax, kind in zip(axes, kinds, strict=False):
            chosen = [one for one in strata if one.by == kind and one.generator == ALL]
            _dots(ax, [one.name for one in chosen], _by_system(chosen, "auroc"))
            ax.axhline(0.5, color="0.6", lw=0.8, ls=":")
            ax.set(ylabel="AUROC of responses", title=label(f"by {kind}"), ylim=(0.4, 1))
        last = axes[len(kinds)]
        _dots(last, [f"{one.prevalence:.0%}" for one in prevalences], _by_system(prevalences, "precision"))
        last.plot(
            range(len(prevalences)),
            [one.prevalence for one in prevalences],
            color="0.4",
            ls=":",
            label="flag everything",
        )
        last.set(ylabel="precision at the threshold", title="by share of hallucinated responses", ylim=(0, 1))
        legend_below(drawn, [*axes, last])
        return drawn


def draw_claims(found: Claims) -> Figure:
    """How many claims there are of each length, and AUROC by length."""
    with themed():
        drawn = blank((9.0, 3.4))
        bars, dots = drawn.subplots(1, 2)
        below = np.zeros(max(map(len, found.lengths.values())))
        for (name, counts), colour in zip(found.lengths.items(), ("0.7", DETECTOR), strict=True):
            bars.bar(range(len(counts)), counts, bottom=below, color=colour, width=0.9, label=label(name))
            below = below + np.array(counts)
        names = [f"{10 * k + 1}-{10 * k + 10}" for k in range(len(below))]
        bars.set_xticks(range(len(below)), names, rotation=30)
        bars.set(xlabel="tokens", ylabel="claims", title="lengths of claims")
        bars.legend()
        places = [f"{one.shortest} to {one.longest}" for one in found.groups]
        _dots(dots, places, _by_system(found.groups, "auroc"))
        dots.axhline(0.5, color="0.6", lw=0.8, ls=":")
        dots.set(xlabel="tokens", ylabel="AUROC of claims", title="by length of the claim", ylim=(0.3, 1))
        dots.legend()
        return drawn


def _by_system(groups: Sequence[Group], metric: str) -> dict[str, list[Interval]]:
    return {name: [one.systems[name][metric] for one in groups] for name in groups[0].systems}


def _dots(ax: Axes, places: Sequence[str], lines: Mapping[str, Sequence[Interval]]) -> None:
    colours = [DETECTOR, *sns.color_palette(COLOURS, len(lines))]
    for k, (name, intervals) in enumerate(lines.items()):
        value, low, high = bounds(intervals)
        x = np.arange(len(places)) + GAP * (k - (len(lines) - 1) / 2)
        around = np.nan_to_num([value - low, high - value])
        ax.errorbar(x, value, yerr=around, fmt="o", ms=5, capsize=2, color=colours[k], label=label(name))
    ax.set_xticks(range(len(places)), [label(place).replace(" (", "\n(") for place in places])
