"""`lrp4rag serve --ray`: the same server with several readers, each in a replica of Ray Serve."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import Metric
from sqlalchemy.engine import make_url
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Scope

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.cluster.gateway import create_gateway
from lrp4rag.guard.cluster.workers import import_ray, joined
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.state import load_detector
from lrp4rag.judge import Detector
from lrp4rag.util.errors import InputError, LRP4RAGError, first_line
from lrp4rag.util.files import absolute_name

MISSING = "replicas need Ray Serve: pip install 'lrp4rag[ray,serve]'"
METRICS_SECONDS = 5.0
"""Seconds in which replicas report their metrics."""
HEALTH_CHECK_SECONDS = 2.0
MOST_ONGOING = 10_000
"""Requests that Serve hands to one replica: how many it takes is the replica's own decision (429)."""
LIBPQ = "PG"
"""The prefix of PostgreSQL's variables, such as PGPASSWORD: they go with the settings."""

Load = Callable[[Settings], Detector]


@dataclass(frozen=True)
class Share:
    """The resources of each of several replicas."""

    replicas: int
    cpus: int
    gpu: bool

    def __str__(self) -> str:
        each = "a GPU" if self.gpu else "a core" if self.cpus == 1 else f"{self.cpus} cores"
        return f"{self.replicas} replicas, {each} each" if self.replicas > 1 else f"one replica, {each}"


def share_of(machines: Sequence[Mapping[str, float]], replicas: int, device: str | None) -> Share:
    """Return the share of each replica in the machines' resources: a GPU where there are enough, else the
    most cores that all can have. Raises `InputError` where there are too few."""
    gpus = sum(int(machine.get("GPU", 0)) for machine in machines)
    if device is None:
        device = "cuda" if gpus >= replicas else "cpu"
    if device.startswith("cuda"):
        if gpus < replicas:
            raise InputError(f"a replica takes a GPU, and the cluster has {gpus}", field="--replicas")
        return Share(replicas, 1, gpu=True)
    cores = [int(machine.get("CPU", 0)) for machine in machines]
    for each in range(max(cores, default=0), 0, -1):
        if sum(count // each for count in cores) >= replicas:
            return Share(replicas, each, gpu=False)
    raise InputError(
        f"{replicas} replicas need {replicas} cores, and the cluster has {sum(cores)}", field="--replicas"
    )


class Replica:
    """The application of `lrp4rag serve` with a reader of its own, asked by calls in place of a socket."""

    async def __init__(  # type: ignore[misc]  # Ray awaits it
        self, settings: Settings, load: Load, threads: int | None, environment: Mapping[str, str]
    ) -> None:
        os.environ.update(environment)
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        self._app = create_app(settings, await run_in_threadpool(load, settings))
        # Never closed: a replica ends with its process, and every decision is on disk by then.
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self._app.router.lifespan_context(self._app))

    async def answer(self, scope: Scope, body: bytes) -> AsyncGenerator[Message | None]:
        """Yield None once the request is accepted, then the messages of the reply as they are sent."""
        yield None
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        request = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if request:
                return request.pop()
            await asyncio.Event().wait()  # until it is cancelled
            raise AssertionError

        async def run() -> None:
            try:
                await self._app(scope, receive, messages.put)
            finally:
                messages.put_nowait(None)

        work = asyncio.ensure_future(run())
        try:
            while (message := await messages.get()) is not None:
                yield message
        finally:  # also where the client has gone: the reader is free again
            work.cancel()
            await asyncio.wait({work})

    async def metrics(self) -> tuple[str, list[Metric]]:
        """Return this replica's name and its metrics."""
        from ray import serve

        return serve.get_replica_context().replica_id.unique_id, await self._app.state.server.metrics()


@contextmanager
def serving(
    settings: Settings, *, replicas: int, address: str | None = None, load: Load = load_detector
) -> Iterator[tuple[FastAPI, Share]]:
    """Start the replicas, yield the application before them and the share of each, and end them.

    Raises `InputError` where the cluster or the audit log does not suit, and `LRP4RAGError` where the
    replicas do not start.
    """
    try:
        import_ray()
        serve: Any = import_module("ray.serve")
    except (ImportError, InputError) as error:
        raise InputError(MISSING) from error
    with joined(address):
        import ray

        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        share = share_of(machines, replicas, settings.device)
        resources = log_resources(settings, machines)
        with _deployed(serve, replica_settings(settings, share), share, load, resources) as handle:
            yield create_gateway(settings, *_calls(handle)), share
        AuditLog.open(settings.audit, key=settings.audit_key).close()  # signs the last entry


