"""Databases that are full, damaged, not ours or cannot be written: a message, and nothing is lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from lrp4rag.guard.audit import AuditLog
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.guard.audit.conftest import TEXTS, decision


@pytest.fixture
def path(tmp_path):
    """A log of three entries."""
    with AuditLog.open(tmp_path / "audit.db", texts=True) as log:
        for number in range(3):
            log.append(decision(number), TEXTS)
    return tmp_path / "audit.db"


def sql(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def test_a_full_disk_loses_nothing(path):
    def limit(connection, _):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + 4}")

    event.listen(Engine, "connect", limit)
    try:
        with AuditLog.open(path, texts=True) as log:
            numbers = iter(range(3, 1000))
            with pytest.raises(LRP4RAGError, match="no room is left") as caught:
                [log.append(decision(number), {"question": "x" * 500}) for number in numbers]
            assert caught.value.exit_code == 1
            written = next(numbers) - 1
            assert log.get(f"d{written}") is None
            found = log.verify()
            assert (found.problems, found.entries) == ([], written)
    finally:
        event.remove(Engine, "connect", limit)
    with AuditLog.open(path) as log:
        assert log.append(decision(written)).sequence == written + 1
        assert log.verify().whole


def test_whether_it_can_be_written_is_found_by_writing(path):
    log_ahead = path.with_name(f"{path.name}-wal")
    with AuditLog.open(path) as log:
        log.append(decision(4))
        before = log_ahead.read_bytes()
        log.require_writable()
        assert log_ahead.read_bytes() != before, "it is on disk"
        found = log.verify()
        assert (found.problems, found.entries) == ([], 4)
        sql(path, "CREATE TRIGGER full BEFORE UPDATE ON audit_head BEGIN SELECT RAISE(FAIL, 'no'); END")
        with pytest.raises(LRP4RAGError):
            log.require_writable()


def test_a_read_only_database_is_told(path):
    def forbid(connection, _):
        connection.execute("PRAGMA query_only=ON")

    event.listen(Engine, "connect", forbid)
    try:
        with pytest.raises(InputError, match="cannot be written to"):
            AuditLog.open(path)
    finally:
        event.remove(Engine, "connect", forbid)
    with AuditLog.open(path, read_only=True) as log:
        assert log.verify().entries == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_log_can_be_read_where_it_is_allowed_and_not_written(tmp_path):
    folder = Path("/tmp") / f"lrp4rag-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        with AuditLog.open(folder / "audit.db") as log:
            log.append(decision(1))
        (folder / "audit.db").chmod(0o644)
        for name in ("audit.db-wal", "audit.db-shm"):
            (folder / name).unlink(missing_ok=True)
        code = (
            "import os, sys; from lrp4rag.guard.audit import AuditLog\n"
            "with AuditLog.open(sys.argv[2]) as log:  # another user may not read what is imported late\n"
            "    log.append({'id': 'a'}), log.verify()\n"
            "os.setuid(65534)\n"
            "print(AuditLog.open(sys.argv[1], read_only=True).verify().whole)\n"
            "try: AuditLog.open(sys.argv[1])\n"
            "except Exception as error: print(type(error).__name__, error)"
        )
        command = [sys.executable, "-c", code, str(folder / "audit.db"), str(tmp_path / "mine.db")]
        said = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
        )
        assert said.stdout.startswith("True\nInputError ")
        assert "see to its permissions" in said.stdout
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE audit_head SET version = 2", "of format 2"),
        ("UPDATE audit_head SET application = 'x'", "no audit log"),
        ("DELETE FROM audit_head", "no audit log"),
        ("DROP TABLE audit_head", "holds something else"),
        ("ALTER TABLE audit_head DROP COLUMN version", "no audit log"),
    ],
)
def test_another_version_or_program_is_refused(path, statement, said):
    sql(path, statement)
    before = path.read_bytes()
    with pytest.raises(InputError, match=said):
        AuditLog.open(path)
    assert path.read_bytes() == before


def test_what_is_no_log_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("no database at all" * 100)
    sql(tmp_path / "other.db", "CREATE TABLE mine (x)")
    os.mkfifo(tmp_path / "pipe")
    for given, said in [
        (tmp_path / "text", "no SQLite database"),
        (tmp_path / "other.db", "holds something else"),
        (tmp_path / "pipe", "a pipe"),
        (tmp_path, "a folder"),
        (tmp_path / "none" / "audit.db", "folder does not exist"),
        (":memory:", "would be lost"),
        ("sqlite://", "would be lost"),
        (f"sqlite:///file:{tmp_path}/audit.db?uri=true", "name the file itself"),
        ("nothing://user:secret@host/name", "kept in SQLite or in PostgreSQL"),
        ("postgresql+nothing://user:secret@host/name", "not known"),
        ("a b://", "no URL"),
    ]:
        with pytest.raises(InputError, match=said) as caught:
            AuditLog.open(given)
        assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="no audit log here"):
        AuditLog.open(tmp_path / "new.db", read_only=True)
    with pytest.raises(InputError, match="no audit log here"):
        AuditLog.open(tmp_path / "new.db", create=False)
    assert not (tmp_path / "new.db").exists()
    with pytest.raises(InputError, match="no audit log"):
        AuditLog.open(tmp_path / "other.db", read_only=True)


def test_a_damaged_file_is_told(path):
    """Wherever it is overwritten, there is a message, or a problem; never another error."""
    content = path.read_bytes()
    path.with_name("audit.db-wal").unlink(missing_ok=True)
    for page in range(len(content) // 4096):
        path.write_bytes(content[: page * 4096] + b"\xa5" * 4096 + content[(page + 1) * 4096 :])
        path.with_name("audit.db-shm").unlink(missing_ok=True)
        with suppress(LRP4RAGError), AuditLog.open(path) as log:
            assert log.verify().problems
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(LRP4RAGError, match="damaged"), AuditLog.open(path) as log:
        log.verify()


def test_what_was_changed_is_not_read_as_if_it_were_not(path, tmp_path):
    sql(path, "UPDATE audit_texts SET text = '\"other\"' WHERE id = 'd1' AND name = 'question'")
    sql(path, "UPDATE audit_entries SET record = replace(record, 'pass', 'fail') WHERE id = 'd2'")
    with AuditLog.open(path) as log:
        with pytest.raises(LRP4RAGError, match="text of this entry"):
            log.texts("d1")
        for read in (lambda: log.get("d2"), lambda: [*log.entries()], lambda: log.export(tmp_path / "out")):
            with pytest.raises(LRP4RAGError, match="entry 3 was changed"):
                read()
        assert log.erase("d2") == 2  # a right to be erased does not wait
        assert not (tmp_path / "out").exists()
    sql(path, "UPDATE audit_head SET entries = 'x'")
    with AuditLog.open(path) as log, pytest.raises(LRP4RAGError, match="head of the log"):
        log.append(decision(9))
    sql(path, "UPDATE audit_head SET entries = 1")
    with AuditLog.open(path) as log, pytest.raises(LRP4RAGError, match="does not fit"):
        log.append(decision(9))
