"""`reproduce`: every section of the paper's evaluation, computed, drawn and written with a page."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import Any

from experiments.figures.style import save, save_table
from experiments.numbers import markdown
from experiments.pages import FILTERS, PAGE, TEMPLATES, claim
from experiments.paper import (
    ablations,
    baselines,
    checks,
    distributions,
    findings,
    length,
    table2,
    thresholds,
)
from experiments.paper.context import Context, Exhibit, Note, worded
from experiments.paper.manifest import (
    BASELINES,
    MANIFEST,
    NAME,
    Beside,
    Manifest,
    begin,
    content_of,
    link_to,
    write,
)
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.card import Interval
from lrp4rag.features.parts import MATRIX, PROMPT, RELEVANCE
from lrp4rag.reader.weights import DEFAULT_READER
from lrp4rag.report.numbers import difference, with_interval
from lrp4rag.report.templates import Markdown, markdown_templates
from lrp4rag.util.files import write_atomically

FEWEST_GENERATORS = 2
"""Between which there is transfer."""
PART_WORDS = {PROMPT: "R_prompt", MATRIX: "R* (Figure 4, the LSTM, claim 4)"}
"""Of the parts that not every store has, those that the paper's tables need."""


@dataclass(frozen=True, slots=True)
class Section:
    """`measure` computes a result, `show` makes figures and tables of it. Where a result is `empty`, the page
    has what is `lacking` in its place."""

    measure: Callable[[Context], Any]
    show: Callable[[Any], Exhibit]
    empty: Callable[[Any], bool] = lambda _: False
    lacking: str = ""


SECTIONS = {
    "table2": Section(table2.measure, table2.show),
    "baselines": Section(baselines.measure, baselines.show, lambda result: not result.generators),
    "thresholds": Section(thresholds.measure, thresholds.show),
    "length": Section(length.measure, length.show),
    "distributions": Section(distributions.measure, distributions.show),
    "ablations": Section(
        ablations.measure,
        ablations.show,
        lambda result: not result.changes,
        "One change at a time: this store admits none.",
    ),
    "implicit": Section(
        checks.measure_implicit,
        checks.show_implicit,
        lambda result: not any(one.changed for one in result.generators.values()),
        "Spans that are true, though no passage says so: too few responses have such, or others.",
    ),
    "reliability": Section(checks.measure_reliability, checks.show_reliability),
    "transfer": Section(
        checks.measure_transfer,
        checks.show_transfer,
        lambda result: len(result.tests) < FEWEST_GENERATORS,
        "Transfer between generators: these are responses of one.",
    ),
    "findings": Section(findings.measure, findings.show),
}
"""In reading order."""


def reproduce(
    context: Context, out: Path, sections: Sequence[str], command: str, beside: Sequence[Path] = ()
) -> list[Path]:
    """Compute sections and write them. What is left out links to other results, `beside`. The page is the
    first of the files returned.

    Safe to interrupt: running it again resumes. Raises `InputError` where `out` has other results.
    """
    links = [link_to(folder, out) for folder in beside]
    earlier = claim(out, NAME, MANIFEST)
    if not earlier:
        begin(out)
    results: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for name, section in SECTIONS.items():
        if name in sections:
            started = time.perf_counter()
            results[name] = section.measure(context)
            seconds[name] = time.perf_counter() - started
    files: list[Path] = []
    shown: dict[str, str] = {}
    empty = {name: SECTIONS[name].lacking for name, one in results.items() if SECTIONS[name].empty(one)}
    for name, result in results.items():
        if name not in empty:
            exhibit = SECTIONS[name].show(result)
            files += _write(exhibit, out)
            shown |= {title: markdown(table) for title, table in exhibit.shown.items()}
    page = out / PAGE
    write_atomically(page, _page(context, out, results, shown, empty, command, links))
    write(out, content_of(context, command, seconds, [page, *files], out), earlier)
    return [page, *files]


def _write(exhibit: Exhibit, folder: Path) -> list[Path]:
    written: list[Path] = []
    for name, figure in exhibit.figures.items():
        written += save(figure, folder / name)
    for name, table in exhibit.tables.items():
        written.append(save_table(table, folder / f"{name}.csv"))
    for name, words in exhibit.shown.items():
        path = folder / f"{name}.md"
        write_atomically(path, markdown(words))
        written.append(path)
    return written


