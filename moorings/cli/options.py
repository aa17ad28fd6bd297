"""Options that several commands share, each spelled once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from moorings.cli.output import Format

SERVER_VARIABLE = "MOORINGS_SERVER"

Server = Annotated[
    str,
    typer.Option(
        "--server",
        "-s",
        envvar=SERVER_VARIABLE,
        help="Address of NATS; by default that of the running `moorings up`.",
        show_default=False,
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        help="State folder of `moorings up`, if it was given one.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str, typer.Option(envvar="MOORINGS_CLUSTER", help="Name of the cluster on the bus.")
]
Filenames = Annotated[
    list[str],
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="File, folder or - (standard input); may be repeated.",
        show_default=False,
    ),
]
Output = Annotated[
    Format,
    typer.Option(
        "--output", "-o", metavar="FORMAT", help="How to print: table, json or yaml."
    ),
]
Progress = Annotated[
    bool,
    typer.Option(
        "--progress", help="Show progress on standard error, even without a terminal."
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Ask about these files, as `plan` reads them, not about the cluster on "
        "the bus.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Only in this namespace.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="Kubeconfig of the cluster; default: $KUBECONFIG or ~/.kube/config.",
        show_default=False,
    ),
]
Context = Annotated[
    str, typer.Option(help="Context of the kubeconfig; default: its current one.")
]


def find_kubeconfig(given: Path | None, environ: Mapping[str, str]) -> Path:
    """Choose the kubeconfig as kubectl does; of several files the first."""
    if given is not None:
        return given
    first = environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first) if first else Path.home() / ".kube" / "config"
