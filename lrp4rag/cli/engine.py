"""Options for where work is done: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import advanced
from lrp4rag.cli.options import Decorator, ReaderChoice, gathered, hidden
from lrp4rag.util.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.guard.cluster.workers import Workers
    from lrp4rag.guard.many import MapGroups


@dataclass(frozen=True)
class EngineChoice:
    """Where work is done: by processes of this machine, or by workers of a cluster."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    worker_cpus: int = 1

    @property
    def ray(self) -> bool:
        return self.engine == "ray"

    @property
    def several(self) -> bool:
        """True where work is shared."""
        return self.ray or (self.workers or 1) > 1

    def require_one_process(self, options: str) -> None:
        """Raise `InputError` where work is shared, for `options` that need one process."""
        if self.several:
            raise InputError(f"{options} for one process")

    @contextmanager
    def joined(self, reader: ReaderChoice) -> Iterator[Workers]:
        """Join the cluster; its workers have a device each and the memory that the reader's options name."""
        from lrp4rag.guard.cluster.workers import Workers, has_gpu, joined

        with joined(self.address):
            gpu = (reader.device is None or reader.device.startswith("cuda")) and has_gpu()
            memory = None if gpu else reader.max_memory  # with a GPU it is the GPU's
            yield Workers(self.workers, self.worker_cpus, gpu=gpu, memory=memory)

    @contextmanager
    def mapping(self, reader: ReaderChoice) -> Iterator[MapGroups]:
        """Yield the function that maps groups of responses over the workers."""
        if not self.ray:
            from lrp4rag.util.processes import map_tasks

            yield partial(map_tasks, workers=self.workers or 1)
            return
        from lrp4rag.guard.cluster.workers import map_groups

        with self.joined(reader) as workers:
            yield partial(map_groups, workers=workers)

    def of_worker(self, reader: ReaderChoice) -> ReaderChoice:
        """Return the reader of a worker: with a part of the memory, or as other machines find it."""
        if self.ray:
            return reader.for_workers()
        memory = reader.max_memory and reader.max_memory // (self.workers or 1)
        return replace(reader, max_memory=memory)

    def require_possible(self, reader: ReaderChoice) -> None:
        """Raise `InputError` for options of a cluster without one, and for a reader on all devices beside
        others."""
        if not self.ray and (self.address is not None or self.worker_cpus != 1):
            raise InputError("--address and --worker-cpus are for a cluster; add --engine ray")
        if reader.device == "auto" and self.several:
            raise InputError("--device auto spreads one reader over the devices of one machine: one worker")


_OPTIONS = {
    "workers": advanced(
        "--workers",
        type=click.IntRange(1),
        help="Processes that share the work and --max-memory; without --device they take GPUs in turn. "
        "With --engine ray: readers on any machine, with --max-memory each.  [default: 1; with ray as many "
        "as there are GPUs, or CPUs]",
    ),
    "engine": advanced(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        help="Where: on this machine, or on a Ray cluster (docs/guides/scale.md#on-a-cluster).",
    ),
    "address": advanced(
        "--address",
        metavar="ADDRESS",
        help="Ray cluster to join, such as auto or ray-head:6379.  [default: RAY_ADDRESS, or one of this "
        "machine]",
    ),
    "worker-cpus": advanced(
        "--worker-cpus",
        default=1,
        type=click.IntRange(1),
        metavar="N",
        help="CPUs, and threads, of each worker of a cluster.",
    ),
}


def engine_options(shown: Collection[str] = ("workers", "engine")) -> Decorator:
    """Declare the engine's options, as an `EngineChoice` named `engine`; help shows `shown`."""
    options = (option if name in shown else hidden(option) for name, option in _OPTIONS.items())
    return gathered(EngineChoice, "engine", *options)
