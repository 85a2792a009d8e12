"""Whatever is changed in the database by SQL is found."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.audit.chain import key_hex, open_key
from lrp4rag.guard.audit.database import METADATA, open_database, require_log_tables
from lrp4rag.guard.audit.verification import verify
from lrp4rag.util.errors import InputError
from tests.guard.audit.conftest import TEXTS, decision

ROUNDS = 80
COLUMNS = {table.name: [column.name for column in table.columns] for table in METADATA.tables.values()}
KEYS = {table.name: [column.name for column in table.primary_key] for table in METADATA.tables.values()}
# More of the tables with more in them.
TABLES = ["audit_entries"] * 4 + ["audit_texts"] * 3 + ["audit_checkpoints"] * 2 + ["audit_head"]

Tampering = Callable[[sqlite3.Connection, random.Random], str]


class ImpossibleError(Exception):
    """This would change nothing; another one is drawn."""


@pytest.fixture(scope="module")
def tampered(tmp_path_factory):
    """A log of 30 entries, and what says whether a tampering of it is found. Nothing stays changed."""
    folder = tmp_path_factory.mktemp("log")
    with AuditLog.open(folder / "audit.db", key=folder / "key", texts=True) as log:
        for number in range(28):
            entry = log.append(decision(number), TEXTS if number % 4 else None)
            if number % 7 == 6:
                log.checkpoint()
            if number == 3:
                log.expire(datetime.fromisoformat(entry.time))
        log.erase("d9")
    public = key_hex(open_key(folder / "key").public_key())
    database = open_database(folder / "audit.db")
    with database.engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute("PRAGMA foreign_keys=OFF")

        def found(tamper: Tampering, chance: random.Random) -> tuple[str, bool]:
            with connection.begin() as transaction:
                try:
                    raw.execute("PRAGMA ignore_check_constraints=ON")
                    what = tamper(raw, chance)
                    raw.execute("PRAGMA ignore_check_constraints=OFF")
                    require_log_tables(connection, "audit.db", create=False)
                    return what, not verify(connection, public, None).whole
                except InputError:
                    return what, True
                finally:
                    transaction.rollback()

        yield found
    database.close()


def change_cell(raw: sqlite3.Connection, chance: random.Random) -> str:
    table = chance.choice(TABLES)
    column = chance.choice(COLUMNS[table])
    (row,) = chosen(raw, chance, table, 1)
    (old,) = raw.execute(f"SELECT {column} FROM {table} WHERE rowid=?", (row,)).fetchone()
    new, how = changed(raw, chance, table, column, old)
    value = "CAST(? AS TEXT)" if isinstance(new, bytes) and how != "blob" else "?"
    raw.execute(f"UPDATE {table} SET {column}={value} WHERE rowid=?", (new, row))
    if raw.execute(f"SELECT {column} FROM {table} WHERE rowid=?", (row,)).fetchone() == (old,):
        raise ImpossibleError
    return f"{how} in {table}.{column} of {row}: {old!r} to {new!r}"


def changed(
    raw: sqlite3.Connection, chance: random.Random, table: str, column: str, old: Any
) -> tuple[Any, str]:
    how = chance.choice(["bit", "bit", "bit", "case", "space", "null", "blob", "other", "cut", "number"])
    if how == "other":
        (row,) = chosen(raw, chance, table, 1)
        return raw.execute(f"SELECT {column} FROM {table} WHERE rowid=?", (row,)).fetchone()[0], how
    if how == "null":
        return None, how
    if isinstance(old, int):
        return (old ^ (1 << chance.randrange(32)) if how == "bit" else old + chance.choice([-1, 1])), how
    if old is None:
        return chance.choice(["", "decision", 0, b"\xff"]), "blob"
    content = old.encode("utf-8", "surrogateescape")
    place = chance.randrange(len(content))
    bit = bytearray(content)
    bit[place] ^= 1 << chance.randrange(8)
    spaced = content[:place] + b" " + content[place:]
    return {
        "bit": bytes(bit),
        "case": content.swapcase(),
        "space": spaced,
        "blob": content,
        "cut": content[:-1],
        "number": content.replace(b"1", b"1.0", 1),
    }[how], how


def delete_rows(raw: sqlite3.Connection, chance: random.Random) -> str:
    table = chance.choice(TABLES)
    rows = chosen(raw, chance, table, chance.choice([1, 1, 2, 5]))
    raw.executemany(f"DELETE FROM {table} WHERE rowid=?", [(row,) for row in rows])
    return f"deleted {rows} of {table}"


def swap_rows(raw: sqlite3.Connection, chance: random.Random) -> str:
    """Two rows change places, with all that they hold or in one column."""
    table = chance.choice(TABLES)
    others = [name for name in COLUMNS[table] if name not in KEYS[table]]
    names = others if chance.random() < 0.5 else [chance.choice(others)]
    rows = chosen(raw, chance, table, 2)
    if len(rows) < 2:
        raise ImpossibleError
    columns, places = ",".join(names), ",".join(f"{name}=?" for name in names)
    held = [raw.execute(f"SELECT {columns} FROM {table} WHERE rowid=?", (row,)).fetchone() for row in rows]
    if held[0] == held[1]:
        raise ImpossibleError
    if "id" in names and table == "audit_entries":
        raw.execute(f"UPDATE {table} SET id='aside' WHERE rowid=?", (rows[1],))
    for row, values in zip(rows, reversed(held), strict=True):
        raw.execute(f"UPDATE {table} SET {places} WHERE rowid=?", (*values, row))
    return f"swapped {names} of {rows} of {table}"


def duplicate_row(raw: sqlite3.Connection, chance: random.Random) -> str:
    table = chance.choice(TABLES)
    (row,) = chosen(raw, chance, table, 1)
    values = dict(
        zip(
            COLUMNS[table],
            raw.execute(f"SELECT * FROM {table} WHERE rowid=?", (row,)).fetchone(),
            strict=True,
        )
    )
    for name in {*KEYS[table], *({"id"} & values.keys())}:
        if isinstance(values[name], int):
            values[name] = raw.execute(f"SELECT max({name}) FROM {table}").fetchone()[0] + chance.choice(
                [1, 2]
            )
        else:
            values[name] += chance.choice(["", "x"])
    marks = ",".join("?" * len(values))
    raw.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(values.values()))
    return f"duplicated {row} of {table}"


def chosen(raw: sqlite3.Connection, chance: random.Random, table: str, count: int) -> list[int]:
    rows = [row for (row,) in raw.execute(f"SELECT rowid FROM {table}")]
    return chance.sample(rows, min(count, len(rows)))


def test_every_tampering_is_found(tampered):
    chance = random.Random(20260101)
    kinds = [change_cell] * 6 + [delete_rows, swap_rows, duplicate_row]
    missed, tried, tables = [], 0, set()
    while tried < ROUNDS:
        try:
            what, was_found = tampered(chance.choice(kinds), chance)
        except (ImpossibleError, sqlite3.IntegrityError):
            continue
        tried += 1
        tables |= {table for table in COLUMNS if table in what}
        if not was_found:
            missed.append(what)
    assert missed == []
    assert tables == set(COLUMNS)


def test_an_untouched_log_is_whole(tampered):
    assert tampered(lambda raw, chance: "nothing", random.Random()) == ("nothing", False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET record = replace(record, ':', ': ') WHERE sequence = 4",
        "UPDATE audit_entries SET record = replace(record, '{\"', '{\"id\":\"d3\",\"') WHERE sequence = 4",
        "UPDATE audit_entries SET subject = 'd10' WHERE kind = 'erasure'",
        "UPDATE audit_entries SET subject = '9' WHERE kind = 'expiry'",
        "UPDATE audit_entries SET sequence = sequence + 100",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_texts",
        "INSERT INTO audit_texts SELECT 'd9', name, salt, text FROM audit_texts WHERE id = 'd10'",
        "INSERT INTO audit_texts SELECT 'd0', name, salt, text FROM audit_texts WHERE id = 'd10'",
        "UPDATE audit_texts SET text = '\"' || char(92) || 'u0041\"' WHERE id = 'd10'",
        "UPDATE audit_texts SET id = 'd99' WHERE id = 'd10'",
        "UPDATE audit_head SET entries = entries + 1",
        "UPDATE audit_head SET entries = 'x'",
        "UPDATE audit_head SET one = 0",
    ],
)  # fmt: skip
def test_a_tampering_by_a_statement_is_found(tampered, statement):
    def tamper(raw: sqlite3.Connection, chance: random.Random) -> str:
        assert raw.execute(statement).rowcount > 0
        return statement

    assert tampered(tamper, random.Random()) == (statement, True)
