"""Replicas that share one audit log in PostgreSQL, while one is killed again and again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psutil

from benchmarks.command import Result, benchmark, count
from benchmarks.service.client import Seen, ask, examples, judge_body, quantiles, responses, with_client
from benchmarks.service.server import address_in, gauge, quick, write_settings
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.example import Example
from lrp4rag.guard.audit import AuditLog
from lrp4rag.util.errors import InputError, LRP4RAGError

STARTS_IN, ENDS_IN = 300, 120
"""Seconds."""
JUDGED_IN = 120
"""Seconds: what a busy machine takes too long for is not what is looked at here."""
MOST_PAUSE = 5
"""Seconds that a client waits before it asks again, where it is told to wait."""
FOLDERS = (*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, os.get_exec_path()))


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty PostgreSQL database, which writes to disk as it does by default. Raises
    `InputError` where there is no PostgreSQL."""
    binaries = next((one for one in FOLDERS if (one / "initdb").exists()), None)
    if binaries is None:
        raise InputError("there is no PostgreSQL here: install Debian's package postgresql")
    folder = Path(tempfile.mkdtemp(prefix="lrp4rag-pg-"))  # a socket's path is short
    user, group = ("nobody", "nogroup") if os.geteuid() == 0 else (None, None)  # it refuses to run as root
    if user is not None:
        shutil.chown(folder, user, group)

    def run(name: str, *arguments: str) -> None:
        command: Sequence[str] = [str(binaries / name), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, user=user, group=group)

    try:
        run("initdb", "-U", "lrp4rag", "-A", "trust", "-E", "UTF8")
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -c listen_addresses=''", "start")
        try:
            yield f"postgresql+psycopg://lrp4rag@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@dataclass
class Got:
    """What clients got."""

    statuses: Counter[int] = field(default_factory=Counter)
    decisions: set[str] = field(default_factory=set)
    whole = ended_by_error = cut = unjudged = 0
    left: list[float] = field(default_factory=list)
    """Seconds until a client was told that its replica had gone, before anything of an answer."""
    without_retry = 0
    """Of these, how many did not say when to ask again."""


@dataclass(frozen=True)
class Server:
    url: str
    process: psutil.Process

    def replicas(self) -> list[psutil.Process]:
        """Their processes, by the names that Ray gives them."""
        return [one for one in self.process.children(recursive=True) if "servereplica" in _name(one)]

    def there(self) -> int:
        """Replicas that tell their metrics."""
        return int(gauge(r"lrp4rag_replicas\S*", httpx.get(f"{self.url}/metrics", timeout=60).text))


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return "".join(process.cmdline()).lower().replace("_", "")
    return ""


