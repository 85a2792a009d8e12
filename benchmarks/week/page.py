"""The page that tells of the week, docs/week.md, and its figure, made of the results' file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS
from benchmarks.pages import table_of, write_page
from lrp4rag.report.markdown import text

FOLDER = Path("results") / "week"
Found = dict[str, Any]
LINES = {
    "withheld_otherwise": "withheld,\nshare",
    "nothing_to_answer_from": "nothing to\nanswer from,\nshare",
    "faithfulness": "mean\nfaithfulness",
    "probability": "mean P(hallu-\ncinated)",
}
MOST_CHANGES = 14


def moment(given: str) -> datetime:
    return datetime.fromisoformat(given)


def events(found: Found, alerts: list[Found]) -> Iterator[tuple[str, ...]]:
    """What happened, and each alert that fired: from when on, how often, and until when."""
    before, after = (found["generators"][name] for name in ("before", "after"))
    rows = [
        (found["expires"], f"documents of the topic {found['expired_topic']} expire", "", ""),
        (found["swapped"], f"{after} in the place of {before}", "", ""),
    ]
    for name in {one["alert"] for one in alerts}:
        some = [one for one in alerts if one["alert"] == name]
        first, last = min(one["start"] for one in some), max(one["end"] for one in some)
        rows.append((first, f"`{name}`", str(len(some)), last))
    begins = moment(found["watched"])
    for start, event, times, end in sorted(rows):
        yield _day(moment(start), begins), event, times, _day(moment(end), begins) if end else ""


def _day(at: datetime, begins: datetime) -> str:
    """Such as "day 4, 12:00"."""
    return f"day {(at - begins) // timedelta(days=1) + 1}, {at:%H:%M}"


def changes(drift: Found) -> Iterator[tuple[str, ...]]:
    """Those that drifted: first overall, then within topics and generators."""
    for one in [one for one in drift["changes"] if one["said"]][:MOST_CHANGES]:
        where = "" if one["group"] is None else f"{one['group']['by']} {text(one['group']['name'])}: "
        change = f"{one['difference']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
        yield f"{where}{one['measure']}", f"{one['before']:.3f}", f"{one['after']:.3f}", change, one["said"]


def draw(found: Found, path: Path) -> None:
    """Shares and means of each quarter of a day, with when each alert fired below."""
    from experiments.figures.style import blank, save, themed

    times = [moment(one["start"]) for one in found["shares"]]
    names = sorted({one["alert"] for one in found["alerts"]})
    with themed():
        drawn = blank((9.0, 7.2))
        *panels, last = drawn.subplots(5, 1, sharex=True, height_ratios=[1, 1, 1, 1, 0.2 + 0.18 * len(names)])
        for (name, label), ax in zip(LINES.items(), panels, strict=True):
            ax.plot(times, [one[name] for one in found["shares"]], marker="o", ms=2.5, lw=1)
            ax.set_ylabel(label, rotation=0, ha="right", va="center")
            ax.margins(y=0.15)
        for one in found["alerts"]:
            row = names.index(one["alert"])
            last.plot([moment(one["start"]), moment(one["end"])], [row, row], lw=5, color="#d55e00")
        last.set_yticks(range(len(names)), [name.removeprefix("LRP4RAG") for name in names])
        last.set_ylim(-0.7, len(names) - 0.3)
        for event, words, side in (
            (found["expires"], "documents expire", "right"),
            (found["swapped"], "generator swapped", "left"),
        ):
            for ax in (*panels, last):
                ax.axvline(moment(event), color="0.5", ls="--", lw=1)
            at = (moment(event), 1.02)
            panels[0].annotate(f" {words} ", at, xycoords=("data", "axes fraction"), ha=side)
        save(drawn, path)


@click.command(context_settings=SETTINGS)
@click.option("--docs", default="docs", show_default=True, type=click.Path(path_type=Path, file_okay=False))
def main(docs: Path) -> None:
    """Write DOCS/week.md and its figure from DOCS/results/week/week.json."""
    found: Found = json.loads((docs / FOLDER / "week.json").read_text())
    draw(found, docs / FOLDER / "week")
    week = [one for one in found["alerts"] if moment(one["start"]) >= moment(found["watched"])]
    measures = {one["measure"]: one["difference"] for one in reversed(found["drift"]["changes"])}
    derived = {
        "events": table_of(("first", "", "times", "until"), list(events(found, week))),
        "changes": table_of(("", "before", "after", "change [95 %]", ""), list(changes(found["drift"]))),
        "early": sorted({one["alert"] for one in found["alerts"] if one not in week}),
        "faithfulness": measures["faithfulness"],
    }
    write_page(docs / "week.md", Path(__file__).with_name("page.md.j2"), **found | derived)


if __name__ == "__main__":
    main()
