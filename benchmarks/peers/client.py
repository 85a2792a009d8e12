"""The benchmark's side of a worker: start it, ask it, and say why it cannot answer."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import UnavailableError, python_of, surroundings

STARTUP_SECONDS = 180.0


class PeerError(Exception):
    """A peer could not do what it was asked; the message says why."""


@dataclass(frozen=True)
class Job:
    """What all peers are given: a model folder and an example, within limits."""

    model: str
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    environments: Path
    limit: float
    """Seconds that one cell may take."""

    def cut(self, prompt: int, response: int) -> Job:
        """The same with the first `prompt` and `response` tokens."""
        ids = (*self.prompt_ids, *self.response_ids)
        return replace(self, prompt_ids=ids[:prompt], response_ids=ids[prompt : prompt + response])


@dataclass(frozen=True)
class Answer:
    """Seconds of one request, peak resident bytes since the last `forget`, and values as nested lists."""

    seconds: float
    peak_bytes: int
    values: Any


class Worker:
    """A peer's process. Raises `UnavailableError` where it cannot start at all."""

    def __init__(self, peer: str, job: Job, composite: str = "attnlrp") -> None:
        python = python_of(peer, job.environments)
        self._limit = job.limit
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._requests, end = Pipe()
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.peers.worker", peer, str(end.fileno())],
            pass_fds=[end.fileno()],
            stdout=self._log,
            stderr=self._log,
            env=surroundings(peer),
        )
        end.close()
        task = {"model": job.model, "prompt_ids": job.prompt_ids, "response_ids": job.response_ids}
        try:
            self.about = self._exchange({**task, "composite": composite}, STARTUP_SECONDS)
        except PeerError as error:
            self.close()
            raise UnavailableError(str(error)) from error

    def ask(self, do: str, **request: int) -> Answer:
        return Answer(**self._exchange({"do": do, **request}, self._limit))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._requests.close()
        self._log.close()

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            self._requests.send(request)
            if not self._requests.poll(seconds):
                self._process.kill()  # it cannot be asked anything else before it is done
                raise PeerError(f"took more than {seconds:.0f} s")
            answer: dict[str, Any] = self._requests.recv()
        except (EOFError, OSError):
            raise PeerError(self._why_dead()) from None
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def _why_dead(self) -> str:
        code = self._process.wait()
        if code < 0:
            return f"ended by signal {-code}" + (" (out of memory, probably)" if code == -9 else "")
        self._log.seek(0)
        lines = [line.strip() for line in self._log if line.strip()] or ["no message"]
        return f"ended with code {code}: {lines[-1][:300]}"
