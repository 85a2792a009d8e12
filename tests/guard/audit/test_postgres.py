"""The same log in PostgreSQL, on a server of the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lrp4rag.guard.audit import AuditLog
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.guard.audit.conftest import TEXTS, decision
from tests.guard.audit.test_concurrency import append_together

BINARIES = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, os.get_exec_path())]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an empty server, up to the database's name."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    binaries = next(
        (one for one in BINARIES if (one / "initdb").exists() and (one / "postgres").exists()), None
    )
    if binaries is None:
        pytest.skip("no initdb and postgres on this machine")
    # It refuses to run as root.
    user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="lrp4rag-pg-"))  # a socket's path is short
    if user:
        shutil.chown(folder, **user)
    run = partial(subprocess.run, check=True, capture_output=True, cwd=folder, **user)
    try:
        run([binaries / "initdb", *f"-D {folder}/data -U lrp4rag -A trust -N -E UTF8".split()])
        options = f"-k {folder} -c listen_addresses='' -c synchronous_commit=off"
        control = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log"]
        run([*control, "-o", options, "start"])
        try:
            yield f"postgresql+psycopg://lrp4rag@/NAME?host={folder}"
        finally:
            run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """A new database."""
    from sqlalchemy import create_engine

    name = f"log{abs(hash(request.node.name))}"
    engine = create_engine(server.replace("NAME", "postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return server.replace("NAME", name)


def test_threads_and_processes_append_to_one_chain(url, tmp_path):
    append_together(url, tmp_path / "key")


def test_a_log_in_postgres(url, tmp_path):
    with AuditLog.open(url, key=tmp_path / "key", texts=True) as log:
        for number in range(101):
            log.append(decision(number), TEXTS)
        assert log.texts("d3") == TEXTS
        assert log.erase("d3") == 2
        with pytest.raises(InputError, match="this id already"):
            log.append(decision(5))
        assert log.export(tmp_path / "log.jsonl") == 102
        found = log.verify()
        assert (found.problems, found.entries, found.checkpoints) == ([], 102, 1)
    with AuditLog.open(url, read_only=True) as log:
        assert log.verify().unsigned == 0
        with pytest.raises(InputError, match="read only"):
            log.append(decision(1000))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET record = replace(record, 'pass', 'fail') WHERE sequence = 2",
        "UPDATE audit_entries SET time = replace(time, '2', '3') WHERE sequence = 2",
        "DELETE FROM audit_texts WHERE id = 'd2'",
        "UPDATE audit_checkpoints SET checkpoint = checkpoint || ' '",
        "UPDATE audit_head SET entries = 2",
    ],
)
def test_tampering_is_found(url, tmp_path, statement):
    with AuditLog.open(url, key=tmp_path / "key", texts=True) as log:
        for number in range(3):
            log.append(decision(number), TEXTS)
        log.checkpoint()
        with log._database.writing() as connection:
            assert connection.exec_driver_sql(statement).rowcount > 0
        assert log.verify().problems


def test_a_server_that_is_not_there_is_told(tmp_path):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(LRP4RAGError) as caught:
        AuditLog.open(f"postgresql+psycopg://lrp4rag:secret@/none?host={tmp_path}")
    assert "secret" not in str(caught.value)
