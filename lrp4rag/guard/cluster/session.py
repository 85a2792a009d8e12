"""A Ray cluster to work on: one that runs, or one of this machine for as long as it is needed."""

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
    """Joined to the cluster at an address ("auto": one on this machine), at `RAY_ADDRESS`, or else to a new
    one of this machine, which ends with this. One that this process has joined already is used, and left as
    it is.

    Raises `InputError` without Ray, and where no cluster answers.
    """
    ray = quiet_ray()
    if ray.is_initialized():
        yield
        return
    wanted = address_of(address)
    options: dict[str, Any] = {"include_dashboard": False} if wanted == "local" else {}
    for last in (False, True):
        try:
            ray.init(
                wanted, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **options
            )
            break
        except ConnectionError as error:
            message = f"no Ray cluster answers at {wanted}: {first_line(error)}"
            raise InputError(message, field="--address") from error
        except (
            Exception
        ) as error:  # bare ones, where a process of Ray's own starts too slowly on a busy machine
            ray.shutdown()
            if last:
                raise LRP4RAGError(f"Ray did not start: {first_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def address_of(given: str | None) -> str:
    """What is given, or else what the environment says; "local" is a new cluster of this machine."""
    return given or os.environ.get("RAY_ADDRESS") or "local"


def quiet_ray() -> Any:
    """Ray, which tells nobody outside of its use unless the environment says so, and prints errors only."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # A thread of Ray Data that outlives a failed run would otherwise join the cluster again, unasked.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError(MISSING) from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """What a worker raised, raised here: our own errors as they are, others in one line."""
    import ray

    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = _cause(error)
        told = of_worker(cause)
        raise told from (None if told is cause else error)
    except ray.exceptions.RayError as error:
        raise LRP4RAGError(
            f"a worker process or its machine died ({first_line(error)}); did memory run out? Run it again, "
            "perhaps with fewer workers: it resumes where it stopped"
        ) from error


def of_worker(error: BaseException) -> LRP4RAGError:
    """What a worker raised as an error of ours: our own as they are, others in one line."""
    if isinstance(error, LRP4RAGError):
        return error
    return LRP4RAGError(f"a worker failed: {type(error).__name__}: {first_line(error)}")


def _cause(error: BaseException) -> BaseException:
    """What lies under Ray's wrapping."""
    while (inner := getattr(error, "cause", None) or error.__cause__) is not None:
        error = inner
    return error
