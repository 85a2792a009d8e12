"""A drift as one self-contained page: no network, no script."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from lrp4rag.guard.monitoring.advice import advice
from lrp4rag.guard.monitoring.drift import Change, Drift
from lrp4rag.guard.monitoring.plots import over_time, side_by_side
from lrp4rag.guard.monitoring.words import (
    assumptions,
    change_words,
    group_words,
    headline,
    left_out_words,
    measure_words,
    p_words,
    power_words,
    value_words,
    window_words,
)
from lrp4rag.report.assets import asset, hash_source
from lrp4rag.report.numbers import p_value
from lrp4rag.report.templates import encodable, html_template

_STYLE = """
h1.bad { color: var(--bad); }
h1.good { color: var(--good); }
section { margin-top: 1.5rem; overflow-x: auto; }
.note { font-size: .85rem; color: var(--soft); }
.number { text-align: end; font-variant-numeric: tabular-nums; }
mark { background: none; color: var(--bad); font-weight: 600; }
img { display: block; width: 100%; max-width: 60rem; height: auto; margin-top: .4rem; }
img { background: #fff; border-radius: 8px; }
td { white-space: nowrap; }
tbody th { font-weight: 400; color: var(--ink); }
"""


def drift_page(drift: Drift, command: str) -> str:
    """What to do, figures, and every comparison; `command` stands in the small print."""
    style = asset("base.css") + _STYLE
    said = {one.said for one in drift.found}
    overall = [one for one in drift.changes if one.group is None]
    grouped = [one for one in drift.changes if one.group is not None]
    tables = [("All answers", _rows(overall))]
    if grouped:
        tables.append(("Within topics and generators", _rows(grouped)))
    page = html_template("drift.html.j2", Path(__file__).parent).render(
        headline=headline(drift),
        outcome="bad" if "worse" in said else "none" if said else "good",
        baseline=window_words(drift.baseline),
        window=window_words(drift.window),
        advice=advice(drift),
        power="" if drift.found else power_words(drift),
        figures=_figures(drift),
        tables=tables,
        notes=[*assumptions(drift), *(f"Not compared: {line}." for line in left_out_words(drift))],
        command=command,
        style=Markup(style),
        style_source=Markup(hash_source(style)),
    )
    return encodable(page)


def _figures(drift: Drift) -> list[tuple[str, str, str]]:
    """A title, a description and the image of each."""
    by_hand = (
        (
            "Over time",
            "Means and shares day by day with 95 % intervals; the table has them as a whole.",
            over_time,
        ),
        ("Side by side", "Probabilities, retrieval scores and actions of both windows.", side_by_side),
    )
    return [(title, words, base64.b64encode(draw(drift)).decode()) for title, words, draw in by_hand]


def _rows(changes: Iterable[Change]) -> list[dict[str, str]]:
    return [
        {
            "name": " · ".join(filter(None, (group_words(one.group), measure_words(one)))),
            "before": value_words(one.measure, one.difference.before),
            "after": value_words(one.measure, one.difference.after),
            "change": change_words(one.measure, one.difference),
            "p": p_value(one.p) if one.difference.varies else "",
            "adjusted": p_words(one),
            "test": one.test if one.difference.varies else "",
            "said": one.said,
        }
        for one in changes
    ]