@contextmanager
def started(folder: Path, replicas: int, **settings: Any) -> Iterator[Server]:
    """`lrp4rag serve --ray` in a process of its own, which ends as by SIGTERM."""
    write_settings(folder, settings | {"replicas": replicas})
    command = [sys.executable, "-m", "lrp4rag", "serve", "--config", str(folder / "settings.yaml"), "--ray"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    environment.pop("RAY_ADDRESS", None)
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        url = address_in(folder / "log", lambda: running.poll() is None, STARTS_IN)
        yield Server(url, psutil.Process(running.pid))
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(ENDS_IN)
        finally:
            running.kill()


async def stream(client: httpx.AsyncClient, number: int, example: Example, got: Got) -> None:
    seen = Seen(number)
    try:
        await ask(client, number, example, seen)
        got.whole += seen.status == 200 and seen.failed is None
        got.ended_by_error += seen.status == 200 and seen.failed is not None
        got.statuses[seen.status] += 1
    except httpx.HTTPError:
        got.cut += 1
    got.decisions |= set(seen.ids)
    got.unjudged += sum(bool(text.strip()) and not decision for text, _, decision in seen.chunks)
    await asyncio.sleep(MOST_PAUSE if seen.status >= 400 else 0)


async def judge(client: httpx.AsyncClient, number: int, example: Example, got: Got) -> None:
    began = time.monotonic()
    try:
        reply = await client.post("/v1/judge", json=judge_body(example))
    except httpx.HTTPError:
        got.cut += 1
        return
    got.statuses[reply.status_code] += 1
    if reply.status_code == 200:
        got.decisions.add(reply.json()["decision"]["id"])
    elif reply.status_code == 503 and "replica" in reply.text:
        got.left.append(time.monotonic() - began)
        got.without_retry += "retry-after" not in reply.headers
    await asyncio.sleep(min(float(reply.headers.get("retry-after", 0)), MOST_PAUSE))


def under_load(server: Server, some: list[Example], clients: int, kills: int) -> tuple[Got, list[float]]:
    """What clients got while replicas were killed one by one, and the seconds until each was replaced."""
    got, back, random = Got(), list[float](), Random(0)
    wanted = server.there()

    async def go_on(client: httpx.AsyncClient, own: Random, ended: asyncio.Event) -> None:
        while not ended.is_set():
            number = own.randrange(len(some))
            await own.choice([stream, judge])(client, number, some[number], got)

    async def replaced() -> float:
        began = time.monotonic()
        while await asyncio.to_thread(server.there) >= wanted:  # Serve has not seen it yet
            await asyncio.sleep(0.1)
        while await asyncio.to_thread(server.there) < wanted:
            if time.monotonic() - began > STARTS_IN:
                raise LRP4RAGError("a replica did not come back")
            await asyncio.sleep(0.2)
        return time.monotonic() - began

    async def work(client: httpx.AsyncClient) -> None:
        ended = asyncio.Event()
        tasks = [asyncio.create_task(go_on(client, Random(k), ended)) for k in range(clients)]
        for _ in range(kills):
            await asyncio.sleep(random.uniform(5, 15))
            random.choice(server.replicas()).kill()
            back.append(await replaced())
        await asyncio.sleep(5)
        ended.set()
        await asyncio.gather(*tasks)

    with_client(server.url, work)
    return got, back


@benchmark
@count("--kills", 6, "Of a replica, each at a random moment; the next one when it is replaced.")
@count("--clients", 4, "That stream and judge meanwhile.")
@count("--replicas", 2, "That answer.", least=2)
@quick(kills=1, clients=4)
def replicas(kills: int, clients: int, replicas: int, quick: bool) -> Result:
    """Kill replicas of `lrp4rag serve --ray` again and again while clients use it, with one audit log in
    PostgreSQL: what do clients get, is every decision that they were told in the chain, is the chain whole?

    \b
    Examples:
      python -m benchmarks.service replicas --quick
      python -m benchmarks.service replicas --kills 6
    """
    some = examples(40)
    with (
        tempfile.TemporaryDirectory() as name,
        database() as url,
        Upstream(Writer(responses(some), 0.02)) as upstream,
    ):
        folder = Path(name)
        log = {"audit": url, "audit_key": str(folder / "key")}
        with started(folder, replicas, **log, upstream=upstream.url, seconds=JUDGED_IN) as server:
            began = time.monotonic()
            got, back = under_load(server, some, clients, kills)
            taken = time.monotonic() - began
        with AuditLog.open(url, key=folder / "key", create=False) as audit:
            verified = audit.verify()
            recorded = {entry.id for entry in audit.entries()}
    return {
        "reader": "default",
        "seconds_of_load": taken,
        "by_status": dict(sorted(got.statuses.items())),
        "streams_whole": got.whole,
        "streams_ended_by_an_error": got.ended_by_error,
        "connections_cut": got.cut,
        "unjudged_pieces": got.unjudged,
        "left_without_retry_after": got.without_retry,
        **quantiles("left_in", got.left),
        "decisions_told": len(got.decisions),
        "decisions_recorded": len(recorded),
        "decisions_missing": len(got.decisions - recorded),
        "audit_problems": len(verified.problems),
        "checkpoints": verified.checkpoints,
        "unsigned": verified.unsigned,
        **quantiles("replaced_in", back),
    }