def _page(
    context: Context,
    out: Path,
    results: Mapping[str, Any],
    shown: Mapping[str, str],
    empty: Mapping[str, str],
    command: str,
    links: Sequence[Beside],
) -> str:
    """Markdown of the results by section; `shown` has the tables, `empty` says why a section has nothing to
    show. The page links to pages of the documentation where they stand beside it."""

    def docs(title: str, page: str, place: str = "") -> Markdown:
        there = Path(normpath(out.resolve() / "../../../docs" / page)).is_file()  # `out` is made later
        if not there:
            return Markdown(f"{title}, docs/{page} of lrp4rag")
        return Markdown(f"[{title}](../../../docs/{page}{place})")

    environment = markdown_templates(TEMPLATES / "paper")
    own: dict[str, Any] = {
        "points": points,
        "with_interval": with_interval,
        "difference": difference,
        "worded": worded,
    }
    environment.filters |= {**FILTERS, **own}
    configuration = context.rows.store.configuration
    notes = [note for result in results.values() for note in getattr(result, "left_out", ())]
    page: str = environment.get_template("page.md.j2").render(
        results=results,
        whole=len(results) == len(SECTIONS),
        shown=shown,
        command=command,
        extractions=list(extractions(context)),
        docs=docs,
        empty=empty,
        subsets=context.subsets,
        sources={name: len(set(subset.groups)) for name, subset in context.subsets.items()},
        settings=context.settings,
        setup=ablations.setup(configuration),
        reader=Path(str(configuration.reader.get("name", ""))).name,
        no_worse=findings.NO_WORSE,
        notes=_by_reason(notes),
        beside=[(link, more) for link in links if (more := _more(link.manifest, context, results))],
    )
    return page


def _more(other: Manifest, context: Context, results: Mapping[str, Any]) -> list[str]:
    """What another page has that this one leaves out, in words: a part of generators whose rows lack it here,
    and baselines that were not run here."""
    words = []
    for part, name in PART_WORDS.items() if results.keys() - {BASELINES} else ():
        lacking = {generator for generator, one in context.subsets.items() if not one.has(part)}
        if rows := {each: count for each, count in other.rows_with(part).items() if each in lacking}:
            of = ", ".join(f"{each} ({count} responses)" for each, count in rows.items())
            words.append(f"{name} of {of}")
    if more := [name for name in other.baselines if name not in context.baselines]:
        words.append(f"{', '.join(more)} on responses of {', '.join(other.generators)}")
    return words


def _by_reason(notes: Sequence[Note]) -> list[Note]:
    """What is left out for one reason, and is added in one way, is one note."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        reasons.setdefault((note.why, note.remedy), []).append(note.what)
    return [Note("; ".join(dict.fromkeys(what)), *reason) for reason, what in reasons.items()]


def extractions(context: Context) -> Iterator[str]:
    """The commands that make the stores: one for each store, and for each set of parts that some generators
    have in it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, subset in context.subsets.items():
        groups.setdefault(tuple(context.extras(subset)), []).append(name)
    for parts, generators in groups.items():
        yield _extraction(context.rows.store, parts, generators if len(groups) > 1 else ())
    for name, rows in context.stores.items():
        having = [generator for generator, variant in context.variants[name].items() if variant]
        yield _extraction(rows.store, (), having if len(having) < len(context.subsets) else ())


def _extraction(store: Any, extras: Sequence[str], generators: Sequence[str]) -> str:
    """The command that makes a store of this configuration, with parts beside relevance."""
    made = store.configuration.as_dict()
    reader = made["reader"]
    name, dtype = Path(str(reader["name"])).name, reader["dtype"]
    program = ["python", "-m", "experiments"] if SIGNALS in extras else ["lrp4rag"]
    words = [*program, "extract", "DATA", "--store", store.folder.name]
    words += [] if name == DEFAULT_READER else ["--reader", name]
    words += [] if dtype == "float32" else ["--dtype", dtype]
    words += [] if made["composite"] == "attnlrp" else ["--composite", made["composite"]]
    words += [] if reader["chat_template"] else ["--no-chat-template"]
    words += [] if made["truncation"] == "error" else ["--truncate", made["truncation"]]
    words += ["--parts", ",".join([RELEVANCE, *extras])]
    return shlex.join([*words, *(word for each in generators for word in ("--generator", each))])


def points(interval: Interval | None) -> str:
    """-2.8 points [-5.0, +0.1]"""
    if interval is None or interval.value is None or interval.low is None or interval.high is None:
        return ""
    return f"{100 * interval.value:+.1f} points [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"
