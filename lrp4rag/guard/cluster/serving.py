"""`lrp4rag serve --ray`: the same server with several readers, each in a replica of Ray Serve.

The door is in this process, and Serve's own HTTP proxy is not used: where a replica dies, that sends status
500, and limits behind it would hold for each replica alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import Metric
from sqlalchemy.engine import make_url
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Scope

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.cluster.door import Ask, Told, create_door
from lrp4rag.guard.cluster.replica import Load, Replica
from lrp4rag.guard.cluster.session import joined, quiet_ray
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.state import load_detector
from lrp4rag.util.errors import InputError, LRP4RAGError, first_line
from lrp4rag.util.files import absolute_name

LOG = logging.getLogger("lrp4rag.service")
MISSING = "replicas need Ray Serve: pip install 'lrp4rag[ray,serve]'"
SIGNS_EVERY = 10.0
"""Seconds between checkpoints, where there is a key: it is on the door's machine alone."""
METRICS_IN = 5.0
"""Seconds in which replicas say what they counted."""
LOOKS_EVERY = 2.0
"""Seconds between Serve's looks at whether a replica is alive."""
MOST_ONGOING = 10_000
"""Requests that Serve hands to one replica: how many it takes is the replica's own decision (429)."""
_LIBPQ = "PG"
"""What begins the names of PostgreSQL's variables, such as PGPASSWORD: they go with the settings."""


@dataclass(frozen=True)
class Share:
    """What each replica has of the cluster."""

    replicas: int
    cpus: int
    gpu: bool

    def __str__(self) -> str:
        each = "a GPU" if self.gpu else "a core" if self.cpus == 1 else f"{self.cpus} cores"
        return f"{self.replicas} replicas, {each} each" if self.replicas > 1 else f"one replica, {each}"


