"""A server that is told to end lets the answers end that have begun."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from lrp4rag.guard.service.server import bind, listen
from lrp4rag.guard.service.settings import Settings
from tests.guard.service.conftest import asked, recorded
from tests.guard.service.scripted_upstream import Script, events, serving


@pytest.mark.usefixtures("default_reader")
def test_sigterm_drains(tmp_path: Path, monkeypatch) -> None:
    """With the real reader, in a process of its own."""
    script = Script(events("It is 31 metres tall. ", "Fish is sold nearby."), longest=400)
    more, pieces = threading.Event(), Script.pieces
    monkeypatch.setattr(Script, "pieces", lambda self: (one for one in pieces(self) if more.wait(60) or True))
    with serving(script) as upstream:
        command = [sys.executable, "-m", "lrp4rag", "serve", "--upstream", upstream, "--port", "0"]
        environment = {**os.environ, "LRP4RAG_OPEN": "true", "LRP4RAG_POLICY__ABSTAINED": "mark"}
        with (tmp_path / "log").open("w+") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, env=environment)
            try:
                url = _address(process, tmp_path / "log")
                found: list[httpx.Response] = []
                ask = threading.Thread(target=lambda: found.append(_ask(url)))
                ask.start()
                while not script.asked:
                    time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                time.sleep(0.5)
                assert process.poll() is None, "an answer is under way"
                more.set()
                ask.join(60)
                # Uvicorn raises the signal again once all is closed.
                assert process.wait(30) in (0, -signal.SIGTERM)
            finally:
                process.kill()
    (reply,) = found
    assert reply.status_code == 200
    assert reply.text.endswith("data: [DONE]\n\n")
    assert "metres" in reply.text or "withheld" in reply.text
    kinds = [one["kind"] for one in recorded(tmp_path / "lrp4rag-audit.db")]
    assert kinds == ["sentence", "sentence", "answer"]


async def words() -> AsyncIterator[str]:
    while True:
        yield "word "
        await asyncio.sleep(0.01)


def listen_twice(told: Connection, log: Path, limits: list[float]) -> None:
    """One server after the other; where each listens, and that it ended, is told."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    for seconds in limits:
        app, settings = FastAPI(), Settings(open=True, port=0, seconds=seconds)
        app.get("/")(lambda: StreamingResponse(words()))
        with suppress(KeyboardInterrupt):  # as the command line does
            listen(app, settings, bind(settings), told.send)
        told.send("ended")


def test_a_stream_that_is_cut_off_prints_no_traceback(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """By a second interrupt, or since it takes too long."""
    cases = {60.0: 2, 1.0: 1}
    """How often a server with so many seconds for an answer is interrupted."""
    (told, telling), log, read = processes.Pipe(), tmp_path / "log", 0
    process = processes.Process(target=listen_twice, args=(telling, log, [*cases]))
    process.start()
    try:
        for interrupts in cases.values():
            with httpx.stream("GET", f"http://127.0.0.1:{told.recv()}/") as reply:
                pieces = reply.iter_bytes()  # dropping it would end the stream
                assert next(pieces)
                for _ in range(interrupts):
                    os.kill(process.pid, signal.SIGINT)
                    time.sleep(0.5)
                assert told.recv() == "ended"
            printed = log.read_text()[read:]
            read += len(printed)
            assert "Traceback" not in printed
            errors = [line for line in printed.splitlines() if line.startswith("ERROR")]
            assert len(errors) == (interrupts == 1), "only the time limit is worth a line"
        process.join(30)
        assert process.exitcode == 0
    finally:
        process.kill()


def _ask(url: str) -> httpx.Response:
    return httpx.post(f"{url}/v1/chat/completions", json=asked(stream=True), timeout=90)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        if (found := re.search(r"^(http://\S+?)  ", log.read_text(), re.MULTILINE)) is not None:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
