"""`CommandGroup`: a program of commands that are imported once they are called, and its exit codes."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from lrp4rag.util.errors import LONGEST, LRP4RAGError
from lrp4rag.util.quiet import QUIET, quiet_libraries
from lrp4rag.util.terminal import tell
from lrp4rag.util.text import clipped, surrogate_in, visible

TRACEBACK = "LRP4RAG_TRACEBACK"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command: the line that describes it in the program's help, the extra of the package that it needs,
    and the module that has it under its name, by default `lrp4rag.cli.NAME`."""

    help: str
    extra: str | None = None
    module: str | None = None


class CommandGroup(click.Group):
    """A program whose help lists `sections` of commands, by name, and not its `former` names.

    It remembers the command as typed, and turns errors into exit codes.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, LazyCommand]],
        former: Mapping[str, LazyCommand] | None = None,
        program: tuple[str, ...] = ("lrp4rag",),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections, self.program = sections, program
        self.lazy = {name: command for section in sections.values() for name, command in section.items()}
        self.former = former or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name; return None where there is none."""
        if (lazy := {**self.former, **self.lazy}.get(cmd_name)) is None:
            return None
        command: click.Command = getattr(import_module(lazy.module or f"lrp4rag.cli.{cmd_name}"), cmd_name)
        command.short_help = lazy.help
        return command

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
                formatter.write_dl([(name, command.help) for name, command in commands.items()])

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
            if extra := self._missing_extra(ctx, error):
                tell("Error", f"{error}; this command needs more libraries: pip install 'lrp4rag[{extra}]'")
                ctx.exit(2)
            if os.environ.get(TRACEBACK):
                raise
            tell(
                "Error",
                f"{type(error).__name__}: {error}\nThis may be a bug in lrp4rag: set {TRACEBACK}=1 in the "
                "environment and run the command again to see the traceback.",
            )
            ctx.exit(1)

    def _missing_extra(self, ctx: click.Context, error: Exception) -> str | None:
        """Return the extra to install, where the command failed for a library of it."""
        command = {**self.former, **self.lazy}.get(ctx.invoked_subcommand or "")
        is_own_module = isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("lrp4rag")
        return command.extra if command and isinstance(error, ImportError) and not is_own_module else None


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
