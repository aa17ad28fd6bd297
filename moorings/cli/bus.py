"""Commands about the bus itself: what travels there, for people and for programs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from contracts.asyncapi import describe as describe_bus
from contracts.asyncapi import messages_of
from contracts.topics import BLOBS, TOPICS, SubjectFamily, Topic
from moorings.cli.output import Format, show

bus = typer.Typer(
    no_args_is_help=True, help="Describe the bus: its subjects and messages."
)
COLUMNS = ("subject", "stream", "from", "to", "messages")


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(bus, name="bus")


@bus.command()
def describe(
    output: Annotated[
        Format,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="How to print: table, or the AsyncAPI 3 document as yaml or json.",
        ),
    ] = Format.TABLE,
) -> None:
    """Print the subjects and their messages, or an AsyncAPI document; needs no server.

    moorings bus describe -o yaml > moorings.asyncapi.yaml
    """
    rows = [_to_row(family) for family in (*TOPICS, BLOBS)]
    show(describe_bus(version("moorings")), output, COLUMNS, rows)


def _to_row(family: SubjectFamily) -> tuple[str, ...]:
    kinds = messages_of(family) if isinstance(family, Topic) else ()
    return (
        family.pattern,
        family.stream,
        ", ".join(family.senders),
        ", ".join(family.receivers),
        ", ".join(kind.__name__ for kind in kinds) or "bytes",
    )
