"""Commands that show at most a dozen options with `--help`, and all of them with `--help-all`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from lrp4rag.util.terminal import say

MOST = 12
"""Options that `--help` shows, `--help` and `--help-all` not counted."""
_ALL = "lrp4rag.help_all"


SYNONYMS = {
    **dict.fromkeys(("--model", "--llm"), ("--reader",)),
    **dict.fromkeys(("--context", "--contexts", "--document", "--source"), ("--passage",)),
    "--answer": ("--response",),
    "--query": ("--question",),
    "--classifier": ("--detector",),
    "--threshold": ("--operating-point", "--false-positive-rate"),
    "--rules": ("--composite",),
    "--precision": ("--dtype",),
    "--truncation": ("--truncate",),
    "--gpu": ("--device",),
}
"""What others call an option: no spelling tells what is meant."""


class Advanced(click.Option):
    """An option that few need: a command with more than a dozen options shows it with `--help-all` only."""


class Renamed(click.Option):
    """An option that help shows by its first name; the others are former spellings, which still work."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


class Command(click.Command):
    """A command with `--help-all`, where it has options to hide. One that `resumes` says so where it is
    interrupted."""

    def __init__(self, *args: Any, resumes: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._resumes = resumes
        options = [param for param in self.params if isinstance(param, click.Option) and not param.hidden]
        advanced = [param for param in options if isinstance(param, Advanced)]
        self.hidden_options = advanced if len(options) > MOST else []
        if self.hidden_options:
            help_all = partial(click.Option, is_flag=True, is_eager=True, expose_value=False)
            self.params.append(
                help_all(["--help-all"], callback=_show_all, help="Show all options and exit.")
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = {name for param in self.params for name in param.opts}
            meant = [name for name in SYNONYMS.get(error.option_name, ()) if name in names]
            if meant := meant or sorted(name for name in names if name.startswith(error.option_name)):
                vars(error)["possibilities"] = meant
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if self._resumes:
                say("\nStopped. The same command goes on from here.", err=True)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        hidden = [] if ctx.meta.get(_ALL) else self.hidden_options
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        with formatter.section("Options"):
            records = (option.get_help_record(ctx) for option in options if option not in hidden)
            formatter.write_dl([record for record in records if record])
        if hidden:
            with formatter.section("More"):
                formatter.write_text(f"{len(hidden)} more options: {ctx.command_path} --help-all")


def _show_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


command = partial(click.command, cls=Command)
advanced = partial(click.option, cls=Advanced)
