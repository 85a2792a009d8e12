"""The page that tells what was measured: docs/guarding.md, made of the results' files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS, table
from lrp4rag.util.files import write_atomically

DOCS = Path("docs")
RESULTS = Path("results") / "service"
"""Below the docs."""
Found = dict[str, Any]

TEXT = Path(__file__).with_name("page.md")
"""With TABLE where the results belong."""


@dataclass(frozen=True)
class Line:
    """A promise, the file that tells (without .json), the command, what was found, and whether it holds."""

    promise: str
    name: str
    command: str
    words: Callable[[Found], str]
    holds: Callable[[Found], bool]


def _streams(found: Found) -> str:
    names = ("unjudged", "lost", "crossed")
    counts = ", ".join(f"{found[f'{name}_characters']} {name}" for name in names)
    return (
        f"{found['answers']} answers: {counts}; p50 {found['held_p50']:.2f} s, p95 {found['held_p95']:.2f} s"
    )


def _clean(found: Found) -> bool:
    return not any(found[f"{name}_characters"] for name in ("unjudged", "lost", "crossed"))


def _held(clients: str, name: str, options: str, most: float) -> Line:
    """Seconds that sentences are held, with so many clients."""
    return Line(
        f"{clients}: the same; held p95 ≤ {most} s",
        name,
        f"streams {options}",
        _streams,
        lambda found: _clean(found) and found["held_p95"] <= most,
    )


def _overload(found: Found) -> str:
    p99 = found["refused_p99"]
    return (
        f"{found['offered']} offered: {found['server_errors']} server errors, refusals' p99 "
        f"{'none' if p99 is None else f'{1000 * p99:.0f} ms'}, {found['late']} of "
        f"{found['statuses'].get('200', 0)} late"
    )


def _capacity(found: Found) -> str:
    rates = [(dtype, found[f"{dtype}_answers_per_minute"]) for dtype in found["dtypes"]]
    return ", ".join(f"{rate:.1f} a minute in {dtype}" for dtype, rate in rates)


def _metrics(found: Found) -> str:
    kinds = ("response", "streamed")
    return ", ".join(
        f"{kind} {100 * found[f'{kind}_updates_over_verdict']:.3f} % "
        f"(highest {100 * found[f'{kind}_updates_over_verdict_max']:.3f} %)"
        for kind in kinds
    )


def _soak(found: Found) -> str:
    return (
        f"{found['slope_mb_per_hour']:.1f} [{found['slope_low']:.1f}, {found['slope_high']:.1f}] MB an hour "
        f"over {found['minutes']:g} min; "
        f"descriptors {found['descriptors'][0]} and {found['descriptors'][1]}, "
        f"threads {found['server_threads'][0]} and {found['server_threads'][1]}"
    )


def _replicas(found: Found) -> str:
    statuses = ", ".join(f"{number} with {status}" for status, number in found["by_status"].items())
    return (
        f"{found['kills']} kills; requests: {statuses}, {found['streams_ended_by_an_error']} streams ended "
        f"by an error, {found['connections_cut']} cut; {found['unjudged_pieces']} unjudged, "
        f"{found['decisions_missing']} of {found['decisions_told']} decisions missing, "
        f"{found['audit_problems']} problems; replaced in {found['replaced_in_max']:.0f} s at most"
    )


def _replicas_hold(found: Found) -> bool:
    none = ("connections_cut", "unjudged_pieces", "left_without_retry_after", "decisions_missing")
    return set(found["by_status"]) <= {"200", "429", "503"} and not any(
        found[name] for name in (*none, "audit_problems")
    )


LINES = (
    Line(
        "500 streams, cut at random: no character leaves unjudged, is lost or crosses to another client",
        "streams-many", "streams --answers 500 --clients 4 --reader tiny --pause 0.002", _streams, _clean,
    ),
    _held("one client", "streams", "--answers 60", 0.5),
    _held("four clients", "streams-4", "--answers 100 --clients 4", 1.5),
    _held("one client in bfloat16", "streams-bfloat16", "--answers 60 --dtype bfloat16", 0.5),
    _held(
        "four clients in bfloat16", "streams-4-bfloat16", "--answers 100 --clients 4 --dtype bfloat16", 1.5
    ),
    Line("answers judged a minute (reported)", "capacity", "capacity", _capacity, lambda found: True),
    Line(
        "five times the capacity for 5 min: no server error, refusals' p99 ≤ 100 ms, none accepted is late",
        "overload", "overload", _overload,
        lambda found: found["server_errors"] == found["late"] == 0 and (found["refused_p99"] or 0) <= 0.1,
    ),
    Line(
        "mixed traffic for 30 min or more: memory grows ≤ 6 MB an hour, no descriptor stays open",
        "soak", "soak --minutes 60 --warm-up 25", _soak,
        lambda found: found["slope_mb_per_hour"] <= 6
        and found["descriptors"][1] <= found["descriptors"][0] + found["clients"],
    ),
    Line(
        "kill -9 at 30 moments: every decision told is in the chain, the chain is whole, it starts again",
        "kill", "kill",
        lambda found: f"{found['kills']} kills, {found['decisions_told']} decisions told: "
        f"{found['decisions_missing']} missing, {found['audit_problems']} problems, "
        f"{found['started_again']} starts",
        lambda found: found["decisions_missing"] == found["audit_problems"] == 0
        and found["started_again"] == found["kills"],
    ),
    Line(
        "two replicas, one killed 6 times under load: answers are whole, told to have failed, or 503; every "
        "decision told is in one chain",
        "replicas", "replicas", _replicas, _replicas_hold,
    ),
    Line(
        "500 tamperings of the audit database: each is found", "tamper", "tamper",
        lambda found: f"{found['found']} of {found['tamperings']}",
        lambda found: found["found"] == found["tamperings"] and found["untouched_is_whole"],
    ),
    Line(
        "100 faults of disk, database, upstream and reader: nothing served unjudged, each failure told",
        "faults", "faults",
        lambda found: f"{found['faults']} faults: {found['unjudged_characters']} characters unjudged, "
        f"{found['unexpected']} unexpected replies, recovered after {found['recovered']}",
        lambda found: found["unjudged_characters"] == found["unexpected"] == 0
        and found["recovered"] == found["faults"],
    ),
    Line(
        "2,000 generated requests: no server error", "fuzz", "fuzz",
        lambda found: f"{found['requests']:,} requests: {found['server_errors']} server errors",
        lambda found: found["server_errors"] == 0,
    ),
    Line(
        "100 vanishing clients: the reader is free again ≤ 0.5 s after", "vanishing", "vanishing",
        lambda found: f"{found['clients_gone']} gone, {found['in_the_middle']} of them in the middle: free "
        f"after {found['free_max']:.2f} s at most; then a request takes {found['new_request_p50']:.2f} s "
        f"(idle {found['idle_request_p50']:.2f} s)",
        lambda found: found["free_max"] <= 0.5,
    ),
    Line(
        "all updates of metrics for an answer: ≤ 1 % of the time in which the reader judges it",
        "metrics", "metrics", _metrics,
        lambda found: max(found[f"{kind}_updates_over_verdict"] for kind in ("response", "streamed")) <= 0.01,
    ),
    Line(
        "canary texts, text logging off: in no log, metric, audit record or reply to another",
        "canaries", "canaries",
        lambda found: f"{found['canaries']:,} canaries in {found['requests']} requests: "
        f"{found['found']} found",
        lambda found: found["found"] == 0,
    ),
)  # fmt: skip


def row(line: Line, docs: Path) -> tuple[str, ...]:
    """The line's cells; what has no file was not measured."""
    path, command = RESULTS / f"{line.name}.json", f"`{line.command}`"
    if not (docs / path).exists():
        return line.promise, "not measured", "", command, ""
    found = json.loads((docs / path).read_text())
    ran = f"{found['reader']} reader" + (", quick" if found.get("quick") else "")
    holds = "yes" if line.holds(found) else "**no**"
    return line.promise, f"{line.words(found)} ({ran})", holds, command, f"[{line.name}]({path.as_posix()})"


