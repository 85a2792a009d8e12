"""Several processes that fill one store, each with its reader."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait
from typing import Protocol

from lrp4rag.reader.reader import Reader
from lrp4rag.training.extractor import FILLERS, Extractor, Failures, Filler, Group
from lrp4rag.training.store import Store
from lrp4rag.util.errors import LRP4RAGError

START = "spawn"
"""How workers are started: CUDA cannot be used in forked ones."""


class Load(Protocol):
    """Loads the reader of a worker in its process."""

    def __call__(self, *, worker: int) -> Reader: ...


_extractor: Extractor | None = None


def run_in_workers(
    groups: Sequence[Group],
    parts: Sequence[str],
    store: Store,
    load: Load,
    workers: int,
    max_memory: int | None,
    fillers: Mapping[str, Filler] = FILLERS,
) -> Iterator[tuple[Group, Failures]]:
    """Yield each group as it is done, with its failures. `max_memory` is for all workers together.

    Workers end at once when this ends early, also when it is killed. Raises `LRP4RAGError` when a worker
    dies.
    """
    context = multiprocessing.get_context(START)
    numbers = context.Queue()
    for k in range(workers):
        numbers.put(k)
    theirs, ours = context.Pipe(duplex=False)
    threads = max(1, (os.cpu_count() or 1) // workers)
    share = None if max_memory is None else max_memory // workers
    start = (numbers, theirs, load, store, threads, share, dict(fillers))
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=start)
    try:
        futures = {pool.submit(_run, group, parts): group for group in groups}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise LRP4RAGError(
            "a worker process died (did memory run out?); run it again, perhaps with fewer workers: it "
            "resumes where it stopped"
        ) from error
    except BaseException:  # an interrupt too must not wait for what workers have begun
        ours.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


def _start(
    numbers: multiprocessing.Queue[int],
    parent: Connection,
    load: Load,
    store: Store,
    threads: int,
    max_memory: int | None,
    fillers: Mapping[str, Filler],
) -> None:
    import torch

    global _extractor  # noqa: PLW0603 - one for each process, made once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _end_with(parent)
    torch.set_num_threads(threads)
    _extractor = Extractor(load(worker=numbers.get()), store, max_memory=max_memory, fillers=fillers)


def _run(group: Group, parts: Sequence[str]) -> Failures:
    assert _extractor is not None
    return _extractor.run(group, parts)


def _end_with(parent: Connection) -> None:
    """End with a parent that was killed and cannot stop its workers: they watch its side of the pipe."""

    def watch() -> None:
        wait([parent])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
