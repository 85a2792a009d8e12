"""The page that tells of the week, docs/week.md, and its figure, made of the results' file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS, table
from lrp4rag.report.markdown import text
from lrp4rag.util.files import write_atomically

FOLDER = Path("results") / "week"
TEXT = Path(__file__).with_name("page.md")
Found = dict[str, Any]
LINES = (
    ("withheld_otherwise", "withheld,\nshare"),
    ("nothing_to_answer_from", "nothing to\nanswer from,\nshare"),
    ("faithfulness", "mean\nfaithfulness"),
    ("probability", "mean P(hallu-\ncinated)"),
)
MOST_CHANGES = 14


def page(found: Found) -> str:
    """Of the results."""
    drift, review = found["drift"], found["review"]
    faithfulness = next(one for one in drift["changes"] if one["measure"] == "faithfulness")
    week = [one for one in found["alerts"] if moment(one["start"]) >= moment(found["watched"])]
    early = sorted({one["alert"] for one in found["alerts"] if one not in week})
    values = {
        "ANSWERS": f"{found['answers_each_week']:,}",
        "TABLE": "\n".join(table(("first", "", "times", "until"), list(events(found, week)))),
        "ALONE": f"{' and '.join(early)} fired." if early else "none did.",
        "FAITHFULNESS": f"{faithfulness['difference']:+.3f}",
        "HEADLINE": text(drift["headline"]),
        "CHANGES": "\n".join(table(("", "before", "after", "change [95 %]", ""), list(changes(drift)))),
        "NEXT": "\n".join(f"- {text(line)}" for line in drift["next"]),
        "REVIEW": ", ".join(f"{number:,} {why}" for why, number in review["of"].items()),
        "LIST": "\n".join(f"{k}. {text(one['words'])}" for k, one in enumerate(review["items"][:5], start=1)),
        "DISTINCT": f"{found['distinct_answers']:,}",
        "SOURCES": f"{found['sources_in_all']:,}",
        "STAYS": found["generators"]["stays"],
        "BEFORE": found["generators"]["before"],
        "AFTER": found["generators"]["after"],
        "PROTOCOL": text(found["protocol"]),
        "BEGINS": found["begins"][:10],
        "WATCHED": found["watched"][:10],
        "ENDS": found["ends"][:10],
    }  # fmt: skip
    page = TEXT.read_text()
    for name, value in values.items():
        page = page.replace(name, value)
    return page


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
    for start, what, times, end in sorted(rows):
        yield _day(moment(start), begins), what, times, _day(moment(end), begins) if end else ""


def _day(at: datetime, begins: datetime) -> str:
    """Such as "day 4, 12:00"."""
    return f"day {(at - begins) // timedelta(days=1) + 1}, {at:%H:%M}"


def changes(drift: Found) -> Iterator[tuple[str, ...]]:
    """Those that drifted: first overall, then within topics and generators."""
    drifted = [one for one in drift["changes"] if one["said"]]
    for one in drifted[:MOST_CHANGES]:
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
        panels = drawn.subplots(5, 1, sharex=True, height_ratios=[1, 1, 1, 1, 0.2 + 0.18 * len(names)])
        for (name, label), ax in zip(LINES, panels, strict=False):
            ax.plot(times, [one[name] for one in found["shares"]], marker="o", ms=2.5, lw=1)
            ax.set_ylabel(label, rotation=0, ha="right", va="center")
            ax.margins(y=0.15)
        last = panels[-1]
        for k, name in enumerate(names):
            for one in found["alerts"]:
                if one["alert"] == name:
                    last.plot([moment(one["start"]), moment(one["end"])], [k, k], lw=5, color="#d55e00")
        last.set_yticks(range(len(names)), [name.removeprefix("LRP4RAG") for name in names])
        last.set_ylim(-0.7, len(names) - 0.3)
        for event, words in ((found["expires"], "documents expire"), (found["swapped"], "generator swapped")):
            for ax in panels:
                ax.axvline(moment(event), color="0.5", ls="--", lw=1)
            side = "right" if words.startswith("doc") else "left"
            panels[0].annotate(
                f" {words} ", (moment(event), 1.02), xycoords=("data", "axes fraction"), ha=side
            )
        save(drawn, path)


@click.command(context_settings=SETTINGS)
@click.option("--docs", default="docs", show_default=True, type=click.Path(path_type=Path, file_okay=False))
def main(docs: Path) -> None:
    """Write DOCS/week.md and its figure from DOCS/results/week/week.json."""
    found = json.loads((docs / FOLDER / "week.json").read_text())
    draw(found, docs / FOLDER / "week")
    write_atomically(docs / "week.md", page(found))


if __name__ == "__main__":
    main()
