"""Which module has which command, so that only what is run is imported.

A person waits for the start of each command. Together they import servers, clients and
CP-SAT's libraries, of which most need nothing.
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

MODULE_BY_COMMAND = {
    "demo": "demo",
    "plan": "plan",
    "lint": "lint",
    "get": "get",
    "explain": "explain",
    "watch": "watch",
    "console": "web",
    "submit": "gangs",
    "cancel": "gangs",
    "release": "gangs",
    "release-gates": "gates",
    "solves": "solves",
    "replay": "solves",
    "up": "components",
    "solver": "components",
    "publisher": "components",
    "authcallout": "components",
    "agent": "agent",
    "bus": "bus",
    "doctor": "doctor",
}
"""In the order of the help; modules of this package with `register(app)`."""


OTHER_WORDS = {
    "apply": "`moorings submit -f FILE` submits gangs",
    "create": "`moorings submit -f FILE` submits gangs",
    "delete": "`moorings cancel` or `release` ends a gang",
    "describe": "`moorings explain` says why, of a gang or pod/NAME",
    "down": "`moorings up` runs until Ctrl-C",
    "status": "there are `moorings get` and `moorings doctor`",
    "stop": "`moorings up` runs until Ctrl-C",
}
"""What people type who know other tools, and what is meant here."""


class LazyCommands(TyperGroup):
    """The commands above beside those that are there already."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List all names, in the order of the help."""
        return list(dict.fromkeys((*MODULE_BY_COMMAND, *super().list_commands(ctx))))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of a line; words of other tools are answered with ours."""
        if args and (meant := OTHER_WORDS.get(args[0])):
            ctx.fail(f"No such command {args[0]!r}: {meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None: there is none of that name."""
        if cmd_name in MODULE_BY_COMMAND:
            self._import(cmd_name)
        elif cmd_name not in self.commands:
            for name in MODULE_BY_COMMAND:  # to say which one may be meant
                self._import(name)
        return super().get_command(ctx, cmd_name)

    def _import(self, name: str) -> None:
        if name not in self.commands:
            app = typer.Typer()
            import_module(f"moorings.cli.{MODULE_BY_COMMAND[name]}").register(app)
            self.commands.update(get_group(app).commands)
            for command in self.commands.values():
                _join_lines(command)


def _join_lines(command: Any) -> None:
    """Let the terminal break the lines of a help text, not the source."""
    if command.help:
        paragraphs = cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _join_lines(inner)
