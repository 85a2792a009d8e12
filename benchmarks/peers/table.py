"""All peers on one example, in rounds that alternate between them, so that ratios hold on a noisy machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.cells import Cell, Cells
from benchmarks.peers.client import Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.totals import relative_error, spread

Say = Callable[[str], None]


@dataclass
class Session:
    """The workers of one table, each started when it is first needed."""

    job: Job
    opened: ExitStack
    _workers: dict[tuple[str, str], Worker] = field(default_factory=dict)
    _ours: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def worker(self, peer: str, composite: str = "attnlrp") -> Worker:
        key = peer, composite
        if key not in self._workers:
            worker = self.opened.enter_context(Worker(peer, self.job, composite))
            worker.ask("units", first=0, count=1)  # the first call of a library sets things up
            self._workers[key] = worker
        return self._workers[key]

    def ours(self, composite: str, what: str, **request: int) -> Any:
        """What ours gives under a composite: the explained logits (`forward`), R_response, R_prompt, rows."""
        key = (composite, what, *request.values())
        if key not in self._ours:
            self._ours[key] = self.worker("ours", composite).ask(what, **request).values
        return self._ours[key]


def measure_table(
    job: Job, peers: Sequence[str], rounds: int, cells: Cells, say: Say
) -> tuple[dict[str, list[Cell]], dict[str, Cell], dict[str, str]]:
    """Cells of every round by peer, memory by peer, and why the peers that are missing are missing."""
    size = f"{len(job.prompt_ids)}+{len(job.response_ids)}"
    found: dict[str, list[Cell]] = {peer: [] for peer in peers}
    memory: dict[str, Cell] = {}
    missing: dict[str, str] = {}

    def measured(peer: str, key: str, measure: Callable[[], Cell], trouble: str = "") -> list[Cell]:
        """The cell, or nothing where the peer cannot be measured."""
        if peer in missing:
            return []
        if key not in cells:
            say(key)
        try:
            return [cells.cell(key, measure)]
        except (UnavailableError, PeerError) as error:
            missing[peer] = f"{trouble}{error}"
            say(f"{peer}: {missing[peer]}")
            return []

    with ExitStack() as opened:
        session = Session(job, opened)
        for k in range(rounds):
            for peer in peers:
                key = f"table {size} round {k + 1} of {rounds} {peer}"
                found[peer] += measured(peer, key, partial(_round, session, peer, k, rounds))
    for peer in peers:
        trouble = "its memory could not be measured: "
        for cell in measured(peer, f"memory {size} {peer}", partial(_memory, job, peer), trouble):
            memory[peer] = cell
    return found, memory, missing


def _round(session: Session, peer: str, k: int, rounds: int) -> Cell:
    """One round of one peer: a plain forward, what it gets whole, some rows, a plain forward."""
    worker = session.worker(peer)
    about = worker.about
    before = worker.ask("forward")
    whole = {what: worker.ask(what) for what in about["whole"]}
    starts = spread(about["units"], about["chunk"], rounds * about["picks"])[k::rounds]
    parts = [(first, min(about["chunk"], about["units"] - first)) for first in starts]
    units = [worker.ask("units", first=first, count=count) for first, count in parts]
    after = worker.ask("forward")
    errors = {"logits": relative_error(before.values, session.ours("attnlrp", "forward"))}
    if about["agrees_with"] and peer != "ours":
        rows = [
            pair
            for (first, _), unit in zip(parts, units, strict=True)
            for pair in enumerate(unit.values, first)
        ]
        prompt = whole["prompt"].values if "prompt" in whole else None
        errors |= _agreement(partial(session.ours, about["agrees_with"]), rows, prompt)
    timed = [
        {"first": first, "count": count, "seconds": unit.seconds}
        for (first, count), unit in zip(parts, units, strict=True)
    ]
    forward = (before.seconds + after.seconds) / 2
    seconds = {what: answer.seconds for what, answer in whole.items()}
    return {"about": about, "forward": forward, **seconds, "units": timed, "errors": errors}


def _agreement(
    ours: Callable[..., Any], rows: list[tuple[int, list[float]]], prompt: list[float] | None
) -> dict[str, float]:
    """Relative errors of rows of R*, of their means (against R_response, pushed), and of R_prompt."""
    response = ours("response")
    largest = max(abs(value) for value in response)
    errors = {
        "response": max(abs(sum(row) / len(row) - response[j]) / largest for j, row in rows),
        "row": max(relative_error(row, ours("units", first=j, count=1)[0]) for j, row in rows),
    }
    if prompt is not None:
        errors["prompt"] = relative_error(prompt, ours("prompt"))
    return errors


def _memory(job: Job, peer: str) -> Cell:
    """Peak resident bytes of a fresh process, for each thing it does, its weights included."""
    with Worker(peer, job) as worker:
        about = worker.about
        peaks = {}
        for what in ("forward", *about["whole"]):
            worker.ask("forget")
            peaks[what] = worker.ask(what).peak_bytes
        worker.ask("forget")
        first = about["units"] - min(about["chunk"], about["units"])  # the last rows need the most
        answer = worker.ask("units", first=first, count=min(about["chunk"], about["units"]))
        peaks["matrix"] = answer.peak_bytes
    return {what: peaks.get(what, peaks["matrix"]) for what in ("forward", "response", "prompt", "matrix")}
