"""`moorings version` and `moorings permissions`: what is installed, and its rights."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from moorings.cli.options import Output
from moorings.cli.output import Format, console, show
from runtime.bus.permissions import server_configuration
from solver.versions import dependency_versions, platform_tag


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(permissions)
    app.command()(version)


def permissions(
    tokens: Annotated[
        bool,
        typer.Option(
            help="Let users without a password show a Kubernetes token; needs the "
            "auth callout."
        ),
    ] = False,
) -> None:
    """Print the permissions of each bus user for nats-server, as k8s/base has them."""
    console.file.write(server_configuration(tokens=tokens))


def version(
    output: Output = Format.TABLE,
) -> None:
    """Show the versions that an answer's bytes depend on."""
    versions = {
        "moorings": installed_version("moorings"),
        **dependency_versions(),
        "platform": platform_tag(),
    }
    show(versions, output, ("what", "version"), versions.items())
