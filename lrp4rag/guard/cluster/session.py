"""A Ray cluster to work on: one that runs already, or one of this machine for the length of a run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
