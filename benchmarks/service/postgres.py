"""`database`: a PostgreSQL server of its own, which writes to disk as it does by default."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lrp4rag.util.errors import InputError

FOLDERS = (*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, os.get_exec_path()))


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database. Raises `InputError` where there is no PostgreSQL."""
    binaries = next((one for one in FOLDERS if (one / "initdb").exists()), None)
    if binaries is None:
        raise InputError("there is no PostgreSQL here: install Debian's package postgresql")
    folder = Path(tempfile.mkdtemp(prefix="lrp4rag-pg-"))  # a socket's path is short
    nobody = os.geteuid() == 0  # it refuses to run as root
    if nobody:
        shutil.chown(folder, "nobody", "nogroup")

    def run(name: str, *arguments: str) -> None:
        command: Sequence[str] = [str(binaries / name), "-D", str(folder / "data"), *arguments]
        user, group = ("nobody", "nogroup") if nobody else (None, None)
        subprocess.run(command, check=True, capture_output=True, cwd=folder, user=user, group=group)

    try:
        run("initdb", "-U", "lrp4rag", "-A", "trust", "-E", "UTF8")
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -c listen_addresses=''", "start")
        try:
            yield f"postgresql+psycopg://lrp4rag@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
