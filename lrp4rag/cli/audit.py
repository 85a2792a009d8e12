"""`lrp4rag audit verify|show|export|erase|checkpoint`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.options import PATH, check_written, file_option, together
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say, say_json
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.guard.audit import AuditLog, Checkpoint, Entry, Verification

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
    outside = None if checkpoint is None else _checkpoint(checkpoint)
    with AuditLog.open(database, read_only=True) as log:
        result = log.verify(public, outside)
    _print_verification(result, as_json=as_json)
    ctx.exit(0 if result.whole else 1)


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
@DATABASE
@click.option("--labels", is_flag=True, help="Answers that were reviewed or corrected, as labelled examples.")
def export(file: Path, database: str, labels: bool) -> None:
    """Write all entries to FILE as JSON Lines, without texts.

    Each line is canonical JSON (RFC 8785); its hash is the SHA-256 of the line without it.

    With --labels: the answers that people spoke on, with their labels, for `lrp4rag train` and `lrp4rag
    evaluate`. A reviewer's word goes before a user's. Answers whose texts were not kept (the server's setting
    keep_texts), or were erased, are left out.
    """
    from lrp4rag.guard.audit import AuditLog

    with AuditLog.open(database, read_only=True) as log:
        path = check_written(file, log.files)
        count = _write_labels(log, path) if labels else log.export(path)
    say(f"{count} {'labelled answers' if labels else 'entries'} written to {file}", err=labels)


@audit.command()
@click.argument("id")
@together(DATABASE, KEY)
def erase(id: str, database: str, key: Path | None) -> None:
    """Delete the texts of the entry ID for good.

    The entry stays, the chain too, and that it was done is recorded. With --key, that is signed.
    """
    from lrp4rag.guard.audit import AuditLog

    with AuditLog.open(database, key=key, create=False) as log:
        say(f"{log.erase(id)} texts erased")


@audit.command()
@together(DATABASE, KEY)
@click.option(
    "--public", is_flag=True, help="Print the public key instead, and make the key where there is none."
)
@click.option("--json", is_flag=True, hidden=True, expose_value=False)  # what it prints is JSON
def checkpoint(database: str, key: Path | None, public: bool) -> None:
    """Sign the end of the log, and print that to be kept elsewhere.

    It is a line of JSON. Nothing up to there can be changed or cut off afterwards without
    `verify --checkpoint` telling.
    """
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.audit.chain import open_key, public_pem

    if key is None:
        raise InputError("a checkpoint is signed; name the key's file with --key")
    if public:
        say(public_pem(open_key(key).public_key()).strip())
        return
    with AuditLog.open(database, key=key, create=False) as log:
        say(log.checkpoint().text)


@audit.command(name="key", hidden=True)  # its former name
@KEY
@click.pass_context
def _key(ctx: click.Context, key: Path | None) -> None:
    """Print the public key: checkpoint --public."""
    ctx.invoke(checkpoint, key=key, public=True, database="")


@click.group()
def feedback() -> None:
    """Former name of `audit export --labels`."""


@feedback.command(name="export")
@click.argument("file", type=PATH)
@DATABASE
@click.pass_context
def _export(ctx: click.Context, file: Path, database: str) -> None:
    """Write labelled answers: audit export --labels."""
    ctx.invoke(export, file=file, database=database, labels=True)


def _write_labels(log: AuditLog, path: Path) -> int:
    from lrp4rag.data import json_line
    from lrp4rag.guard.service.reviews import labelled
    from lrp4rag.util.files import write_atomically

    lines = [json_line(example) for example in labelled(log)]
    write_atomically(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def _checkpoint(text: str) -> Checkpoint:
    """Return the checkpoint in a text, or in the file that the text names."""
    from lrp4rag.guard.audit import Checkpoint
    from lrp4rag.util.files import read_bytes

    if text.lstrip().startswith("{"):
        return Checkpoint.parse(text)
    try:
        return Checkpoint.parse(read_bytes(text, 10_000).decode(errors="replace"))
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=text, field="checkpoint") from error


def _print_verification(result: Verification, *, as_json: bool) -> None:
    last = result.last
    if as_json:
        signed = None if last is None else last.model_dump()
        more = {"last": signed, "whole": result.whole, "unsigned": result.unsigned}
        say_json({**asdict(result), **more})
        return
    say(f"entries      {result.entries:,}, the last has hash {one_line(str(result.head))}")
    if last is None:
        say(f"checkpoints  {result.checkpoints:,}, none signs an entry: the newest may be cut off unseen")
    else:
        say(f"checkpoints  {result.checkpoints:,}, the last signs entry {last.sequence:,}, at {last.time}")
        say(f"unsigned     {result.unsigned:,} entries after it")
    if result.key is not None:
        say(
            f"key          {result.key}{'' if result.pinned else ' (not checked: give --key, or compare it)'}"
        )
    for problem in result.problems:
        say(f"PROBLEM      {one_line(str(problem), 500)}")
    changed = f"CHANGED      problems: {len(result.problems):,}"
    say("whole        nothing was changed" if result.whole else changed)


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
