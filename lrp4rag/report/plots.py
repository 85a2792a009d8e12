"""Plot a verdict as PNG: relevance along the response, by segment and by prompt token."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.reader.encoding import FIRST_PASSAGE, tokens_in
from lrp4rag.report.figure_text import drawing, new_figure, png_of
from lrp4rag.report.words import verdict_words
from lrp4rag.util.files import write_atomically
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# As on the page: colour-blind-safe.
NEGATIVE, POSITIVE, SUSPECT = "#d55e00", "#0072b2", "#b0107a"
WIDTH, TALLEST = 12.0, 30.0
"""Inches of the figure, and of a panel with a row for each sentence."""
DPI = 150
TICKS, MOST_SENTENCES = 40, 100
"""Tokens and sentences that are named on an axis; of more, every second, third and so on."""


def png(analysis: Analysis, path: Path) -> None:
    """Write the figure: relevance per response token, sentences by segment, sentences by prompt token.

    The second panel needs `by_segment`, the third `sentence_rows`; a panel without its data is left out.
    Raises `InputError` where the path is something else than a file.
    """
    import seaborn as sns

    with sns.axes_style("ticks"), sns.plotting_context("paper"):
        write_atomically(path, png_of(figure(analysis), DPI))


def figure(analysis: Analysis) -> Figure:
    """Draw the figure."""
    count = len(analysis.sentences)
    rows = min(0.45 + 0.3 * max(count, 1), TALLEST)
    panels = [(_line, 2.4)] if analysis.token_relevance is not None else []
    if analysis.marks is not None:
        panels.append((_probabilities, 1.6))
    if analysis.by_segment is not None and count:
        panels.append((_segments, rows + 0.5))
    if analysis.sentence_rows is not None and count:
        panels.append((_prompt, rows + 0.7))
    heights = [height for _, height in panels]
    drawn = new_figure(WIDTH, sum(heights) + 0.9 * len(heights))
    with drawing():
        axes = drawn.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for (draw, _), ax in zip(panels, axes, strict=True):
            draw(analysis, ax)
        drawn.suptitle(f"{one_line(analysis.example.id, 60)}: {verdict_words(analysis)}")
    return drawn


def _line(analysis: Analysis, ax: Axes) -> None:
    """Draw smoothed R_response, with the threshold below which tokens of a suspect sentence are marked."""
    import seaborn as sns

    encoded = analysis.encoded
    assert analysis.token_relevance is not None
    count = len(analysis.token_relevance)
    marker = "o" if count == 1 else None
    ax.plot(
        np.arange(count), analysis.token_relevance, color=POSITIVE, marker=marker, label="smoothed relevance"
    )
    if analysis.token_threshold is not None:
        ax.axhline(
            analysis.token_threshold, color=SUSPECT, ls="--", lw=1, label="marked in suspect sentences below"
        )
    label = "suspect span"
    for span in analysis.spans:
        tokens = np.flatnonzero(tokens_in(encoded.response_offsets, [(span.start, span.end)]))
        if len(tokens):
            ax.axvspan(tokens[0] - 0.5, tokens[-1] + 0.5, color=SUSPECT, alpha=0.15, lw=0, label=label)
            label = "_"
    for k, sentence in enumerate(analysis.sentences, 1):
        first = np.flatnonzero(tokens_in(encoded.response_offsets, [(sentence.start, sentence.end)]))[0]
        if k > 1:
            ax.axvline(first - 0.5, color="0.8", lw=0.8, zorder=0)
        ax.text(first - 0.3, 0.98, str(k), transform=ax.get_xaxis_transform(), va="top", color="0.5")
    ticks = np.arange(0, count, max(1, -(-count // TICKS)))
    tokens_text = [encoded.response[start:end] for start, end in encoded.response_offsets]
    ax.set_xticks(ticks, [one_line(tokens_text[k], 14) or "␣" for k in ticks], rotation=60, ha="right")
    ax.set(xlim=(-0.5, max(count - 0.5, 0.5)), ylabel="logits")
    ax.set_title("Relevance by response token (sentences numbered)", loc="left")
    ax.margins(y=0.15)
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderpad=0)
    sns.despine(ax=ax)


def _probabilities(analysis: Analysis, ax: Axes) -> None:
    """Draw the probability that each token is hallucinated, with the threshold from which they are marked."""
    import seaborn as sns

    marks = analysis.marks
    assert marks is not None
    count = len(marks.probabilities)
    ax.fill_between(
        np.arange(count),
        marks.probabilities,
        step="mid",
        color=SUSPECT,
        alpha=0.35,
        lw=0,
        label="P(hallucinated)",
    )
    ax.axhline(marks.threshold, color=SUSPECT, ls="--", lw=1, label="marked in suspect sentences from")
    ax.set(xlim=(-0.5, max(count - 0.5, 0.5)), ylim=(0, 1), ylabel="probability", xticks=[])
    ax.set_title("Probability that each token is hallucinated", loc="left")
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)
    sns.despine(ax=ax)


def _segments(analysis: Analysis, ax: Axes) -> None:
    """Draw sentences by segment, passages first."""
    encoded, by_segment = analysis.encoded, analysis.by_segment
    assert by_segment is not None
    order = [*range(FIRST_PASSAGE, len(encoded.segment_names)), 1, 0]
    values = np.stack(
        [
            by_segment[order][:, tokens_in(encoded.response_offsets, [(sentence.start, sentence.end)])].sum(1)
            for sentence in analysis.sentences
        ]
    )
    names = [encoded.segment_names[k] for k in order]
    scale = float(np.abs(values).max())
    annotated = len(order) <= 14
    _heatmap(analysis, ax, values, scale, annot=annotated, fmt=".1f", linewidths=0.5, xticklabels=names)
    ax.tick_params(axis="x", rotation=0 if annotated else 60, length=0)
    ax.set_title(
        "Relevance of each part of the prompt, summed over the sentence's tokens (* suspect)", loc="left"
    )


def _prompt(analysis: Analysis, ax: Axes) -> None:
    """Draw sentences by prompt token, the segments bounded by lines."""
    rows, encoded = analysis.sentence_rows, analysis.encoded
    assert rows is not None
    scale = float(np.quantile(np.abs(rows), 0.98)) or float(np.abs(rows).max())
    _heatmap(analysis, ax, rows, scale, {"extend": "both"}, xticklabels=False)
    segments = np.array(encoded.segments)
    edges = [0, *(np.flatnonzero(np.diff(segments)) + 1), len(segments)]
    named = []
    for start, end in pairwise(edges):
        if start:
            ax.axvline(start, color="0.35", lw=0.7)
        name = encoded.segment_names[segments[start]]
        # Short runs (the "passage 2:" before a passage) have no room for a name.
        if end - start >= (0.1 if name == "template" else 0.055) * len(segments):
            named.append(((start + end) / 2, name))
        elif name.startswith("passage") and end - start >= 0.02 * len(segments):
            named.append(((start + end) / 2, name.removeprefix("passage ")))
    ax.set_xticks([middle for middle, _ in named], [name for _, name in named], rotation=0)
    ax.tick_params(axis="x", length=0)
    ax.set_title("Relevance of each prompt token, mean over the sentence's tokens", loc="left")


def _heatmap(
    analysis: Analysis, ax: Axes, values: Any, scale: float, bar: dict[str, Any] | None = None, **options: Any
) -> None:
    """Draw sentences down, red against blue."""
    import seaborn as sns
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("relevance", [NEGATIVE, "#f7f7f7", POSITIVE])
    limit = scale or 1.0  # symmetric, so that zero is grey
    bar = {"label": "logits", "pad": 0.01, "aspect": 12 + 2 * len(values), **(bar or {})}
    sns.heatmap(
        values, ax=ax, cmap=colours, vmin=-limit, vmax=limit, yticklabels=False, cbar_kws=bar, **options
    )
    # Not through seaborn, which draws labels at once, with "$" read as mathematics.
    step = -(-len(analysis.sentences) // MOST_SENTENCES)
    labels = [
        f"{k}{'*' if sentence.suspect else ''}  {one_line(sentence.text, 28)}"
        for k, sentence in enumerate(analysis.sentences, 1)
    ]
    ax.set_yticks((np.arange(len(labels)) + 0.5)[::step], labels[::step], rotation=0)
    ax.tick_params(axis="y", length=0)
