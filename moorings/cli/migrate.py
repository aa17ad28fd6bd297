"""`moorings migrate`: manifests of older clusters, as a cluster with v1 takes them."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from typing import Annotated

import typer

from contracts.counts import counted
from moorings.cli.documents import read_documents
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Filenames
from moorings.cli.output import notify, write_yaml
from moorings.errors import UsageError
from moorings.migration.migrate import Migration
from moorings.migration.vendor_parameters import convert_parameters


class Version(StrEnum):
    """The version to write."""

    V1 = "v1"


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(migrate)


def migrate(
    filename: Filenames,
    output: Annotated[
        Version,
        typer.Option(
            "--output",
            "-o",
            metavar="VERSION",
            help="Version of resource.k8s.io to write.",
        ),
    ] = Version.V1,
    parameters_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Makes ResourceClaimParameters or ResourceClassParameters of a "
            "vendor's custom resource: JSON in, YAML or JSON out.",
        ),
    ] = "",
) -> None:
    """Write manifests of resource.k8s.io v1alpha2 to v1beta2 as v1 has them, as YAML.

    Pods that name their claims below `source` are changed, too; other objects go
    through as they are, without what a cluster wrote into them. What v1 cannot say is
    named on standard error. Exit 0: everything was said; 3: something could not be.

    moorings migrate -f old/ -o v1 > new.yaml
    """
    del output  # there is one
    command = _split(parameters_command)
    migration = Migration(notify)
    documents = read_documents(filename)
    if command:
        documents = convert_parameters(documents, command)
    written = 0
    for value in migration.migrate(documents):
        sys.stdout.write("---\n" if written else "")
        write_yaml(value)
        written += 1
    notify(f"{counted(written, 'object')} written, {migration.refused} refused")
    raise typer.Exit(ExitCode.ERROR if migration.refused else ExitCode.YES)


def _split(command: str) -> list[str]:
    """Split a command into words, as a shell does.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--parameters-command: {error}") from error
