"""What the bus lets each of its users do, for the configuration of nats-server."""

from __future__ import annotations

import typer

from moorings.cli.output import console
from runtime.bus.permissions import server_configuration


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(permissions)


def permissions() -> None:
    """Print what nats-server should allow to whom; k8s/base has it already."""
    console.file.write(server_configuration())
