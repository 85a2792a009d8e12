"""SQLite as a log needs it: on disk when it says so, locked before it is read to be written."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from sqlalchemy import URL, Connection, Engine, event

from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import require_regular

WRITES = "lrp4rag_writes"
"""The execution option of connections that write."""
_OWN_URL = "file:"


def prepared(url: URL, *, read_only: bool, create: bool) -> tuple[URL, str]:
    """The URL to connect to and the file's name for messages; with `create`, the file is made.

    Raises `InputError` for what is no file, or is not there.
    """
    name = url.database or ""
    if name in ("", ":memory:"):
        raise InputError("an audit log in memory would be lost; name a file")
    if name.startswith(_OWN_URL):  # SQLite's own URL: whoever writes one decides on all of it
        return url, name
    path = Path(name)
    try:
        if path.exists():
            require_regular(path, path.stat().st_mode)
        elif not create:
            raise InputError("there is no audit log here", path=path)
        else:
            _create(path)
    except OSError as error:
        raise InputError(f"cannot open this: {error.strerror}", path=path) from error
    return (_reading(url, path) if read_only else url), name


def file_of(name: str) -> str:
    """The file that a name means, also where it is a URL of SQLite's own."""
    return unquote(urlsplit(name).path) if name.startswith(_OWN_URL) else name


def _create(path: Path) -> None:
    """An empty file that only its owner reads; its name is on disk as well."""
    if not path.parent.is_dir():
        raise InputError("its folder does not exist", path=path)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return  # another process was faster
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _reading(url: URL, path: Path) -> URL:
    options = {"mode": "ro", "uri": "true"}
    # SQLite writes beside the file even to read it, unless it is told that nobody changes it.
    if not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists():
        options["immutable"] = "1"
    return url.set(database=f"file:{quote(str(path.resolve()))}", query=options)


def configure(engine: Engine, *, read_only: bool) -> None:
    """Have connections commit to disk, and transactions start as they are meant to."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, and not by the driver
        # Text that was tampered with may be no UTF-8; that is to be told, not to end the reading.
        connection.text_factory = _text
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")  # erased texts are overwritten
        if not read_only:
            _use_write_ahead_log(connection)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for others here."""
    for pause in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if pause is None or not str(error.sqlite_errorname).startswith("SQLITE_BUSY"):
                raise
            time.sleep(pause)


def empty_write_ahead_log(connection: Connection) -> None:
    """Move all of it into the file. Raises `LRP4RAGError` where readers stay at it too long."""
    raw: Any = connection.connection.driver_connection  # in a transaction it cannot be done
    (busy, *_) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise LRP4RAGError(
            "the texts are deleted, but others read the log, so their traces stay in its -wal file until all "
            "have closed it"
        )
