"""What a database says when it fails, in words for a user. No statement, value or password is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from lrp4rag.util.errors import InputError, LRP4RAGError, first_line

WAITS = 30.0
"""Seconds that a writer waits for the others."""

# By the beginnings of SQLite's and PostgreSQL's codes.
_SAID = {
    ("SQLITE_FULL", "53100"): "no room is left on its disk; what was recorded before is safe. Free some",
    ("SQLITE_READONLY", "25006", "42501"): "it cannot be written to: see to its permissions and its folder's",
    ("SQLITE_NOTADB",): "this is no audit log: it is no SQLite database",
    ("SQLITE_CORRUPT",): "the database is damaged: keep a copy, and restore a backup",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): f"another process has kept it locked for {WAITS:.0f} s",
    ("SQLITE_CANTOPEN",): "it cannot be opened: see to its permissions and its folder's",
}
_INPUT = ("SQLITE_READONLY", "25006", "42501", "SQLITE_NOTADB", "SQLITE_CANTOPEN")


@contextmanager
def failures(place: str) -> Iterator[None]:
    """Turn the database's errors into `InputError` and `LRP4RAGError` that name the place."""
    try:
        yield
    except IntegrityError as error:
        raise LRP4RAGError(
            f"{place}: its head does not fit what is in it: it was changed. Run lrp4rag audit verify"
        ) from error
    except DBAPIError as error:
        code = code_of(error)
        words = next((words for codes, words in _SAID.items() if code.startswith(codes)), None)
        if code.startswith(_INPUT) and words:
            raise InputError(words, path=place) from error
        raise LRP4RAGError(f"{place}: {words or first_line(error.orig or error)}") from error
    except SQLAlchemyError as error:
        raise LRP4RAGError(f"{place}: {first_line(error)}") from error


def code_of(error: DBAPIError) -> str:
    """Such as SQLITE_FULL, or an SQLSTATE; empty where the driver gives none."""
    original = error.orig
    code = getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None)
    return str(code or "")
