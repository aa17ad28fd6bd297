"""A service as a command: the variables that set it up, and becoming it."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from msgspec import NODEFAULT, Struct, structs
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from authcallout.config import AuthCalloutConfig
from nodeagent.config import NodeAgentConfig
from publisher.config import PublisherConfig
from runtime.settings import ServiceConfig
from solver.service.config import SolverConfig

CONFIGS: dict[str, tuple[str, type[ServiceConfig]]] = {
    "solver": ("SOLVER", SolverConfig),
    "publisher": ("PUBLISHER", PublisherConfig),
    "authcallout": ("AUTHCALLOUT", AuthCalloutConfig),
    "agent": ("NODEAGENT", NodeAgentConfig),
}
"""By command, how its variables begin and what they are."""
_INDENT = 4


class Variable(Struct, frozen=True, kw_only=True):
    """A variable of a service."""

    name: str
    text: str
    """Its help."""
    default: str | None
    """As it would be written; None: it is needed."""

    @property
    def note(self) -> str:
        """Its default, as help shows that of an option."""
        if self.default is None:
            return "[required]"
        return f"[default: {self.default}]" if self.default else ""


class ServiceCommand(TyperCommand):
    """A command whose help lists the variables of its service."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, and the variables below."""
        super().format_help(ctx, formatter)
        print_variables(*CONFIGS[str(self.name)])


class ServiceGroup(TyperGroup):
    """A group of commands that is such a command itself."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, and the variables below."""
        super().format_help(ctx, formatter)
        print_variables(*CONFIGS[str(self.name)])


def list_variables(prefix: str, config: type[Struct]) -> Iterator[Variable]:
    """List the variables of a service: the docstring of each field says what it is."""
    texts = _read_texts(config)
    for field in structs.fields(config):
        yield Variable(
            name=f"{prefix}_{field.name.upper()}",
            text=texts.get(field.name, ""),
            default=_write_default(field.default),
        )


def print_variables(prefix: str, config: type[Struct]) -> None:
    """Print variables as help has options: each with what it is and its default."""
    parts: list[Text | Padding] = []
    for each in list_variables(prefix, config):
        text = Text(f"{each.text} ".lstrip())
        text.append(each.note, style="dim")
        parts += Text(each.name, style="bold cyan"), Padding(text, (0, 0, 0, _INDENT))
    panel = Panel(
        Group(*parts), title="Variables", title_align="left", border_style="dim"
    )
    Console(highlight=False).print(panel)


def run_module(module: str) -> None:
    """Become a service: this process is no command line any more."""
    os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606  # our own module


def _read_texts(config: type[Struct]) -> dict[str, str]:
    """Return the docstring below each field of a class and its bases."""
    texts: dict[str, str] = {}
    for kind in reversed(config.__mro__):
        if kind in (object, Struct) or not issubclass(kind, Struct):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
        lines = [line for each in tree.body for line in getattr(each, "body", ())]
        for field, below in pairwise(lines):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split())
                case _:
                    pass
    return texts


def _write_default(default: Any) -> str | None:
    """Write a default as a variable has it."""
    if default is NODEFAULT:
        return None
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default)
