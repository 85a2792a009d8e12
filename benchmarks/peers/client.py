"""The benchmark's side of a worker: start it, ask it, and say why it cannot answer."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.peers.environments import PEERS, UnavailableError, python_of, surroundings

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
        kept = ids[:prompt], ids[prompt : prompt + response]
        return Job(self.model, *kept, self.environments, self.limit)


@dataclass(frozen=True)
class Answer:
    """Seconds of one request, peak resident bytes since the last `forget`, and values as nested lists."""

    seconds: float
    peak_bytes: int
    values: Any


class Worker:
    """A peer's process. Raises `UnavailableError` where it cannot start at all."""

    def __init__(self, peer: str, job: Job, composite: str = "attnlrp") -> None:
        process = PEERS[peer]
        python = python_of(process.environment, job.environments)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [str(python), "-m", f"benchmarks.peers.{process.module}", *process.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=surroundings(process.environment),
        )
        task = {
            "model": job.model,
            "prompt_ids": job.prompt_ids,
            "response_ids": job.response_ids,
            "composite": composite,
            "memory_limit": available_bytes(),
        }
        self._limit = job.limit
        try:
            self.about = self._exchange(task, STARTUP_SECONDS)
        except PeerError as error:
            self.close()
            raise UnavailableError(str(error)) from error

    def ask(self, do: str, **request: Any) -> Answer:
        answer = self._exchange({"do": do, **request}, self._limit)
        return Answer(answer.get("seconds", 0.0), answer["peak_bytes"], answer.get("values"))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(self._why_dead()) from None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self._process.kill()  # it cannot be asked anything else before it is done
            raise PeerError(f"took more than {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(self._why_dead())
        answer: dict[str, Any] = json.loads(line)
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


def available_bytes() -> int | None:
    """Nine tenths of what the machine could give a process now (Linux only)."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    return int(meminfo.read_text().partition("MemAvailable:")[2].split()[0]) * 1024 * 9 // 10
