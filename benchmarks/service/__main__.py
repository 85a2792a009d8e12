"""`python -m benchmarks.service COMMAND`: the guardrail as clients meet it."""

from __future__ import annotations

from importlib import import_module

import click

from benchmarks.command import SETTINGS

COMMANDS = {
    "load": ("streams", "capacity", "overload", "soak"),
    "faults": ("kill", "faults", "vanishing"),
    "hostile": ("fuzz", "canaries"),
    "page": ("page",),
}
"""By module: each needs other libraries."""
MODULES = {command: module for module, commands in COMMANDS.items() for command in commands}


class Commands(click.Group):
    """Commands whose modules are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        command: click.Command = getattr(import_module(f"benchmarks.service.{MODULES[cmd_name]}"), cmd_name)
        command.name = cmd_name
        return command


@click.group(cls=Commands, context_settings=SETTINGS)
def main() -> None:
    """What the guardrail promises, measured; each with --quick for a small run."""


if __name__ == "__main__":
    main()