def log_resources(settings: Settings, machines: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return resources that keep replicas on the machine of an SQLite log, also when another joins the
    cluster: Ray has a resource named after each machine. Raises `InputError` for such a log on a cluster of
    several machines."""
    if make_url(settings.audit).get_backend_name() != "sqlite":
        return {}
    if len(machines) > 1:
        raise InputError(
            f"an SQLite log is on one machine, and this cluster has {len(machines)}: give "
            "postgresql+psycopg://USER@HOST/DATABASE, which all of them reach",
            field="audit",
        )
    return {name: 0.001 for name in machines[0] if name.startswith("node:") and "__" not in name}


def replica_settings(settings: Settings, share: Share) -> Settings:
    """Return the settings with absolute paths, since replicas run in other folders, and with the one GPU that
    each sees."""
    url = make_url(settings.audit)
    if url.get_backend_name() == "sqlite" and url.database:
        url = url.set(database=str(Path(url.database).absolute()))
    return settings.model_copy(
        update={
            "audit": url.render_as_string(hide_password=False),
            "audit_key": settings.audit_key and settings.audit_key.absolute(),
            "comparer": settings.comparer and settings.comparer.absolute(),
            "device": "cuda" if share.gpu else settings.device or "cpu",
            "detector": absolute_name(settings.detector),
            "reader": settings.reader and absolute_name(settings.reader),
        }
    )


@contextmanager
def _deployed(
    serve: Any, settings: Settings, share: Share, load: Load, resources: dict[str, float]
) -> Iterator[Any]:
    """Yield a handle of the replicas. Those of an earlier server on this machine and port are replaced."""
    from ray.serve.config import ProxyLocation
    from ray.serve.schema import LoggingConfig

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet = LoggingConfig(log_level="ERROR", enable_access_log=False)
    serve.start(proxy_location=ProxyLocation.Disabled, logging_config=quiet)
    deployment = serve.deployment(
        Replica,
        name="replica",
        num_replicas=share.replicas,
        ray_actor_options={"num_cpus": share.cpus, "num_gpus": int(share.gpu), "resources": resources},
        max_constructor_retry_count=1,
        max_ongoing_requests=MOST_ONGOING,
        max_queued_requests=-1,
        health_check_period_s=HEALTH_CHECK_SECONDS,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=max(1.0, settings.seconds),
        logging_config=quiet,
    )
    environment = {name: value for name, value in os.environ.items() if name.startswith(LIBPQ)}
    bound = deployment.bind(settings, load, None if share.gpu else share.cpus, environment)
    name = f"lrp4rag-{platform.node()}-{settings.port or os.getpid()}"
    try:
        try:
            handle = serve.run(bound, name=name, route_prefix=None)
        except RuntimeError as error:
            causes = [line.strip() for line in str(error).splitlines() if "Error: " in line]
            why = causes[-1] if causes else first_line(error)
            raise LRP4RAGError(f"the replicas did not start: {why}") from error
        yield handle
    finally:
        with suppress(Exception):  # a cluster that has gone has no replicas either
            serve.delete(name)


def _calls(handle: Any) -> tuple[Any, Any]:
    """Return the gateway's `Ask` and `Collect`, which call the replicas by their handle."""
    streaming = handle.options(stream=True)

    async def ask(scope: Scope, body: bytes) -> AsyncGenerator[Message | None]:
        reply = streaming.answer.remote(scope, body)
        try:
            async for message in reply:
                yield message
        finally:  # where its client has gone, the replica is told
            reply.cancel()

    async def collect() -> Mapping[str, list[Metric]]:
        try:
            results = await handle.broadcast("metrics").results_async(
                timeout_s=METRICS_SECONDS, return_exceptions=True
            )
        except TimeoutError:
            results = []
        return dict(result for result in results if not isinstance(result, BaseException))

    return ask, collect