def page(docs: Path) -> str:
    """The page, with the figure of memory where there is one."""
    head = ("must hold", "measured", "holds", "`python -m benchmarks.service.` …", "results")
    lines = table(head, [row(line, docs) for line in LINES])
    figure = RESULTS / "soak.svg"
    shown = (
        [f"![Memory of the server over time]({figure.as_posix()})", ""] if (docs / figure).exists() else []
    )
    return TEXT.read_text().replace("TABLE", "\n".join([*lines, *shown]))


def draw(docs: Path) -> None:
    """Memory over time, where it was measured."""
    path = docs / RESULTS / "soak.json"
    if not path.exists():
        return
    from experiments.figures.style import blank, save, themed

    found = json.loads(path.read_text())
    with themed():
        drawn = blank((8.0, 3.0))
        ax = drawn.subplots()
        ax.plot(*zip(*((minute, size / 1e6) for minute, size in found["samples"]), strict=True), lw=1)
        ax.axvline(found["warm_up"], color="0.5", ls="--", lw=1)
        ax.set(xlabel="minutes (dashed: end of the warm-up)", ylabel="resident memory (MB)", ylim=(0, None))
        save(drawn, docs / RESULTS / "soak")


@click.command(context_settings=SETTINGS)
@click.option("--docs", default=DOCS, show_default=True, type=click.Path(path_type=Path, file_okay=False))
def main(docs: Path) -> None:
    """Write DOCS/guarding.md from the files in DOCS/results/service."""
    draw(docs)
    write_atomically(docs / "guarding.md", page(docs))


if __name__ == "__main__":
    main()
