"""Ray clusters whose machines are processes of this one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest


@contextmanager
def cluster_of(*cpus: int) -> Iterator[Any]:
    """A cluster with a machine for each number of cores, the first of them the head."""
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # read when Ray is imported
    pytest.importorskip("ray.serve", reason="Ray is not installed: pip install 'lrp4rag[ray,serve]'")
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = begun_cluster(*cpus)
        yield found
        ray.shutdown()  # a cluster does not end while this process is joined to its head
        found.shutdown()


def begun_cluster(*cpus: int) -> Any:
    """Where the cores are busy, Ray gives a machine up whose agent starts too slowly."""
    from ray.cluster_utils import Cluster

    for last in (False, False, True):
        found = Cluster()
        try:
            for number in cpus:
                found.add_node(num_cpus=number, **machine())
        except Exception:  # it has no better
            found.shutdown()
            if last:
                raise
        else:
            return found
    raise AssertionError


def machine() -> dict[str, Any]:
    """A machine's options, with ports of its own: those that are given need not be waited for."""
    names = (
        "metrics_agent_port",
        "metrics_export_port",
        "dashboard_agent_listen_port",
        "runtime_env_agent_port",
    )
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    less = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    return {**less, **dict(zip(names, ports, strict=True)), "object_store_memory": 80 * 2**20}
