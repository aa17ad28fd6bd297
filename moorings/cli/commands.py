"""Which module has which command, and what lists say of it: only what runs is imported.

A person waits for the start of each command. Together they import servers, clients and
CP-SAT's libraries, of which most need nothing.
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


class Listed(NamedTuple):
    """What is known of a command without its module."""

    module: str
    """In this package, with `register(app)`."""
    summary: str
    """The first paragraph of its help, as lists show it."""


COMMANDS = {
    "demo": Listed(
        "demo",
        "Stack up, gangs submitted, decided, written, explained, replayed, stack down.",
    ),
    "plan": Listed(
        "plan",
        "Decide offline what the pods, claims and gangs of some objects would get.",
    ),
    "lint": Listed(
        "lint",
        "Find what in classes, slices, claims and gangs would only fail at run time.",
    ),
    "get": Listed(
        "get", "Show gangs, pods that have devices, nodes, devices, or recorded solves."
    ),
    "explain": Listed(
        "explain",
        "Say where a gang is and what it has, or why it waits and what was counted.",
    ),
    "watch": Listed(
        "watch", "Follow what is decided and written as it happens, until Ctrl-C."
    ),
    "console": Listed(
        "web", "Serve a web page of the fleet, its gangs and solves until Ctrl-C."
    ),
    "submit": Listed(
        "gangs",
        "Submit gangs; with --wait, exit 0 only when all of them are allocated.",
    ),
    "cancel": Listed(
        "gangs", "Say that a gang is not wanted any more, allocated or not."
    ),
    "release": Listed(
        "gangs", "Say that a gang's work is done; its devices are free again."
    ),
    "release-gates": Listed(
        "gates",
        "Open the scheduling gate of pods without deciding for them, as Moorings goes.",
    ),
    "solves": Listed("solves", "Recorded solves: the input of each."),
    "replay": Listed(
        "solves",
        "Solve a recorded input again and compare bytes; exit 0 only when they agree.",
    ),
    "up": Listed("components", "Run the whole stack on this machine until Ctrl-C."),
    "solver": Listed(
        "components",
        "Run the solver in this process until SIGTERM; set up by variables.",
    ),
    "publisher": Listed(
        "components",
        "Run the publisher in this process until SIGTERM; set up by variables.",
    ),
    "authcallout": Listed(
        "components",
        "Run the auth callout of NATS in this process until SIGTERM; set up by "
        "variables.",
    ),
    "agent": Listed(
        "agent",
        "Run the node agent in this process until SIGTERM, set up by variables; or one "
        "of its commands, which are about a node of a cluster.",
    ),
    "bus": Listed("bus", "The bus: what travels on which subjects."),
    "doctor": Listed(
        "doctor",
        "Check a cluster, a bus, or both: each line ok, warn or fail, why, what to do.",
    ),
    "permissions": Listed(
        "about", "Print what nats-server should allow to whom; k8s/base has it already."
    ),
    "version": Listed("about", "Show the versions that an answer's bytes depend on."),
}
"""In the order of the help."""


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
    """The commands above: lists show what is said there, a line imports its own."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for name, listed in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=listed.summary)
        self._modules = set[str]()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command of a line; words of other tools are answered with ours.

        `ctx.obj`, if any, is called before anything of the command runs.
        """
        if args and (meant := OTHER_WORDS.get(args[0])):
            ctx.fail(f"No such command {args[0]!r}: {meant}")
        if args and args[0] in COMMANDS:
            self._import(COMMANDS[args[0]].module)
            if ctx.obj is not None:
                ctx.obj()
        return super().resolve_command(ctx, args)

    def _import(self, module: str) -> None:
        if module not in self._modules:
            self._modules.add(module)
            app = typer.Typer()
            import_module(f"moorings.cli.{module}").register(app)
            commands = get_group(app).commands
            for command in commands.values():
                _join_lines(command)
            self.commands.update(commands)


def _join_lines(command: Any) -> None:
    """Let the terminal break the lines of a help text, not the source."""
    if command.help:
        paragraphs = cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _join_lines(inner)
