"""`lrp4rag redteam`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import Renamed, command
from lrp4rag.cli.options import (
    PATH,
    JudgeChoice,
    Number,
    check_written,
    file_option,
    judge_options,
    repeatable,
)
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.guard.redteam import Result, Target
    from lrp4rag.guard.redteam.report import Record

LOCAL = "local"
TOKEN = "LRP4RAG_TOKEN"
PAGE, RECORD = "index.html", "results.json"


@command()
@click.option(
    "--server",
    "--target",
    "target",
    cls=Renamed,
    default=LOCAL,
    metavar="URL|local",
    help=f"A running 'lrp4rag serve', with a token in the variable {TOKEN}, or the detector and a policy in "
    "this process.",
)
@click.option(
    "--out",
    type=PATH,
    metavar="FOLDER",
    help=f"Write a page with every failure ({PAGE}) and {RECORD} into this folder.",
)
@repeatable("--kind", "kinds", metavar="KIND", help="Only of this kind of cases; repeatable.")
@file_option("--cases", "cases_path", help="JSONL file of cases of your own.  [default: the package's]")
@file_option(
    "--policy", "policy_path", help="YAML file of the policy of a local target.  [default: the built-in one]"
)
@click.option(
    "--min-share",
    type=Number(0, 1),
    metavar="SHARE",
    help="Exit with 1 where of any kind a smaller share of cases is as expected.",
)
@click.option("--json", "as_json", is_flag=True, help=f"Print what {RECORD} holds, and nothing else.")
@judge_options()
@click.pass_context
def redteam(
    ctx: click.Context,
    target: str,
    out: Path | None,
    kinds: tuple[str, ...],
    cases_path: Path | None,
    policy_path: Path | None,
    min_share: float | None,
    as_json: bool,
    choice: JudgeChoice,
) -> None:
    """Ask a guardrail about 266 answers that were written for the purpose, and say what it does that is not
    expected: answers without a relevant document, from conflicting documents, from the model's memory, with
    invented authorities, from superseded versions, and attacks on the guardrail itself.

    About a quarter are harmless and must be let through. docs/red-team.md says how cases are made, and what
    the bundled detector does with them.

    \b
    Examples:
      lrp4rag redteam --out report
      lrp4rag redteam --kind conflict --policy strict.yaml
      LRP4RAG_TOKEN=… lrp4rag redteam --server https://guard.example --out report
      lrp4rag redteam --min-share 0.6
    """
    from lrp4rag.guard.redteam import load_cases, run
    from lrp4rag.guard.redteam.report import below, record, table
    from lrp4rag.util.progress import track

    cases = load_cases(cases_path, kinds=kinds)
    if out is not None:  # before the expensive part
        _check(out)
    started = time.monotonic()
    with _opened(target, policy_path, choice) as guardrail:
        results = list(track(run(cases, guardrail), len(cases), "cases"))
    run_record = record(results, guardrail, time.monotonic() - started)
    if all(result.answered is None for result in results):
        raise LRP4RAGError(f"no case was judged; the first: {results[0].error}")
    if out is not None:
        _write(out, results, run_record)
    if as_json:
        say_json(run_record)
    else:
        open_console().print(table(run_record))
        failed = sum(not result.passed for result in results)
        where = f": {out / PAGE} has each in full" if out is not None else "; --out FOLDER shows each in full"
        say(f"{failed} of {len(results)} cases are not as expected{where if failed else ''}")
    small = [] if min_share is None else below(run_record, min_share)
    if small:
        say(f"below --min-share {min_share}: {', '.join(small)}", err=True)
        ctx.exit(1)


@contextmanager
def _opened(target: str, policy_path: Path | None, choice: JudgeChoice) -> Iterator[Target]:
    if target != LOCAL:
        if policy_path is not None:
            raise InputError("a server has its own policy; leave --policy out", field="--policy")
        from lrp4rag.guard.redteam.server import ServerTarget

        with ServerTarget(target, os.environ.get(TOKEN)) as server:
            yield server
        return
    from lrp4rag.guard.policy import load_policy
    from lrp4rag.guard.redteam import LocalTarget

    policy = load_policy(policy_path)
    with choice.open() as detector:
        yield LocalTarget(detector, policy)


def _check(out: Path) -> None:
    """Raise `InputError` where the two files cannot be written into the folder, or one of them is read."""
    from lrp4rag.util.files import check_folder

    if check_folder(out).is_dir():
        for name in (RECORD, PAGE):
            check_written(out / name)


def _write(out: Path, results: list[Result], run_record: Record) -> None:
    from lrp4rag.guard.redteam.report import page
    from lrp4rag.util.files import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / RECORD, f"{json.dumps(run_record, indent=1)}\n")
    write_atomically(out / PAGE, page(run_record, results))
