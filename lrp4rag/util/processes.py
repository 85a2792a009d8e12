"""Tasks shared by processes of this machine, each of which loads once what the work needs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeVar

from lrp4rag.util.errors import LRP4RAGError

START = "spawn"
"""How processes are started: CUDA cannot be used in forked ones."""

T = TypeVar("T")
R = TypeVar("R")
Task_contra = TypeVar("Task_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Worker(Protocol[Task_contra, Result_co]):
    """Does one task after the other. `close` gives back what it holds."""

    def run(self, task: Task_contra) -> Result_co: ...

    def close(self) -> None: ...


class Create(Protocol[Task_contra, Result_co]):
    """Makes a worker in its process, by its number."""

    def __call__(self, *, worker: int = 0) -> Worker[Task_contra, Result_co]: ...


_worker: Worker[Any, Any] | None = None
_failure: Exception | None = None
"""Why this process has no worker."""


def map_tasks(tasks: Sequence[T], create: Create[T, R], workers: int) -> Generator[tuple[int, R]]:
    """Yield the number of each task with its result, as tasks are done; a single worker works in this
    process, in the order of the tasks.

    Further processes end at once when this ends early, also when it is killed. Raises what a worker raises,
    and `LRP4RAGError` where a worker dies.
    """
    workers = min(workers, len(tasks))
    return _in_this_process(tasks, create()) if workers < 2 else _in_processes(tasks, create, workers)


def _in_this_process(tasks: Sequence[T], worker: Worker[T, R]) -> Generator[tuple[int, R]]:
    try:
        for number, task in enumerate(tasks):
            yield number, worker.run(task)
    finally:
        worker.close()


def _in_processes(tasks: Sequence[T], create: Create[T, R], workers: int) -> Generator[tuple[int, R]]:
    context = multiprocessing.get_context(START)
    numbers = context.Queue()
    for k in range(workers):
        numbers.put(k)
    receiver, sender = context.Pipe(duplex=False)
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(numbers, receiver, create, threads)
    )
    try:
        futures = {pool.submit(_run, task): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise LRP4RAGError(
            "a worker process died (did memory run out?); run it again, perhaps with fewer workers"
        ) from error
    except BaseException:  # an interrupt too must not wait for what workers have begun
        sender.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        sender.close()
        receiver.close()


def _start(
    numbers: multiprocessing.Queue[int], parent: Connection, create: Callable[..., Any], threads: int
) -> None:
    import torch

    global _worker, _failure  # noqa: PLW0603 - one for each process, made once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _end_with(parent)
    torch.set_num_threads(threads)
    try:
        _worker = create(worker=numbers.get())
    except Exception as error:  # raised by a task: else the process would seem to have died
        _failure = error


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: small computations are shared better by processes than by threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _run(task: Any) -> Any:
    if _failure is not None:
        raise _failure
    assert _worker is not None
    return _worker.run(task)


def _end_with(parent: Connection) -> None:
    """End this process when its parent is killed, which closes the parent's end of the pipe."""

    def watch() -> None:
        wait([parent])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
