"""A server that is told to end lets the answers end that have begun."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from lrp4rag.cli import main
from lrp4rag.guard.service.server import bind, listen
from lrp4rag.guard.service.settings import Settings
from tests.guard.service.conftest import asked, recorded
from tests.guard.service.scripted_upstream import Script, events, serving


def serve(log: Path, reader: Path, upstream: str) -> None:
    """`lrp4rag serve`, which prints to a file in the folder that it runs in."""
    os.chdir(log.parent)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    os.environ |= {"LRP4RAG_OPEN": "true", "LRP4RAG_POLICY__ABSTAINED": "mark", "LRP4RAG_READER": str(reader)}
    main(["serve", "--upstream", upstream, "--port", "0"], standalone_mode=False)


def test_sigterm_drains(
    processes: multiprocessing.context.ForkServerContext, reader_folder: Path, tmp_path: Path, monkeypatch
) -> None:
    log, script = (
        tmp_path / "log",
        Script(events("It is 31 metres tall. ", "Fish is sold nearby."), longest=400),
    )
    more, pieces = threading.Event(), Script.pieces
    monkeypatch.setattr(Script, "pieces", lambda self: (one for one in pieces(self) if more.wait(60) or True))
    with serving(script) as upstream:
        process = processes.Process(target=serve, args=(log, reader_folder, upstream))
        process.start()
        try:
            url = _address(process, log)
            found: list[httpx.Response] = []
            ask = threading.Thread(target=lambda: found.append(_ask(url)))
            ask.start()
            while not script.asked:
                time.sleep(0.05)
            process.terminate()
            time.sleep(0.5)
            assert process.is_alive(), "an answer is under way"
            more.set()
            ask.join(60)
            process.join(30)
            assert process.exitcode in (0, -signal.SIGTERM), "uvicorn raises the signal again"
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


def _address(process: Any, log: Path) -> str:
    until = time.monotonic() + 240
    while time.monotonic() < until and process.is_alive():
        printed = log.read_text() if log.exists() else ""
        if (found := re.search(r"^(http://\S+?)  ", printed, re.MULTILINE)) is not None:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
