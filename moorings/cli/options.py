"""Options that several commands share, each spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

from moorings.cli.output import Format
from moorings.local.stack import find_running_server

DEFAULT_SERVER = "nats://127.0.0.1:4222"

Server = Annotated[
    str,
    typer.Option(
        "--server",
        "-s",
        envvar="MOORINGS_SERVER",
        help="Address of NATS; by default that of the running `moorings up`.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str, typer.Option(envvar="MOORINGS_CLUSTER", help="Which cluster's gangs.")
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Only in this namespace.")
]
GangName = Annotated[
    str,
    typer.Argument(help="Name, namespace/name or uid of a gang.", show_default=False),
]


def choose_server(server: str) -> str:
    """Choose the server: given, that of the running stack, or the default."""
    return server or find_running_server() or DEFAULT_SERVER
