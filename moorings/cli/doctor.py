"""`moorings doctor`: what is wrong with a cluster or a bus, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from contracts.counts import counted
from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import (
    SERVER_VARIABLE,
    Cluster,
    Context,
    Kubeconfig,
    Output,
    Server,
    StateDir,
    find_kubeconfig,
)
from moorings.cli.output import Format, say, show, show_progress
from moorings.doctor.diagnose import diagnose
from moorings.doctor.facts import LOCAL_STACK, BusFacts, Unread
from moorings.doctor.findings import Diagnosis, Level
from moorings.errors import BadInputError, LocalStackError, UsageError
from moorings.local.cluster import NAMESPACE, read_access
from moorings.local.state import find_stack, find_state_home
from moorings.observing.bus import observe_bus
from moorings.observing.cluster import observe_cluster, read_scheduler_config


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(doctor)


def doctor(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    system: Annotated[
        str, typer.Option("--system-namespace", help="Where Moorings is installed.")
    ] = NAMESPACE,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Namespace in which to check your own rights."
        ),
    ] = "default",
    scheduler_config: Annotated[
        Path | None,
        typer.Option(
            help="A copy of kube-scheduler's configuration, which no API serves.",
            show_default=False,
        ),
    ] = None,
    monitor: Annotated[
        str,
        typer.Option(
            envvar="MOORINGS_MONITOR",
            help="Monitoring port of a nats-server, https://HOST:8222.",
        ),
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 for warnings, too.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Check a cluster, a bus, or both; each problem comes with a remedy.

    Checks the cluster of the kubeconfig, if there is one, and the bus of --server or of
    the running `moorings up`, and changes nothing. Exit 0: no failure; 1: a failure
    (with --strict also a warning). docs/doctor.md explains each check.

    moorings doctor --kubeconfig admin.kubeconfig --server nats://localhost:4222
    """
    file = find_kubeconfig(kubeconfig, os.environ)
    access = None
    if kubeconfig is not None or context or file.exists():
        access = read_access(file, context)
    asks_bus = bool(server) or state_dir is not None or _is_stack_up()
    if access is None and not asks_bus:
        raise UsageError(
            "doctor: nothing to check: give --kubeconfig, --server "
            f"(${SERVER_VARIABLE}), or both"
        )
    config = (
        None if scheduler_config is None else read_scheduler_config(scheduler_config)
    )

    async def run() -> Diagnosis:
        observed = None
        if access is not None:
            observed = await observe_cluster(
                access, system=system, namespace=namespace, scheduler_config=config
            )
        bus = None
        if asks_bus:
            bus = await _observe_bus(server, state_dir, cluster, monitor)
        return diagnose(
            observed, bus, now_s=time.time(), own_version=version("moorings")
        )

    with show_progress("checking"):
        result = asyncio.run(run())
    if output is Format.TABLE:
        _print_diagnosis(result)
    else:
        show(result, output, (), ())
    is_bad = result.failures or (strict and result.warnings)
    raise typer.Exit(ExitCode.NO if is_bad else ExitCode.YES)


def _is_stack_up() -> bool:
    try:
        find_stack(find_state_home())
    except LocalStackError:
        return False
    return True


async def _observe_bus(
    server: str, state_dir: Path | None, cluster: str, monitor: str
) -> BusFacts | Unread:
    """Observe the bus; why it cannot be read is a finding like any other."""
    ca_file = os.environ.get("MOORINGS_BUS_CA_FILE", "")
    try:
        if not server:
            stack = find_stack(state_dir or find_state_home())
            monitor = monitor or stack.monitor
        async with connect(server, state_dir, cluster) as client:
            return await observe_bus(client, server or LOCAL_STACK, monitor, ca_file)
    except (BadInputError, LocalStackError) as error:
        return Unread(str(error))


def _print_diagnosis(result: Diagnosis) -> None:
    """Print a line a check, and below what is not ok what to do about it."""
    width = max(len(line.check) for line in result.checks)
    for line in result.checks:
        text = f"{line.level:<5} {line.check:<{width}}  {line.why}"
        say(text, bold=line.level is Level.FAIL)
        if line.remedy:
            say(f"{'':<6}{'':<{width}}  -> {line.remedy}")
    failures = counted(result.failures, "failure")
    warnings = counted(result.warnings, "warning")
    say(f"{counted(len(result.checks), 'check')}: {failures}, {warnings}")
