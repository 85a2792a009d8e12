"""What all figures share: a theme, the colours of the two classes, panels by generator, and small files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from experiments.figures.text import label, png_of, save_as
from lrp4rag.report.figure_text import drawing, new_figure
from lrp4rag.util.files import write_atomically
from lrp4rag.util.text import safe_cell

# Colour-blind safe (Okabe and Ito), the same everywhere.
CLASSES = {"hallucinated": "#d55e00", "normal": "#0072b2"}
DETECTOR, CONTROL, PUBLISHED = "#009e73", "#777777", "#000000"
COLOURS = "colorblind"  # seaborn's palette for lines that have no colour of their own
DIVERGING = "PRGn"  # neither end is the colour of a class
UNIT = "relevance (logits)"

WIDTH = 10.0  # inches: legible where a page shows it 800 pixels wide
LARGEST = 60.0  # inches that a side may have, however many generators there are
DPI = 120


@contextmanager
def themed() -> Iterator[None]:
    """Seaborn's styles for what is drawn inside, and no mathematics; nothing outside changes."""
    with _styled(), drawing():
        yield


@contextmanager
def _styled() -> Iterator[None]:
    with (
        sns.axes_style("whitegrid", {"grid.color": "0.9"}),
        sns.plotting_context("paper"),
        mpl.rc_context(
            {
                "svg.hashsalt": "lrp4rag",  # else every SVG names the same paths otherwise
                "svg.fonttype": "none",  # text, not an outline of every letter
                "axes.formatter.limits": (-4, 4),
            }
        ),
    ):
        yield


def blank(size: tuple[float, float]) -> Figure:
    """An empty figure of this size in inches, or the largest; call it inside `themed`."""
    width, height = (min(side, LARGEST) for side in size)
    return new_figure(width, height)


def panels(
    rows: int, titles: Sequence[str], *, height: float = 2.4, sharex: Any = "col", sharey: Any = "row"
) -> tuple[Figure, Any]:
    """A figure and its axes (rows, titles), one column a title (a generator); call it inside `themed`."""
    drawn = blank((max(WIDTH, 2.4 * len(titles)) if len(titles) > 1 else WIDTH / 2, height * rows + 0.6))
    axes = drawn.subplots(rows, len(titles), squeeze=False, sharex=sharex, sharey=sharey)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(label(title))
    return drawn, axes


def not_stored(ax: Axes) -> None:
    """Say in an empty panel why it is empty."""
    ax.text(0.5, 0.5, "not stored", transform=ax.transAxes, ha="center", va="center", color="0.5")


def percent(positions: int) -> NDArray[np.float64]:
    """The middle of each bin of a resampled vector, in % of its length."""
    middles: NDArray[np.float64] = (np.arange(positions) + 0.5) * 100 / positions
    return middles


def legend_below(drawn: Figure, axes: Sequence[Axes]) -> None:
    """One legend for all panels, each name once."""
    found: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    columns = 4 if drawn.get_figwidth() >= WIDTH else 2
    drawn.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=min(len(found), columns),
        frameon=False,
    )


def save(drawn: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Write `stem`.png and `stem`.svg, each whole or not at all; equal figures give equal files."""
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    write_atomically(png, _png(drawn))
    write_atomically(svg, _svg(drawn))
    return png, svg


def save_table(table: pd.DataFrame, path: str | Path) -> Path:
    """Write a CSV file, whole or not at all, to six significant digits. No spreadsheet computes its text."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    safe = _safe(table)
    write_atomically(path, safe.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return path


def _safe(table: pd.DataFrame) -> pd.DataFrame:
    """With headings and texts as `safe_cell` gives them; columns of numbers keep their types, by which they
    are written."""
    safe = table.copy()
    for k in range(table.shape[1]):
        column = table.iloc[:, k]
        if any(isinstance(item, str) for item in column):
            safe.isetitem(k, column.astype(object).map(safe_cell))
    return safe.set_axis([safe_cell(str(name)) for name in table.columns], axis=1)


def _png(drawn: Figure) -> bytes:
    """With a palette of 256 colours: a third of the size, and no eye sees the difference."""
    with _styled():
        full = png_of(drawn, DPI)
    small = io.BytesIO()
    Image.open(io.BytesIO(full)).convert("RGB").quantize(256).save(small, format="png", optimize=True)
    return small.getvalue()


def _svg(drawn: Figure) -> str:
    """Without indentation, and with paths to a tenth of a point, where matplotlib writes a millionth."""
    content = io.StringIO()
    with _styled():
        save_as(drawn, content, "svg", dpi=DPI, metadata={"Date": None})
    dense = re.sub(r"\n\s+", "\n", content.getvalue())
    # In tags only: a name may well have ' d="' in it.
    return re.sub(r'(<path[^<>]* d=")([^"]+)', lambda path: path[1] + _rounded(path[2]), dense)


def _rounded(path: str) -> str:
    return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", path).replace("\n", "")
