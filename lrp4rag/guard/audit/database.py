"""The tables of a log in SQLite or PostgreSQL: opened, created, read and written in transactions."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from lrp4rag.guard.audit.entry import NOTHING
from lrp4rag.util.errors import InputError, LRP4RAGError, first_line
from lrp4rag.util.files import require_regular

APPLICATION = "lrp4rag audit log"
VERSION = 1

_LARGE = BigInteger().with_variant(Integer, "sqlite")  # SQLite's are of 8 bytes

METADATA = MetaData()

HEAD = Table(
    "audit_head",
    METADATA,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("application", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("entries", _LARGE, nullable=False),
    Column("hash", Text, nullable=False),
    Column("checkpoints", _LARGE, nullable=False),
)
"""One row, which writers lock: how many entries and checkpoints there are, and the last entry's hash."""

ENTRIES = Table(
    "audit_entries",
    METADATA,
    Column("sequence", _LARGE, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("time", Text, nullable=False),
    Column("kind", Text),
    Column("subject", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("record", Text, nullable=False),
    Index("audit_entries_time", "time"),
    Index("audit_entries_subject", "kind", "subject"),
)

TEXTS = Table(
    "audit_texts",
    METADATA,
    Column("id", Text, ForeignKey(ENTRIES.c.id), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("text", Text, nullable=False),
)
"""Texts, which may be erased. `text` is a JSON string: PostgreSQL's texts cannot hold U+0000."""

CHECKPOINTS = Table(
    "audit_checkpoints",
    METADATA,
    Column("number", _LARGE, primary_key=True, autoincrement=False),
    Column("checkpoint", Text, nullable=False),
)


WAITS = 30.0
"""Seconds that a writer waits for the others."""

# By the beginnings of SQLite's and PostgreSQL's codes.
_WORDS = {
    ("SQLITE_FULL", "53100"): "no room is left on its disk; what was recorded before is safe. Free some",
    ("SQLITE_READONLY", "25006", "42501"): "it cannot be written to: see to its permissions and its folder's",
    ("SQLITE_NOTADB",): "this is no audit log: it is no SQLite database",
    ("SQLITE_CORRUPT",): "the database is damaged: keep a copy, and restore a backup",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): f"another process has kept it locked for {WAITS:.0f} s",
    ("SQLITE_CANTOPEN",): "it cannot be opened: see to its permissions and its folder's",
}
_INPUT = ("SQLITE_READONLY", "25006", "42501", "SQLITE_NOTADB", "SQLITE_CANTOPEN")


@contextmanager
def database_errors(location: str) -> Iterator[None]:
    """Turn the database's errors into `InputError` and `LRP4RAGError` that name its location."""
    try:
        yield
    except IntegrityError as error:
        raise LRP4RAGError(
            f"{location}: its head does not fit what is in it: it was changed. Run lrp4rag audit verify"
        ) from error
    except DBAPIError as error:
        original = error.orig
        # Such as SQLITE_FULL, or an SQLSTATE; empty where the driver gives none.
        code = str(getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None) or "")
        words = next((words for codes, words in _WORDS.items() if code.startswith(codes)), None)
        if code.startswith(_INPUT) and words:
            raise InputError(words, path=location) from error
        raise LRP4RAGError(f"{location}: {words or first_line(original or error)}") from error
    except SQLAlchemyError as error:
        raise LRP4RAGError(f"{location}: {first_line(error)}") from error


WRITES = "lrp4rag_writes"
"""The execution option of connections that write."""


def _sqlite_url(url: URL, *, read_only: bool, create: bool) -> tuple[URL, str]:
    """Return the URL to connect to and the file's name for messages; with `create`, make a missing file.

    Raises `InputError` for anything but a file, and for a missing one without `create`.
    """
    name = url.database or ""
    if name in ("", ":memory:"):
        raise InputError("an audit log in memory would be lost; name a file")
    if name.startswith("file:"):
        raise InputError("this is a URL of SQLite's own: name the file itself")
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


def _create(path: Path) -> None:
    """Create an empty file that only its owner reads, and have its name on disk as well."""
    if not path.parent.is_dir():
        raise InputError("its folder does not exist", path=path)
    try:
        path.touch(0o600, exist_ok=False)
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


def _configure_sqlite(engine: Engine, *, read_only: bool) -> None:
    """Make connections commit to disk, and transactions lock from their start where they write."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, and not by the driver
        # Text that was tampered with may be no UTF-8; that is to be told, not to end the reading.
        connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")  # erased texts are overwritten
        if not read_only:
            _use_write_ahead_log(connection)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log; try again where others hold a lock, since SQLite does not wait here."""
    for pause in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if pause is None or not str(error.sqlite_errorname).startswith("SQLITE_BUSY"):
                raise
            time.sleep(pause)


def _empty_write_ahead_log(connection: Connection) -> None:
    """Move the write-ahead log into the file. Raises `LRP4RAGError` where readers keep it from that."""
    raw: Any = connection.connection.driver_connection  # in a transaction it cannot be done
    (busy, *_) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise LRP4RAGError(
            "the texts are deleted, but others read the log, so their traces stay in its -wal file until all "
            "have closed it"
        )


_CREATION = 0x6C7270  # any number that no other program locks by


class Database:
    """Connections to one log. `location` is its file or URL, without a password."""

    def __init__(self, engine: Engine, location: str, *, read_only: bool) -> None:
        self.engine, self.location, self.read_only = engine, location, read_only
        self._writer = engine.execution_options(**{WRITES: True})

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def files(self) -> list[Path]:
        """The files of an SQLite log, which no output may replace."""
        if not self.is_sqlite:
            return []
        return [Path(f"{self.location}{end}") for end in ("", "-wal", "-shm")]

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a transaction of one writer at a time; on disk, or without effect, when it ends."""
        if self.read_only:
            raise InputError("this log was opened to be read only", path=self.location)
        with database_errors(self.location), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a transaction that sees the log as it is at one moment."""
        engine = self.engine
        if not self.is_sqlite:
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with database_errors(self.location), engine.begin() as connection:
            yield connection

    def forget_erased(self) -> None:
        """Remove deleted texts from SQLite's write-ahead log too. Raises as `_empty_write_ahead_log`."""
        if self.is_sqlite:
            with database_errors(self.location), self.engine.connect() as connection:
                _empty_write_ahead_log(connection)

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str | Path, *, read_only: bool = False, create: bool = True) -> Database:
    """Return the log at a URL of SQLAlchemy or a path of an SQLite file; with `create`, make an empty log
    where there is none.

    Raises `InputError` where there is something else, another version's log, or nothing that can be opened.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError("an audit log is kept in SQLite or in PostgreSQL", path=_shown(parsed))
    location = _shown(parsed)
    if parsed.get_backend_name() == "sqlite":
        parsed, location = _sqlite_url(parsed, read_only=read_only, create=create)
    database = Database(_engine(parsed, read_only=read_only), location, read_only=read_only)
    try:
        with database.reading() if read_only else database.writing() as connection:
            require_log_tables(connection, location, create=create)
            if not read_only:
                write_nothing(connection)
    except BaseException:
        database.close()
        raise
    return database


def write_nothing(connection: Connection) -> None:
    """Change the head there and back on disk: a lock does not show that the log can be written, and SQLite
    does not write a value that stays as it is."""
    for step in (1, -1):
        connection.execute(HEAD.update().values(version=HEAD.c.version + step))


def _parsed(url: str | Path) -> URL:
    if isinstance(url, Path) or "://" not in url:
        return URL.create("sqlite", database=str(url))
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:  # what was given may hold a password
        raise InputError("this is no URL of a database; give one such as sqlite:///audit.db") from error


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _engine(url: URL, *, read_only: bool) -> Engine:
    lite = url.get_backend_name() == "sqlite"
    try:
        engine = create_engine(
            url,
            hide_parameters=True,
            connect_args={"timeout": WAITS} if lite else {},
            **({} if lite else {"isolation_level": "READ COMMITTED"}),
        )
    except (ArgumentError, NoSuchModuleError) as error:
        raise InputError("this database, or its driver, is not known", path=_shown(url)) from error
    except ImportError as error:
        raise InputError(
            f"its driver is not installed: pip install '{error.name}[binary]'", path=_shown(url)
        ) from error
    if lite:
        _configure_sqlite(engine, read_only=read_only)
    else:
        _configure_postgres(engine)
    return engine


def _configure_postgres(engine: Engine) -> None:
    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout TO '{WAITS:.0f}s'")


def require_log_tables(connection: Connection, location: str, *, create: bool) -> None:
    """Raise `InputError` for tables that are no log of this version; with `create`, make missing ones."""
    if create and connection.dialect.name == "postgresql":  # of two that find no tables, one makes them
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION})
    tables = inspect(connection)
    if not tables.has_table(HEAD.name):
        if not create:
            raise InputError("this is no audit log", path=location)
        if connection.dialect.name == "sqlite" and tables.get_table_names():
            raise InputError("this database holds something else; name a new file", path=location)
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(
            HEAD.insert().values(
                one=1, application=APPLICATION, version=VERSION, entries=0, hash=NOTHING, checkpoints=0
            )
        )
        return
    is_log = {"application", "version"} <= {column["name"] for column in tables.get_columns(HEAD.name)}
    rows = connection.execute(select(HEAD.c.application, HEAD.c.version)).all() if is_log else []
    if len(rows) != 1 or rows[0].application != APPLICATION:
        raise InputError("this is no audit log, or its head was changed; restore a backup", path=location)
    if rows[0].version != VERSION:
        raise InputError(
            f"this log is of format {rows[0].version}, and this version of lrp4rag reads {VERSION}",
            path=location,
        )
