"""A Ray cluster to work on, and groups of responses over its workers, by Ray Data: an actor per device
that loads its reader once."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from lrp4rag.training.extractor import Group
from lrp4rag.util.errors import InputError, LRP4RAGError, first_line

MISSING = "Ray is not installed: pip install 'lrp4rag[ray]'"


@contextmanager
def joined(address: str | None = None) -> Iterator[None]:
    """Join the cluster at an address ("auto": one on this machine), at `RAY_ADDRESS`, or else start one on
    this machine and end it afterwards. A cluster that this process has joined already is used and left.

    Raises `InputError` without Ray, and where no cluster answers.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    target = cluster_address(address)
    options: dict[str, Any] = {"include_dashboard": False} if target == "local" else {}
    try:
        ray.init(target, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **options)
    except ConnectionError as error:
        message = f"no Ray cluster answers at {target}: {first_line(error)}"
        raise InputError(message, field="--address") from error
    except Exception as error:  # bare ones, where a process of Ray's own starts too slowly on a busy machine
        ray.shutdown()
        raise LRP4RAGError(f"Ray did not start: {first_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def cluster_address(address: str | None) -> str:
    """Return the address, or else the environment's; "local" is a new cluster of this machine."""
    return address or os.environ.get("RAY_ADDRESS") or "local"


def import_ray() -> Any:
    """Import Ray so that it prints errors only, and reports no usage unless the environment allows it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # A thread of Ray Data that outlives a failed run would otherwise join the cluster again.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError(MISSING) from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise what a worker raised: errors of this package as they are, others in one line."""
    import ray

    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause: BaseException = error
        while (inner := getattr(cause, "cause", None) or cause.__cause__) is not None:
            cause = inner
        raise as_worker_error(cause) from error
    except ray.exceptions.RayError as error:
        raise LRP4RAGError(
            f"a worker process or its machine died ({first_line(error)}); did memory run out? Run it again, "
            "perhaps with fewer workers: it resumes where it stopped"
        ) from error


def as_worker_error(error: BaseException) -> LRP4RAGError:
    """Return the error of a worker as one of this package."""
    if isinstance(error, LRP4RAGError):
        return error
    return LRP4RAGError(f"a worker failed: {type(error).__name__}: {first_line(error)}")


GROUPS_PER_TASK = 16
"""Groups that an actor gets at a time, and does again where it died; fewer where there are few."""
RESTARTS = 5
"""Restarts of an actor by Ray: a response that kills each worker ends the run."""
Rows = list[dict[str, Any]]


class Worker(Protocol):
    """Does the work of one group in a process of the cluster; the rows are JSON."""

    def run(self, group: Group) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Workers:
    """How many actors (None: as many as fit, also on machines that an autoscaler adds) and the resources of
    each: CPUs, which are its threads, a GPU, and the bytes of memory that Ray sets aside for it."""

    count: int | None = None
    cpus: int = 1
    gpu: bool = False
    memory: int | None = None

    @property
    def resources(self) -> dict[str, Any]:
        """Options of Ray's tasks and actors."""
        memory = {} if self.memory is None else {"memory": self.memory}
        return {"num_cpus": self.cpus, "num_gpus": int(self.gpu), **memory}

    @property
    def room(self) -> int:
        """The number of actors for which the cluster's machines have room now."""
        import ray

        needs = {"CPU": self.cpus, "GPU": int(self.gpu), "memory": self.memory or 0}
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        return sum(
            min(int(machine.get(name, 0) // need) for name, need in needs.items() if need)
            for machine in machines
        )


def has_gpu() -> bool:
    """Say whether a machine of the cluster has a GPU."""
    import ray

    return bool(ray.cluster_resources().get("GPU", 0))  # type: ignore[no-untyped-call]


def map_groups(
    groups: Sequence[Group], create: Callable[[], Worker], workers: Workers
) -> Generator[tuple[int, Rows]]:
    """Yield the number of each group with the rows that a worker made of it, as groups are done.

    A worker that dies, alone or with its machine, is started again and does its task again: no group is lost,
    and none comes twice. Raises what a worker raises, `LRP4RAGError` where workers die again and again, and
    `InputError` where no machine has room for one.
    """
    import ray.data

    room = workers.room
    if not room:
        raise InputError(
            f"no machine of the cluster has room for a worker, which takes {workers.resources}; see "
            "--worker-cpus and --max-memory"
        )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    count = workers.count or room
    tasks = max(min(len(groups), 8 * count), -(-len(groups) // GROUPS_PER_TASK))
    pool = ray.data.ActorPoolStrategy(
        min_size=min(count, tasks), max_size=min(count, tasks) if workers.count else None
    )
    items = [{"number": number, "group": group} for number, group in enumerate(groups)]
    with warnings.catch_warnings():
        # Ray 2.64 drops `max_restarts` and has no other bound of how often a task kills its worker.
        warnings.filterwarnings("ignore", "`ray_remote_args`")
        results = ray.data.from_items(items, override_num_blocks=tasks).map_batches(
            _Actor,
            fn_constructor_args=(create, workers.cpus),
            batch_size=None,
            compute=pool,
            max_restarts=RESTARTS,
            **workers.resources,
        )
    with worker_errors():
        for row in results.iter_rows():
            if row["error"]:
                kind = InputError if row["code"] == InputError.exit_code else LRP4RAGError
                raise kind(row["error"])
            yield row["number"], json.loads(row["rows"])


class _Actor:
    """Holds the worker, which holds the reader. An error is a row: Ray would name its type only."""

    def __init__(self, create: Callable[[], Worker], threads: int) -> None:
        self._create, self._threads = create, threads

    @cached_property
    def _worker(self) -> Worker:
        import torch

        torch.set_num_threads(self._threads)
        return self._create()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        numbers = [int(number) for number in batch["number"]]
        try:
            rows = [json.dumps(self._worker.run(group)) for group in batch["group"]]
        except Exception as error:
            failure = as_worker_error(error)
            return {"number": numbers[:1], "rows": [""], "error": [str(failure)], "code": [failure.exit_code]}
        return {
            "number": numbers,
            "rows": rows,
            "error": [""] * len(rows),
            "code": [0] * len(rows),
        }
