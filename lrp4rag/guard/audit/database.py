"""A database with the log's tables: opened, created where there is none, read and written in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from lrp4rag.guard.audit import sqlite
from lrp4rag.guard.audit.entry import NOTHING
from lrp4rag.guard.audit.failures import WAITS, failures
from lrp4rag.guard.audit.tables import APPLICATION, HEAD, METADATA, VERSION
from lrp4rag.util.errors import InputError

_CREATION = 0x6C7270  # any number that no other program locks by


class Database:
    """Connections to one log. `place` is its file or URL, without a password."""

    def __init__(self, engine: Engine, place: str, *, read_only: bool) -> None:
        self.engine, self.place, self.read_only = engine, place, read_only
        self._writer = engine.execution_options(**{sqlite.WRITES: True})

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def files(self) -> list[Path]:
        """SQLite's: nothing else may be written in their place."""
        if not self.is_sqlite:
            return []
        file = sqlite.file_of(self.place)
        return [Path(f"{file}{end}") for end in ("", "-wal", "-shm")]

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of one writer at a time; on disk, or without effect, when it ends."""
        if self.read_only:
            raise InputError("this log was opened to be read only", path=self.place)
        with failures(self.place), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees the log as it is at one moment."""
        engine = self.engine
        if not self.is_sqlite:
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with failures(self.place), engine.begin() as connection:
            yield connection

    def forget_erased(self) -> None:
        """Take what was deleted out of SQLite's write-ahead log too, as far as no reader is at it."""
        if self.is_sqlite:
            with failures(self.place), self.engine.connect() as connection:
                sqlite.empty_write_ahead_log(connection)

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str | Path, *, read_only: bool = False, create: bool = True) -> Database:
    """The log at a URL of SQLAlchemy or a path of an SQLite file; with `create`, an empty one is made where
    there is none.

    Raises `InputError` where there is something else, another version's log, or nothing that can be opened.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError("an audit log is kept in SQLite or in PostgreSQL", path=_shown(parsed))
    place = _shown(parsed)
    if parsed.get_backend_name() == "sqlite":
        parsed, place = sqlite.prepared(parsed, read_only=read_only, create=create)
    database = Database(_engine(parsed, read_only=read_only), place, read_only=read_only)
    try:
        with database.reading() if read_only else database.writing() as connection:
            require_ours(connection, place, create=create)
            if not read_only:
                write_nothing(connection)
    except BaseException:
        database.close()
        raise
    return database


def write_nothing(connection: Connection) -> None:
    """Change the head there and back, which is written to disk: a lock does not show that anything can be,
    and SQLite does not write what stays as it is."""
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
        sqlite.configure(engine, read_only=read_only)
    else:
        _configure_postgres(engine)
    return engine


def _configure_postgres(engine: Engine) -> None:
    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout TO '{WAITS:.0f}s'")


def require_ours(connection: Connection, place: str, *, create: bool) -> None:
    """Raise `InputError` for tables that are no log of this version; with `create`, make those that lack."""
    if create and connection.dialect.name == "postgresql":  # of two that find no tables, one makes them
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION})
    tables = inspect(connection)
    if not tables.has_table(HEAD.name):
        if not create:
            raise InputError("this is no audit log", path=place)
        if connection.dialect.name == "sqlite" and tables.get_table_names():
            raise InputError("this database holds something else; name a new file", path=place)
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(
            HEAD.insert().values(
                one=1, application=APPLICATION, version=VERSION, entries=0, hash=NOTHING, checkpoints=0
            )
        )
        return
    columns = {column["name"] for column in tables.get_columns(HEAD.name)}
    rows = (
        []
        if not {"application", "version"} <= columns
        else connection.execute(select(HEAD.c.application, HEAD.c.version)).all()
    )
    if len(rows) != 1 or rows[0].application != APPLICATION:
        raise InputError("this is no audit log, or its head was changed; restore a backup", path=place)
    if rows[0].version != VERSION:
        raise InputError(
            f"this log is of format {rows[0].version}, and this version of lrp4rag reads {VERSION}",
            path=place,
        )
