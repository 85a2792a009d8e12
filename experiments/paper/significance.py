"""Does relevance at one position tell hallucinated from normal responses? Mann-Whitney U by position.

LRP4RAG (arXiv 2408.15533), Figure 5: the median p over 200 draws of 200 samples. That p depends on how
many samples are drawn, so it stands beside what does not: the effect size on all rows, and p on all rows,
corrected for the number of positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, mannwhitneyu, rankdata

from experiments.figures.style import legend_below, panels, percent, themed
from experiments.figures.text import SYMBOLS
from experiments.metrics import bootstrap
from lrp4rag.util.errors import InputError

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]

DRAWS, SAMPLES = 200, 200  # the paper's
BAND_RESAMPLES = 200
ALPHA = 0.05
COLOURS = {"prompt": "#cc79a7", "response": "#009e73", "total": "#56b4e9"}
FLOOR = 1e-12  # smaller p are drawn here


@dataclass(frozen=True, slots=True, eq=False)
class PositionTest:
    """Arrays (positions); positions are the bins of a resampled vector.

    * `median_p`: median over `draws` draws of `samples` rows of each class, two-sided. No p-value itself.
    * `p`, `adjusted`: on all rows, and the same after Benjamini and Yekutieli over positions (the false
      discovery rate under any dependence; neighbouring positions are anything but independent).
    * `auroc`: how often a hallucinated row's relevance is the lower of a pair, with its 95 % bootstrap
      interval over sources, `low` to `high`. 0.5 is no effect.
    """

    median_p: Values
    p: Values
    adjusted: Values
    auroc: Values
    low: Values
    high: Values
    draws: int
    samples: int

    @property
    def rank_biserial(self) -> Values:
        """The effect size from -1 to 1, positive where hallucinated rows have less relevance."""
        return 2 * self.auroc - 1

    def table(self) -> pd.DataFrame:
        """One row a position."""
        return pd.DataFrame(
            {
                "position": np.arange(len(self.p)),
                "median_p": self.median_p,
                "p": self.p,
                "p_adjusted": self.adjusted,
                "auroc": self.auroc,
                "auroc_low": self.low,
                "auroc_high": self.high,
                "rank_biserial": self.rank_biserial,
            }
        )


def position_test(
    values: Values,
    labels: Labels,
    groups: NDArray[np.str_],
    *,
    draws: int = DRAWS,
    samples: int = SAMPLES,
    resamples: int = BAND_RESAMPLES,
    seed: int = 0,
) -> PositionTest:
    """Test each column of `values` (rows, positions). A class with fewer rows than `samples` sets the number.

    Raises `InputError` where a class has no rows.
    """
    low, high = values[labels], values[~labels]
    samples = min(samples, len(low), len(high))
    if not samples:
        raise InputError("the test needs hallucinated and normal responses")
    generator = np.random.default_rng(seed)
    drawn = [
        _p(*(side[generator.choice(len(side), samples, replace=False)] for side in (low, high)))
        for _ in range(draws)
    ]
    p = _p(low, high)

    def by_position(rows: NDArray[np.intp]) -> dict[str, float]:
        return {str(k): x for k, x in enumerate(auroc_of_low(values[rows], labels[rows]))}

    band = bootstrap(by_position, groups, resamples=resamples, seed=seed).values()
    return PositionTest(
        median_p=np.median(drawn, axis=0),
        p=p,
        adjusted=false_discovery_control(p, method="by"),
        auroc=np.array([interval.value for interval in band], dtype=float),
        low=np.array([interval.low for interval in band], dtype=float),
        high=np.array([interval.high for interval in band], dtype=float),
        draws=draws,
        samples=samples,
    )


def significance_table(found: Mapping[str, Mapping[str, PositionTest]]) -> pd.DataFrame:
    """One line a generator, vector and position. `found` is generator -> vector -> test."""
    tables = {
        (generator, vector): test.table()
        for generator, each in found.items()
        for vector, test in each.items()
    }
    return pd.concat(tables, names=["generator", "vector"]).reset_index(["generator", "vector"])


def draw_tests(found: Mapping[str, Mapping[str, PositionTest]]) -> Figure:
    """A column a generator: median p over draws, p on all rows corrected for positions, effect size."""
    with themed():
        drawn, axes = panels(3, list(found), height=2.0)
        for column, tests in zip(axes.T, found.values(), strict=True):
            for vector, test in tests.items():
                _line(column[0], np.maximum(test.median_p, FLOOR), vector)
                _line(column[1], np.maximum(test.adjusted, FLOOR), vector)
                _line(column[2], test.auroc, vector)
                places = percent(len(test.auroc))
                column[2].fill_between(places, test.low, test.high, color=COLOURS[vector], alpha=0.2, lw=0)
            column[2].set(xlim=(0, 100), xlabel="position (%)")
        for ax in axes[:2].flat:
            ax.axhline(ALPHA, color="0.2", ls="--", lw=1, label="p = 0.05")
            ax.set_yscale("log")
        for ax in axes[2]:
            ax.axhline(0.5, color="0.2", ls=":", lw=1, label="no effect")
        first = next(iter(next(iter(found.values())).values()))
        axes[0, 0].set_ylabel(f"median p\n({first.draws} draws of {first.samples} + {first.samples})")
        axes[1, 0].set_ylabel("p on all rows,\ncorrected (BY)")
        axes[2, 0].set_ylabel("AUROC of\nlow relevance")
        legend_below(drawn, axes.flat)
        return drawn


def auroc_of_low(values: Values, labels: Labels) -> Values:
    """AUROC of "hallucinated where low" by column of (rows, ...): U / (n m); NaN without both classes."""
    some, others = int(labels.sum()), int((~labels).sum())
    if not some or not others:
        return np.full(values.shape[1:], np.nan)
    ranks = rankdata(values, axis=0)
    result: Values = 1 - (ranks[labels].sum(0) - some * (some + 1) / 2) / (some * others)
    return result


def _p(low: Values, high: Values) -> Values:
    found: Values = mannwhitneyu(low, high, axis=0, method="asymptotic").pvalue
    return found


def _line(ax: Axes, values: Values, vector: str) -> None:
    ax.plot(percent(len(values)), values, color=COLOURS[vector], label=SYMBOLS[vector], lw=1.2)
