"""The command line. Commands parse, call one function and print what it returned.

Nothing heavy is imported here or at the top of the command modules, so `--help` is instant.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import shlex
import sys
from typing import Any

import click

from lrp4rag import __version__
from lrp4rag.cli.analyse import analyse
from lrp4rag.cli.attribute import attribute
from lrp4rag.cli.audit import audit
from lrp4rag.cli.card import card
from lrp4rag.cli.check import check
from lrp4rag.cli.corrupt import corrupt
from lrp4rag.cli.drift import drift
from lrp4rag.cli.evaluate import evaluate
from lrp4rag.cli.extract import extract
from lrp4rag.cli.feedback import feedback
from lrp4rag.cli.generate import generate
from lrp4rag.cli.redteam import redteam
from lrp4rag.cli.review import review
from lrp4rag.cli.route import policy_group, route
from lrp4rag.cli.serve import serve
from lrp4rag.cli.store import store
from lrp4rag.cli.train import train
from lrp4rag.errors import LONGEST, LRP4RAGError
from lrp4rag.quiet import QUIET, quiet_libraries
from lrp4rag.terminal import tell
from lrp4rag.text import clipped, surrogate_in, visible

TRACEBACK = "LRP4RAG_TRACEBACK"

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Use": (analyse, generate, attribute),
    "Train": (train, evaluate, extract, store, corrupt),
    "Guard": (route, policy_group, redteam, serve, audit, review, feedback, drift),
    "Inspect": (card, check),
}
# By name: the product does not import its research.
RESEARCH = {"experiments": "lrp4rag.experiments.cli"}


class _Group(click.Group):
    """Remembers the command as it was given, and turns errors into a message and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for number, word in enumerate(args, start=1):
            if surrogate_in(word) is not None or "\0" in word:
                raise click.UsageError(f"argument {number} is not valid UTF-8: {word!r}", ctx)
        ctx.obj = shlex.join(["lrp4rag", *args])
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *RESEARCH]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RESEARCH:
            group: click.Group = importlib.import_module(RESEARCH[cmd_name]).experiments
            return group
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in sections."""
        sections = {title: [*commands] for title, commands in SECTIONS.items()}
        sections["Research"] = [found for name in RESEARCH if (found := self.get_command(ctx, name))]
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl([(one.name or "", one.get_short_help_str(100)) for one in commands])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:  # click shows it, with what the user typed
            vars(error)["message"] = visible(clipped(error.message, LONGEST))
            raise
        except LRP4RAGError as error:
            tell("Error", error)
            ctx.exit(error.exit_code)
        except OSError as error:  # files: permissions, full disks, folders where files should be
            if error.errno == errno.EPIPE:
                raise
            named = error.filename and error.strerror
            tell("Error", f"{error.filename}: {error.strerror}" if named else error)
            ctx.exit(1)
        except (click.exceptions.Exit, click.exceptions.Abort):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            tell(
                "Error",
                f"{type(error).__name__}: {error}\nThis may be a bug in lrp4rag: set {TRACEBACK}=1 in the "
                "environment and run the command again to see the traceback.",
            )
            ctx.exit(1)


@click.group(
    name="lrp4rag",
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Exit codes: 0 done, 1 failure, 2 bad usage or input, 3 hallucination (if asked) or drift found, "
    "4 worse than a baseline (on request).",
)
@click.version_option(__version__, package_name="lrp4rag")
def main() -> None:
    """Detect hallucinations in retrieval-augmented generation, white-box.

    lrp4rag replays a response through a language model (the reader), propagates relevance from the
    response's logits to the prompt's tokens, and says with evidence whether the response is grounded in
    the retrieved passages.

    \b
    Start with:
      lrp4rag analyse examples/hallucinated.json --html page.html
    """
    if sys.stdout is None:
        raise LRP4RAGError("standard output is closed, and what is printed would be lost; redirect it")
    os.environ[QUIET] = "1"  # for the processes that this one starts
    quiet_libraries()
    # A response may hold what the terminal's encoding lacks; that must not end the work.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


for command in (command for commands in SECTIONS.values() for command in commands):
    main.add_command(command)
