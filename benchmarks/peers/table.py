"""All peers on one example, in rounds that alternate between them, so that ratios hold on a noisy machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.client import Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.store import Cell, Store
from benchmarks.peers.totals import relative_error, spread

Say = Callable[[str], None]


@dataclass
class Reference:
    """Ours under one composite, asked for what a peer is compared with."""

    worker: Worker
    _known: dict[str, Any] = field(default_factory=dict)

    def get(self, what: str) -> list[float]:
        """The explained logits (`forward`), R_response or R_prompt."""
        if what not in self._known:
            self._known[what] = self.worker.ask(what).values
        values: list[float] = self._known[what]
        return values

    def rows(self, first: int, count: int) -> list[list[float]]:
        values: list[list[float]] = self.worker.ask("units", first=first, count=count).values
        return values


class Session:
    """The workers of one table, each started when it is first needed."""

    def __init__(self, job: Job) -> None:
        self.job, self._open = job, ExitStack()
        self._workers: dict[tuple[str, str], Worker] = {}
        self._references: dict[str, Reference] = {}

    def worker(self, peer: str, composite: str = "attnlrp") -> Worker:
        key = peer, composite
        if key not in self._workers:
            worker = self._open.enter_context(Worker(peer, self.job, composite))
            worker.ask("units", first=0, count=1)  # the first call of a library sets things up
            self._workers[key] = worker
        return self._workers[key]

    def reference(self, composite: str) -> Reference:
        if composite not in self._references:
            self._references[composite] = Reference(self.worker("ours", composite))
        return self._references[composite]

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def measure_table(
    job: Job, peers: Sequence[str], rounds: int, store: Store, say: Say
) -> tuple[dict[str, list[Cell]], dict[str, Cell], dict[str, str]]:
    """Cells of every round by peer, memory by peer, and why the peers that are missing are missing."""
    size = f"{len(job.prompt_ids)}+{len(job.response_ids)}"
    cells: dict[str, list[Cell]] = {peer: [] for peer in peers}
    missing: dict[str, str] = {}
    with Session(job) as session:
        for k in range(rounds):
            for peer in peers:
                key = f"table {size} round {k + 1} of {rounds} {peer}"
                if peer in missing:
                    continue
                if key not in store:
                    say(key)
                try:
                    cell = store.cell(key, lambda p=peer, k=k: _round(session, p, k, rounds))  # type: ignore[misc]
                    cells[peer].append(cell)
                except (UnavailableError, PeerError) as error:
                    missing[peer] = str(error)
                    say(f"{peer}: {error}")
    memory = {}
    for peer in [peer for peer in peers if peer not in missing]:
        key = f"memory {size} {peer}"
        if key not in store:
            say(key)
        try:
            memory[peer] = store.cell(key, lambda p=peer: _memory(job, p))  # type: ignore[misc]
        except (UnavailableError, PeerError) as error:
            missing[peer] = f"its memory could not be measured: {error}"
    return cells, memory, missing


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
    plain = session.reference("attnlrp").get("forward")
    errors = {"logits": relative_error(before.values, plain)}
    if about["agrees_with"] and peer != "ours":
        rows = [
            pair
            for (first, _), unit in zip(parts, units, strict=True)
            for pair in enumerate(unit.values, first)
        ]
        prompt = whole["prompt"].values if "prompt" in whole else None
        errors |= _agreement(session.reference(about["agrees_with"]), rows, prompt)
    timed = [
        {"first": first, "count": count, "seconds": unit.seconds}
        for (first, count), unit in zip(parts, units, strict=True)
    ]
    forward = (before.seconds + after.seconds) / 2
    seconds = {what: answer.seconds for what, answer in whole.items()}
    return {"about": about, "forward": forward, **seconds, "units": timed, "errors": errors}


def _agreement(
    reference: Reference, rows: list[tuple[int, list[float]]], prompt: list[float] | None
) -> dict[str, float]:
    """Relative errors of rows of R*, of their means (against R_response, pushed), and of R_prompt."""
    response = reference.get("response")
    largest = max(abs(value) for value in response)
    means = [abs(sum(row) / len(row) - response[j]) / largest for j, row in rows]
    errors = {
        "response": max(means),
        "row": max(relative_error(row, reference.rows(j, 1)[0]) for j, row in rows),
    }
    if prompt is not None:
        errors["prompt"] = relative_error(prompt, reference.get("prompt"))
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
