"""`CommandGroup`: what every program of the project does with its command line and with errors."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click

from lrp4rag.util.errors import LONGEST, LRP4RAGError
from lrp4rag.util.quiet import QUIET, quiet_libraries
from lrp4rag.util.terminal import tell
from lrp4rag.util.text import clipped, surrogate_in, visible

TRACEBACK = "LRP4RAG_TRACEBACK"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


class CommandGroup(click.Group):
    """A program in sections. It remembers the command as typed, and turns errors into exit codes."""

    sections: Mapping[str, tuple[click.Command, ...]] = MappingProxyType({})
    program: tuple[str, ...] = ("lrp4rag",)

    def add_sections(self, sections: dict[str, tuple[click.Command, ...]]) -> None:
        """Add commands, which the help text lists by section."""
        self.sections = sections
        for commands in sections.values():
            for member in commands:
                self.add_command(member)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for number, word in enumerate(args, start=1):
            if surrogate_in(word) is not None or "\0" in word:
                raise click.UsageError(f"argument {number} is not valid UTF-8: {word!r}", ctx)
        ctx.obj = shlex.join([*self.program, *args])
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        for title, commands in self.sections.items():
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


def prepare_output() -> None:
    """Quiet other libraries, and print "?" for what the terminal's encoding lacks.

    Raises `LRP4RAGError` where standard output is closed.
    """
    if sys.stdout is None:
        raise LRP4RAGError("standard output is closed, and what is printed would be lost; redirect it")
    os.environ[QUIET] = "1"  # for the processes that this one starts
    quiet_libraries()
    # A response may hold what the terminal's encoding lacks; that must not end the work.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
