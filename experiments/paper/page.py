"""The page of a reproduction: Markdown rendered from the results, with no number typed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment

from experiments.paper.ablations import setup
from experiments.paper.context import Context, Note
from experiments.paper.findings import NO_WORSE
from experiments.paper.manifest import BASELINES, Beside, Known
from experiments.paper.verdicts import worded
from lrp4rag.classifiers.card import Interval
from lrp4rag.features.parts import MATRIX, PROMPT
from lrp4rag.report import numbers
from lrp4rag.report.markdown import Markdown
from lrp4rag.report.templates import markdown_templates

TEMPLATES = Path(__file__).parent / "templates"
PART_WORDS = {PROMPT: "R_prompt", MATRIX: "R* (Figure 4, the LSTM, claim 4)"}
"""Of the parts that not every store has, those that the paper's tables need."""
FILTERS = ("number", "percent", "percent_interval", "with_interval", "difference", "slug")


def render(
    context: Context,
    results: Mapping[str, Any],
    shown: Mapping[str, str],
    command: str,
    beside: Sequence[Beside] = (),
    *,
    out: Path = Path(),
    extractions: Sequence[str] = (),
    empty: Mapping[str, str] = MappingProxyType({}),
    whole: bool = True,
) -> str:
    """`results` by section, in reading order, all of them if `whole`; `shown` has the tables in Markdown.
    `extractions` are the commands that make the stores; `empty` says why a section has nothing to show. The
    page in `out` links to pages of the documentation where they stand beside it.
    """

    def docs(title: str, page: str, place: str = "") -> Markdown:
        there = (out.resolve().parent.parent / page).is_file()
        return Markdown(f"[{title}](../../{page}{place})" if there else f"{title}, docs/{page} of lrp4rag")

    store = next(iter(context.subsets.values())).rows.store
    # What was left out anywhere, each once, and what would add it.
    notes = [note for result in results.values() for note in getattr(result, "left_out", ())]
    page: str = (
        _environment()
        .get_template("page.md.j2")
        .render(
            results=results,
            whole=whole,
            shown=shown,
            command=command,
            extractions=extractions,
            docs=docs,
            empty=empty,
            subsets=context.subsets,
            sources={name: len(set(subset.groups)) for name, subset in context.subsets.items()},
            settings=context.settings,
            setup=setup(store.configuration),
            reader=Path(str(store.configuration.reader.get("name", ""))).name,
            no_worse=NO_WORSE,
            notes=_by_reason(notes),
            beside=[(one, found) for one in beside if (found := _more(one.known, context, results))],
        )
    )
    return page


def _more(other: Known, context: Context, results: Mapping[str, Any]) -> list[str]:
    """What a page has that this one leaves out, in words: a part of generators whose rows lack it here, and
    baselines that were not run here."""
    found = []
    for part, words in PART_WORDS.items() if results.keys() - {BASELINES} else ():
        lacking = {name for name, one in context.subsets.items() if not one.has(part)}
        if rows := {name: count for name, count in other.rows_with(part).items() if name in lacking}:
            of = ", ".join(f"{name} ({count} responses)" for name, count in rows.items())
            found.append(f"{words} of {of}")
    ran = set() if context.baselines is None else set(context.baselines.sources)
    if more := [name for name in other.baselines if name not in ran]:
        found.append(f"{', '.join(more)} on responses of {', '.join(other.generators)}")
    return found


def _by_reason(notes: Sequence[Note]) -> list[Note]:
    """What is left out for one reason, and is added in one way, is one note."""
    found: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        found.setdefault((note.why, note.remedy), []).append(note.what)
    return [Note("; ".join(dict.fromkeys(what)), *reason) for reason, what in found.items()]


@cache
def _environment() -> Environment:
    environment = markdown_templates(TEMPLATES)
    environment.filters |= {name: getattr(numbers, name) for name in FILTERS}
    environment.filters |= {"points": points, "worded": worded}
    return environment


def points(interval: Interval | None) -> str:
    """-2.8 points [-5.0, +0.1]"""
    if interval is None or interval.value is None or interval.low is None or interval.high is None:
        return ""
    return f"{100 * interval.value:+.1f} points [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"
