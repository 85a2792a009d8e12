"""Groups over the workers of a cluster, by Ray Data: an actor a device, which loads its reader once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lrp4rag.guard.cluster.attempts import Attempts
from lrp4rag.guard.cluster.groups import Groups
from lrp4rag.guard.cluster.session import errors_of_workers, of_worker
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning

MOST_AT_ONCE = 64
"""Rows that an actor gets at a time; fewer where there are few, so that all actors have some."""
SHARES = 8
"""Times that each actor is given something, where there are few rows."""
_FAULT = "fault"
ATTEMPTS = 5
"""Times that the same rows are begun: Ray begins them again where their worker died, and what kills each
worker that has them would do so for ever."""


def resources() -> dict[str, float]:
    """Of the cluster as it is now: CPU, GPU, memory."""
    import ray

    found: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return found


@dataclass(frozen=True, slots=True)
class Workers:
    """How many actors (None: as many as there are devices, also those that an autoscaler adds), and what each
    takes: CPUs, which are its threads, GPUs, and bytes of memory that Ray sets aside for it. `waits` for a
    machine that can hold one, where an autoscaler may bring it."""

    count: int | None = None
    cpus: int = 1
    gpu: bool = False
    memory: int | None = None
    waits: bool = False

    @property
    def resources(self) -> dict[str, Any]:
        """As Ray wants them."""
        found: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": 1 if self.gpu else 0}
        return found if self.memory is None else {**found, "memory": self.memory}

    def here(self) -> int:
        """How many fit the machines of the cluster as it is now. Raises `InputError` where none does, unless
        it `waits`."""
        import ray

        names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        wants = {names[name]: amount for name, amount in self.resources.items() if amount}
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        fits = sum(min(int(of.get(name, 0) // amount) for name, amount in wants.items()) for of in machines)
        if fits:
            return fits
        has = "; ".join(_words({name: of.get(name, 0) for name in wants}) for of in machines)
        message = f"no machine has room for a worker: it takes {_words(wants)}, and machines have {has}"
        if not self.waits:
            raise InputError(f"{message}; see --worker-cpus and --max-memory")
        warnings.warn(f"{message}; waiting for one", LRP4RAGWarning, stacklevel=2)
        return 1


def _words(resources: Mapping[str, float]) -> str:
    return " and ".join(
        f"{amount / 1e9:.1f} GB" if name == "memory" else f"{amount:.0f} {name}"
        for name, amount in resources.items()
    )


def spread(groups: Groups, worker: type, plan: Any, workers: Workers) -> Iterator[dict[str, Any]]:
    """What `worker(plan).run(group, numbered)` yields of every group, a dict each, as groups are done.

    A worker that dies, alone or with its machine, is started again, and does its rows again: none is lost,
    and none comes twice. Raises what a worker raises, and `LRP4RAGError` where one dies again and again.
    """
    import ray
    import ray.data

    fits = workers.here()
    count = workers.count or fits
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    each = at_once(len(groups), groups.rows, count)
    blocks = -(-len(groups) // each)
    # Blocks that are here already: tasks that read them would wait for the cores that the actors hold.
    numbers = ray.data.from_items([{"id": block} for block in range(blocks)], override_num_blocks=blocks)
    shared, begun = (
        ray.put(groups),
        ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Attempts).remote(),
    )
    pool = ray.data.ActorPoolStrategy(
        min_size=min(count, blocks),
        max_size=min(count, blocks) if workers.count else None,
        max_tasks_in_flight_per_actor=2,
    )
    done = numbers.map_batches(
        _Actor,
        fn_constructor_args=([shared], begun, worker, plan, each, ATTEMPTS),
        batch_size=None,
        compute=pool,
        **workers.resources,
    )
    with errors_of_workers():
        for row in done.iter_rows():
            if _FAULT in row:
                raise (
                    InputError(row[_FAULT])
                    if row["code"] == InputError.exit_code
                    else LRP4RAGError(row[_FAULT])
                )
            yield row


def at_once(groups: int, rows: int, workers: int) -> int:
    """How many groups a worker gets at a time."""
    return max(1, min(MOST_AT_ONCE * groups // max(rows, 1), groups // (workers * SHARES), MOST_AT_ONCE))


class _Actor:
    """Holds the worker, which holds the reader."""

    def __init__(
        self, shared: list[Any], begun: Any, worker: type, plan: Any, each: int, attempts: int
    ) -> None:
        import ray

        self._groups: Groups = ray.get(shared[0])
        self._each, self._begun, self._attempts = each, begun, attempts
        self._open: Callable[[], Any] = lambda: worker(plan)

    @cached_property
    def _worker(self) -> Any:
        return self._open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        try:
            rows = [row for block in batch["id"].tolist() for row in self._rows(block)]
        except Exception as error:  # Ray would say that something failed, and not what
            told = of_worker(error)
            rows = [{_FAULT: str(told), "code": told.exit_code}]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _rows(self, block: int) -> list[dict[str, Any]]:
        import ray

        groups = [
            self._groups.read(number)
            for number in range(block * self._each, min((block + 1) * self._each, len(self._groups)))
        ]
        if ray.get(self._begun.begin.remote(block)) > self._attempts:
            raise LRP4RAGError(
                f"workers died {self._attempts} times at the same responses, from "
                f"'{groups[0][0].examples[0].id}' to '{groups[-1][0].examples[-1].id}'; did memory run out? "
                "What is done is kept: leave them out, or give workers more memory (--max-memory), and run "
                "it again"
            )
        rows = [row for group in groups for row in self._worker.run(*group)]
        self._begun.end.remote(block)
        return rows
