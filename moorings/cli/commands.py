"""Commands by module, with summaries for lists: only what runs is imported.

A person waits for the start of each command. Together they import servers, clients and
CP-SAT's libraries, of which most need nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from moorings.cli.config import read_config
from moorings.errors import BadInputError


class Listed(NamedTuple):
    """A command as lists show it, without importing its module."""

    module: str
    """In this package, with `register(app)`."""
    summary: str
    """The first paragraph of its help, as lists show it."""


COMMANDS = {
    "demo": Listed(
        "demo",
        "Run the whole job on this machine: start, submit, decide, explain, replay.",
    ),
    "plan": Listed(
        "plan",
        "Decide offline which devices pods, claims and gangs would get.",
    ),
    "what-if": Listed(
        "what_if",
        "Forecast decisions if gangs came or ended, nodes, devices or quotas changed.",
    ),
    "defragment": Listed(
        "defragment",
        "Plan the fewest gangs to move so that whole nodes are free, or a gang fits.",
    ),
    "simulate": Listed(
        "simulate",
        "Simulate the jobs of a trace on a fleet: waits, utilisation, promises.",
    ),
    "lint": Listed(
        "lint",
        "Find mistakes in classes, slices, claims and gangs before they fail at "
        "run time.",
    ),
    "migrate": Listed(
        "migrate",
        "Write manifests of resource.k8s.io v1alpha2 to v1beta2 as v1 has them, as "
        "YAML.",
    ),
    "get": Listed(
        "get",
        "Show gangs, pods with devices, queues, nodes, devices, or recorded solves.",
    ),
    "explain": Listed(
        "explain",
        "Show where a gang is and which devices it has, or why it waits.",
    ),
    "describe": Listed(
        "describe",
        "Show a gang, pod, queue, node, device or solve in full.",
    ),
    "watch": Listed(
        "watch", "Follow decisions and what becomes of them, until Ctrl-C."
    ),
    "console": Listed(
        "web", "Serve a web page of the fleet, its gangs and solves, until Ctrl-C."
    ),
    "submit": Listed(
        "gangs",
        "Submit gangs; with --wait, exit 0 only when all of them are allocated.",
    ),
    "cancel": Listed(
        "gangs", "Cancel gangs that are no longer wanted, allocated or not."
    ),
    "release": Listed(
        "gangs", "Release gangs whose work is done; their devices become free."
    ),
    "release-gates": Listed(
        "gates",
        "Open the scheduling gates of pods without deciding for them, to remove "
        "Moorings.",
    ),
    "solves": Listed("solves", "List, show and export recorded solves."),
    "replay": Listed(
        "solves",
        "Solve a recorded input again and compare bytes; exit 0 only when they agree.",
    ),
    "up": Listed("components", "Run the whole stack on this machine until Ctrl-C."),
    "solver": Listed(
        "components",
        "Run the solver until SIGTERM, configured by environment variables.",
    ),
    "publisher": Listed(
        "components",
        "Run the publisher until SIGTERM, configured by environment variables.",
    ),
    "authcallout": Listed(
        "components",
        "Run the auth callout of NATS until SIGTERM, configured by environment "
        "variables.",
    ),
    "agent": Listed(
        "agent",
        "Run the node agent until SIGTERM, configured by environment variables; "
        "or one of its commands, for a node of a cluster.",
    ),
    "bus": Listed("bus", "Describe the bus: its subjects and messages."),
    "doctor": Listed(
        "doctor",
        "Check a cluster, a bus, or both; each problem comes with a remedy.",
    ),
    "permissions": Listed(
        "about",
        "Print the permissions of each bus user for nats-server, as k8s/base has them.",
    ),
    "completion": Listed(
        "completion", "Print the completion script of a shell: bash, zsh or fish."
    ),
    "man": Listed("man", "Write the manual pages of all commands into a folder."),
    "version": Listed("about", "Show the versions that an answer's bytes depend on."),
}
"""In the order of the help."""


OTHER_WORDS = {
    "apply": "use `moorings submit -f FILE`",
    "create": "use `moorings submit -f FILE`",
    "delete": "use `moorings cancel` or `moorings release`",
    "down": "stop `moorings up` with Ctrl-C",
    "status": "use `moorings get` or `moorings doctor`",
    "stop": "stop `moorings up` with Ctrl-C",
}
"""Commands of other tools, and ours to use instead."""


class LazyCommands(TyperGroup):
    """The commands above, each imported only when it runs."""

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
            _configure(ctx, args[0], self.load(args[0]))
            if ctx.obj is not None:
                ctx.obj()
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> Any:
        """Import a command, if that was not done before, and return it."""
        module = COMMANDS[name].module
        if module not in self._modules:
            self._modules.add(module)
            app = typer.Typer()
            import_module(f"moorings.cli.{module}").register(app)
            commands = get_group(app).commands
            for command in commands.values():
                _join_lines(command)
            self.commands.update(commands)
        return self.commands[name]


def _configure(ctx: Any, name: str, command: Any) -> None:
    """Let options of a command be by default what the configuration file says.

    A line that is completed, or asks for help, needs none that can be read.
    """
    inner: dict[str, Any] = getattr(command, "commands", {})
    params = [each.name for one in (command, *inner.values()) for each in one.params]
    if "server" not in params and "state_dir" not in params:
        return
    try:
        options = read_config().options
    except BadInputError:
        if ctx.resilient_parsing or {"--help", "-h"} & {*sys.argv[1:]}:
            return
        raise
    ctx.default_map = {name: {**options, **dict.fromkeys(inner, options)}}


def _join_lines(command: Any) -> None:
    """Let the terminal break the lines of a help text, not the source."""
    if command.help:
        paragraphs = cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _join_lines(inner)
