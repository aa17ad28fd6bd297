"""`moorings agent`: runs the node agent; its commands are about one node of a cluster.

These speak with the API server as the person who runs them, and need no agent there.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moorings.cli.drain import drain
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Context, Kubeconfig, Output, find_kubeconfig
from moorings.cli.output import Format, notify, say, show
from moorings.cli.services import ServiceGroup, run_module
from moorings.errors import UnknownNameError, UsageError
from moorings.local.cluster import open_api, read_access
from nodeagent.advertise.advertiser import write_advertisement
from nodeagent.advertise.plan import (
    PERSON_MANAGER,
    AdvertisementPlan,
    plan_advertisement,
)
from nodeagent.advertise.resources import check_name, read_resources
from nodeagent.errors import AdvertisementError, ExtendedResourceError
from nodeagent.sources.source_file import make_schema
from runtime.kube.errors import ConflictError, NotFoundError
from runtime.kube.kinds import NODE

if TYPE_CHECKING:  # the client comes with an extra
    from runtime.kube.api import KubernetesApi

COLUMNS = ("node", "resource", "before", "after")
_ATTEMPTS = 5
_FORCE = "; --force overwrites it, until that writer writes it again"

Node = Annotated[str, typer.Argument(metavar="NODE", show_default=False)]
Force = Annotated[
    bool, typer.Option("--force", help="Also overwrite what others offer there.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


def register(app: typer.Typer) -> None:
    """Add this group of commands to the app."""
    group = typer.Typer(invoke_without_command=True, cls=ServiceGroup)
    text = (
        "Run the node agent until SIGTERM, configured by environment variables; "
        "or one of its commands, for a node of a cluster."
    )
    group.callback(help=text)(run)
    group.command()(advertise)
    group.command()(withdraw)
    group.command()(drain)
    group.command()(schema)
    app.add_typer(group, name="agent")


def run(context: typer.Context) -> None:
    """Become the node agent, unless a command is given."""
    if context.invoked_subcommand is None:
        run_module("nodeagent")


def schema() -> None:
    """Print the JSON schema of the sources file (NODEAGENT_SOURCES)."""
    sys.stdout.write(json.dumps(make_schema(), indent=2) + "\n")


def advertise(
    node: Node,
    resources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=COUNT",
            help="Resource and whole number that the node offers.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="NAME",
            help="Stop offering this resource; may be repeated.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """Offer extended resources on a node, in its status.capacity and allocatable.

    Pods request them as they request CPU, and kube-scheduler counts them. Running pods
    keep theirs when the number goes down.

    moorings agent advertise worker-1 example.com/dongle=4
    """
    if not (resources or remove):
        form = "NAME=COUNT, such as example.com/dongle=4, or --remove NAME"
        raise UsageError(f"advertise: give {form}")
    wanted = _read_wanted(resources or (), remove or ())
    _change_node(
        find_kubeconfig(kubeconfig, os.environ),
        context,
        node,
        wanted,
        remove or (),
        output,
        force=force,
        dry_run=dry_run,
    )


def withdraw(
    node: Node,
    resources: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Resources that the node stops offering.",
            show_default=False,
        ),
    ],
    force: Force = False,
    dry_run: DryRun = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """Remove extended resources from a node's status; running pods keep theirs."""
    _change_node(
        find_kubeconfig(kubeconfig, os.environ),
        context,
        node,
        _read_wanted((), resources),
        resources,
        output,
        force=force,
        dry_run=dry_run,
    )


def _read_wanted(resources: Iterable[str], withdrawn: Iterable[str]) -> dict[str, int]:
    """Read what is to be there, and check the names of what is not.

    Raises:
        UsageError: one of them breaks a rule, or is to be there and not.
    """
    try:
        wanted = read_resources(resources)
        for name in withdrawn:
            check_name(name)
            if name in wanted:
                raise UsageError(f"advertise: {name} has both a count and --remove")
    except ExtendedResourceError as error:
        raise UsageError(str(error)) from error
    return wanted


def _change_node(
    kubeconfig: Path,
    context: str,
    node: str,
    wanted: Mapping[str, int],
    withdrawn: Iterable[str],
    output: Format,
    *,
    force: bool,
    dry_run: bool,
) -> None:
    """Change a node, and show what was there and what is."""
    access = read_access(kubeconfig, context)
    names = tuple(withdrawn)

    async def change() -> AdvertisementPlan:
        async with open_api(access, PERSON_MANAGER) as api:
            return await _write_plan(api, node, wanted, names, force=force, dry=dry_run)

    plan = asyncio.run(change())
    rows = [(node, name, plan.before[name], plan.after[name]) for name in plan.before]
    value = {"node": node, "dryRun": dry_run, "before": plan.before}
    show(
        {**value, "after": plan.after, "changed": bool(plan.operations)},
        output,
        COLUMNS,
        ([cell if cell is not None else "<none>" for cell in row] for row in rows),
    )
    if output is Format.TABLE and not plan.operations:
        say("nothing to change")
    elif dry_run:
        notify("nothing was changed: --dry-run")
    raise typer.Exit(ExitCode.YES)


async def _write_plan(
    api: KubernetesApi,
    name: str,
    wanted: Mapping[str, int],
    withdrawn: tuple[str, ...],
    *,
    force: bool,
    dry: bool,
) -> AdvertisementPlan:
    """Write what is planned on the Node as it is now, however often it changes.

    Raises:
        UnknownNameError: there is no such Node.
        UsageError: somebody else offers one of the resources there.
        KubernetesError: the API server refuses it, or does not answer.
    """
    attempts_left = _ATTEMPTS
    while True:
        attempts_left -= 1
        try:
            node = await api.get(NODE, name)
        except NotFoundError as error:
            raise UnknownNameError("node", name, await _find_near(api, name)) from error
        try:
            plan = plan_advertisement(
                node, wanted, withdrawn, manager=PERSON_MANAGER, force=force
            )
        except AdvertisementError as error:
            raise UsageError(f"{error}{_FORCE}") from error
        if dry or not plan.operations:
            return plan
        try:
            await write_advertisement(api, node, plan)
        except ConflictError:
            if not attempts_left:
                raise
        else:
            return plan


async def _find_near(api: KubernetesApi, name: str) -> list[str]:
    """Find nodes with similar names."""
    page = await api.list_page(NODE)
    names = [str(item["metadata"]["name"]) for item in page.items or ()]
    return difflib.get_close_matches(name, names)
