"""Random changes of a server's audit database: is each of them found?"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import httpx

from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import examples, judge_body
from benchmarks.service.server import audit_of, quick, started
from benchmarks.service.streams import ask_all
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.audit.keys import open_public_key
from lrp4rag.util.errors import LRP4RAGError

OPERATIONS = {"change_cell": 6, "delete_rows": 1, "swap_rows": 1, "duplicate_row": 1}
"""How often each is drawn; they are those of the audit log's own tests, which are not type-checked."""


def fill(folder: Path, answers: int) -> None:
    """A log as a server writes it: streams and judgements, with texts, checkpoints and an erasure."""
    some = examples(answers)
    keeps: dict[str, Any] = {"keep_texts": True, "audit_key": str(folder / "key")}
    with Upstream(Writer([str(one.response) for one in some])) as upstream:
        for half in (some[::2], some[1::2]):  # a server that ends signs the head
            with started(folder, upstream=upstream.url, **keeps) as server:
                ask_all(server.url, half[:-2], 2)
                for one in half[-2:]:
                    body = judge_body(one)
                    httpx.post(f"{server.url}/v1/judge", json=body, timeout=60).raise_for_status()
    with AuditLog.open(audit_of(folder), key=folder / "key", create=False) as log:
        kept = [entry.id for entry in log.entries() if log.texts(entry.id)]
        log.erase(kept[0])


def tampered(original: Path, copy: Path, operation: Any, chance: Random) -> str | None:
    """What was changed in the copy; None where that would have changed nothing."""
    shutil.copyfile(original, copy)
    connection = sqlite3.connect(copy)
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    try:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA ignore_check_constraints=ON")
        what = str(operation(connection, chance))
        connection.commit()
    except sqlite3.IntegrityError:
        return None
    finally:
        connection.close()
    return what


def is_found(copy: Path, key: Path) -> bool:
    try:
        with AuditLog.open(copy, read_only=True) as log:
            return not log.verify(open_public_key(key)).whole
    except LRP4RAGError:  # it does not open, and says why
        return True


@benchmark
@count("--tamperings", 500, "Random ones.")
@count("--answers", 16, "In the log that is tampered with.", least=6)
@quick(tamperings=25, answers=6)
def main(tamperings: int, answers: int, quick: bool) -> Report:
    """Change cells and delete, swap and duplicate rows of a copy of a log that a server wrote: does
    `lrp4rag audit verify` find each change?

    \b
    Examples:
      python -m benchmarks.service.tamper --quick
      python -m benchmarks.service.tamper --tamperings 500
    """
    tests = import_module("tests.guard.audit.test_tampering")
    chance, names, tried = Random(20260101), list(OPERATIONS), Counter[str]()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, answers)
        original, copy, key = folder / "audit.db", folder / "copy.db", folder / "key"
        untouched = is_found(original, key)
        while tried.total() < tamperings:
            (operation,) = chance.choices(names, list(OPERATIONS.values()))
            try:
                what = tampered(original, copy, getattr(tests, operation), chance)
            except tests.ImpossibleError:
                continue
            if what is not None:
                tried[operation] += 1
                missed += [] if is_found(copy, key) else [what[:200]]
        with AuditLog.open(original, read_only=True) as log:
            entries = log.verify().entries
    result: dict[str, Any] = {
        "tamperings": tried.total(),
        "found": tried.total() - len(missed),
        "missed": missed,
        "kinds": dict(tried),
        "entries": entries,
        "untouched_is_whole": not untouched,
    }
    return result | {"reader": "tiny"}, rows_of(result)


if __name__ == "__main__":
    main()
