"""`lrp4rag audit verify|show|export|erase|checkpoint|key`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.options import PATH, check_written, file_option, together
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say, say_json
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.guard.audit import Checkpoint, Entry, Verification

DATABASE = click.option(
    "--database",
    "--audit",
    "database",
    default="audit.db",
    envvar="LRP4RAG_AUDIT",
    metavar="URL|PATH",
    help="The log: an SQLite file, or a URL such as postgresql+psycopg://user@host/name.",
)
KEY = file_option("--key", help="File of the log's key, which signs checkpoints.")
PUBLIC = file_option("--key", help="File of the public key, or of the key that it lies beside.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


@click.group()
def audit() -> None:
    """Verify and read the log of decisions, and erase texts from it."""


@audit.command()
@together(DATABASE, PUBLIC, JSON)
@click.option(
    "--checkpoint", metavar="FILE|JSON", help="One that was kept elsewhere: what was cut off since is found."
)
@click.pass_context
def verify(
    ctx: click.Context, database: str, key: Path | None, as_json: bool, checkpoint: str | None
) -> None:
    """Say whether the log is as it was written.

    All entries, checkpoints and kept texts are read. The exit code is 1 where anything was changed, with a
    line for each problem. Without --key, signatures are checked only against the key that the checkpoints
    themselves name.
    """
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.audit.chain import open_public_key

    public = None if key is None else open_public_key(key)
    kept = None if checkpoint is None else _checkpoint(checkpoint)
    with AuditLog.open(database, read_only=True) as log:
        found = log.verify(public, kept)
    _print_verification(found, as_json=as_json)
    ctx.exit(0 if found.whole else 1)


@audit.command()
@click.argument("id")
@together(DATABASE, JSON)
def show(id: str, database: str, as_json: bool) -> None:
    """Print the entry ID, and its texts where they are kept."""
    from lrp4rag.guard.audit import AuditLog

    with AuditLog.open(database, read_only=True) as log:
        entry, texts = log.get(id), log.texts(id)
    if entry is None:
        raise InputError(f"the log has no entry '{one_line(id, 60)}'")
    _print_entry(entry, texts, as_json=as_json)


@audit.command()
@click.argument("file", type=PATH)
@together(DATABASE, JSON)
def export(file: Path, database: str, as_json: bool) -> None:
    """Write all entries to FILE as JSON Lines, without texts.

    Each line is canonical JSON (RFC 8785); its hash is the SHA-256 of the line without it.
    """
    from lrp4rag.guard.audit import AuditLog

    check_written(file)
    with AuditLog.open(database, read_only=True) as log:
        count = log.export(file)
    _print(as_json, f"{count} entries written to {file}", entries=count, file=str(file))


@audit.command()
@click.argument("id")
@together(DATABASE, KEY, JSON)
def erase(id: str, database: str, key: Path | None, as_json: bool) -> None:
    """Delete the texts of the entry ID for good.

    The entry stays, the chain too, and that it was done is recorded. With --key, that is signed.
    """
    from lrp4rag.guard.audit import AuditLog

    with AuditLog.open(database, key=key, create=False) as log:
        count = log.erase(id)
    _print(as_json, f"{count} texts erased", texts=count)


@audit.command()
@together(
    DATABASE, KEY, click.option("--json", is_flag=True, expose_value=False, help="It is JSON in any case.")
)
def checkpoint(database: str, key: Path | None) -> None:
    """Sign the end of the log, and print that to be kept elsewhere.

    It is a line of JSON. Nothing up to there can be changed or cut off afterwards without
    `verify --checkpoint` telling.
    """
    from lrp4rag.guard.audit import AuditLog

    if key is None:
        raise InputError("a checkpoint is signed; name the key's file with --key")
    with AuditLog.open(database, key=key, create=False) as log:
        say(log.checkpoint().text)


@audit.command(name="key")
@together(file_option("--key", required=True, help="File of the key; it is made where there is none."), JSON)
def key_(key: Path, as_json: bool) -> None:
    """Print the public key, for verifiers to keep."""
    from lrp4rag.guard.audit.chain import key_hex, open_key, public_pem

    public = open_key(key).public_key()
    _print(as_json, public_pem(public).strip(), public_key=public_pem(public), key=key_hex(public))


def _checkpoint(given: str) -> Checkpoint:
    """The checkpoint in a file, or given itself."""
    from lrp4rag.guard.audit import Checkpoint
    from lrp4rag.util.files import read_bytes

    if given.lstrip().startswith("{"):
        return Checkpoint.parse(given)
    try:
        return Checkpoint.parse(read_bytes(given, 10_000).decode(errors="replace"))
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=given, field="checkpoint") from error


def _print_verification(found: Verification, *, as_json: bool) -> None:
    if as_json:
        signed = None if found.last is None else found.last.model_dump()
        problems = [asdict(one) for one in found.problems]
        say_json(
            {
                **asdict(found),
                "last": signed,
                "problems": problems,
                "whole": found.whole,
                "unsigned": found.unsigned,
            }
        )
        return
    say(f"entries      {found.entries:,}, the last has hash {one_line(str(found.head))}")
    if found.last is None:
        say(f"checkpoints  {found.checkpoints:,}, none signs an entry: the newest may be cut off unseen")
    else:
        last = f"the last signs entry {found.last.sequence:,}, at {found.last.time}"
        say(f"checkpoints  {found.checkpoints:,}, {last}")
        say(f"unsigned     {found.unsigned:,} entries after it")
    if found.key is not None:
        say(
            f"key          {found.key}"
            + ("" if found.pinned else " (not checked: give --key, or compare it)")
        )
    for problem in found.problems:
        say(f"PROBLEM      {one_line(str(problem), 500)}")
    say(
        "whole        nothing was changed"
        if found.whole
        else f"CHANGED      problems: {len(found.problems):,}"
    )


def _print_entry(entry: Entry, texts: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json({**asdict(entry), "kept": texts})
        return
    for name in ("sequence", "time", "previous", "hash"):
        say(f"{name:<10} {one_line(str(getattr(entry, name)))}")
    say_json(entry.record, indent=2)
    for name, text in texts.items():
        say(f"\n{one_line(name)}:")
        say("  " + text.replace("\n", "\n  "))


def _print(as_json: bool, words: str, **values: Any) -> None:
    if as_json:
        say_json(values)
    else:
        say(words)