def share_of(nodes: Sequence[Mapping[str, float]], replicas: int, device: str | None) -> Share:
    """The share of each replica, by what nodes have. Raises `InputError` where that is too little."""
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if device is None:
        device = "cuda" if gpus >= replicas else "cpu"
    if device.startswith("cuda"):
        if gpus < replicas:
            raise InputError(f"a replica takes a GPU, and the cluster has {gpus}", field="--replicas")
        return Share(replicas, 1, gpu=True)
    cores = [int(node.get("CPU", 0)) for node in nodes]
    for each in range(max(cores, default=0), 0, -1):
        if sum(has // each for has in cores) >= replicas:
            return Share(replicas, each, gpu=False)
    raise InputError(
        f"{replicas} replicas need {replicas} cores, and the cluster has {sum(cores)}", field="--replicas"
    )


@contextmanager
def serving(
    settings: Settings, *, replicas: int, address: str | None = None, load: Load = load_detector
) -> Iterator[tuple[FastAPI, Share]]:
    """The application that clients reach, before so many replicas, which are there when this begins and are
    taken away when it ends; and what each has of the cluster.

    Raises `InputError` where the cluster, or the audit log for it, does not do, and `LRP4RAGError` where the
    replicas do not start.
    """
    _require_serve()
    with joined(address):
        nodes = [node for node in _nodes() if node["Alive"]]
        require_one_log(settings, len(nodes))
        share = share_of([node["Resources"] for node in nodes], replicas, settings.device)
        with _deployed(of_replicas(settings, share), share, load, pinned(settings, nodes)) as handle:
            app = create_door(settings, _asking(handle), _telling(handle), _signing(settings))
            yield app, share


def _require_serve() -> None:
    if find_spec("ray") is None:
        raise InputError(MISSING)
    try:
        quiet_ray()
        import_module("ray.serve")
    except ImportError as error:
        raise InputError(f"{MISSING} ({error.name} is missing)") from None


def _nodes() -> list[dict[str, Any]]:
    import ray

    found: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return found


def require_one_log(settings: Settings, machines: int) -> None:
    """Raises `InputError` for an audit log that not all machines can write."""
    if machines > 1 and make_url(settings.audit).get_backend_name() == "sqlite":
        raise InputError(
            f"an SQLite log is on one machine, and this cluster has {machines}: give "
            "postgresql+psycopg://USER@HOST/DATABASE, which all of them reach",
            field="audit",
        )


def pinned(settings: Settings, nodes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What keeps replicas with an SQLite log on its machine, also when another joins the cluster later: Ray
    has a resource of each machine's name."""
    if make_url(settings.audit).get_backend_name() != "sqlite":
        return {}
    names = [name for name in nodes[0]["Resources"] if name.startswith("node:") and "__" not in name]
    return dict.fromkeys(names, 0.001)


def of_replicas(settings: Settings, share: Share) -> Settings:
    """The settings as replicas have them: paths do not depend on where a process runs, the key stays here,
    and a replica with a GPU sees no other."""
    url = make_url(settings.audit)
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith("file:"):
        url = url.set(database=str(Path(url.database).absolute()))
    return settings.model_copy(
        update={
            "audit": url.render_as_string(hide_password=False),
            "audit_key": None,
            "device": "cuda" if share.gpu else settings.device or "cpu",
            "detector": absolute_name(settings.detector),
            "reader": settings.reader and absolute_name(settings.reader),
        }
    )


@contextmanager
def _deployed(settings: Settings, share: Share, load: Load, resources: Mapping[str, float]) -> Iterator[Any]:
    """A handle of the replicas. Those that a door of this name left behind are replaced."""
    from ray import serve
    from ray.serve.config import ProxyLocation
    from ray.serve.schema import LoggingConfig

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet = LoggingConfig(log_level="ERROR", enable_access_log=False)
    serve.start(proxy_location=ProxyLocation.Disabled, logging_config=quiet)
    made: Any = serve.deployment(
        Replica,
        name="replica",
        num_replicas=share.replicas,
        ray_actor_options={
            "num_cpus": share.cpus,
            "num_gpus": int(share.gpu),
            "resources": dict(resources),
        },
        max_constructor_retry_count=1,
        max_ongoing_requests=MOST_ONGOING,
        max_queued_requests=-1,
        health_check_period_s=LOOKS_EVERY,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=max(1.0, settings.seconds),
        logging_config=quiet,
    )
    environment = {name: value for name, value in os.environ.items() if name.startswith(_LIBPQ)}
    threads = None if share.gpu else share.cpus
    name = f"lrp4rag-{platform.node()}-{settings.port or os.getpid()}"
    bound = made.bind(settings, load, threads=threads, environment=environment)
    try:
        yield _run(serve, bound, name)
    finally:
        with suppress(Exception):  # a cluster that has gone has no replicas either
            serve.delete(name)


def _run(serve: Any, bound: Any, name: str) -> Any:
    try:
        return serve.run(bound, name=name, route_prefix=None)
    except RuntimeError as error:
        raise LRP4RAGError(f"the replicas did not start: {_why(str(error)) or first_line(error)}") from error


def _why(said: str) -> str:
    """The last line of a replica's traceback, in what Serve says."""
    lines = [line.strip() for line in said.splitlines() if "Error: " in line]
    return lines[-1] if lines else ""


def _asking(handle: Any) -> Ask:
    streaming = handle.options(stream=True)

    async def ask(scope: Scope, body: bytes) -> AsyncGenerator[Message | None]:
        reply = streaming.answer.remote(scope, body)
        try:
            async for message in reply:
                yield message
        finally:  # where its client has gone, the replica is told
            reply.cancel()

    return ask


def _telling(handle: Any) -> Told:
    async def told() -> Mapping[str, list[Metric]]:
        try:
            found = await handle.broadcast("metrics").results_async(
                timeout_s=METRICS_IN, return_exceptions=True
            )
        except TimeoutError:
            found = []
        return dict(one for one in found if not isinstance(one, BaseException))

    return told


def _signing(settings: Settings) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Signs the head of the chain now and then, and at the end, where there is a key."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if settings.audit_key is None:
            yield
            return
        log = await run_in_threadpool(AuditLog.open, settings.audit, key=settings.audit_key)
        work = asyncio.ensure_future(_sign(log))
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait({work})
            await run_in_threadpool(log.close)

    return lifespan


async def _sign(log: AuditLog) -> None:
    while True:
        await asyncio.sleep(SIGNS_EVERY)
        try:
            await run_in_threadpool(log.sign)
        except LRP4RAGError as error:
            LOG.error("the audit log could not be signed: %s", type(error).__name__)
