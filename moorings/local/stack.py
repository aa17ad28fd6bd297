"""The whole stack on this machine: nats-server, node agent, solver, publisher.

Owns child processes, a state folder and a state file by which the command line finds
the stack. Ports are chosen freely and everything binds to loopback. A component that
ends is started again a few times; what it last said is shown when it does not stay up.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from contracts.claim import ResourceClaimTemplate
from contracts.codec import to_builtins
from contracts.ids import object_key
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import ObjectObserved
from contracts.topics import FENCE, STATE
from moorings.client import Client, open_client
from moorings.errors import LocalStackError
from moorings.local.cluster import ClusterAccess, wait_leading
from moorings.local.fleets import find_fleet, make_classes
from moorings.local.nats_server import open_local_nats
from moorings.local.process import ChildProcess
from runtime.waits import first_of
from runtime.wire import Outgoing

RESTARTS = 3
READY_S = 60.0
STATE_FILE = "stack.json"


def find_state_home() -> Path:
    """Return where stacks keep their state unless told otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "moorings"


def find_running_server(folder: Path | None = None) -> str | None:
    """Find the server of a running stack."""
    file = (folder or find_state_home()) / STATE_FILE
    try:
        state = json.loads(file.read_text())
        os.kill(int(state["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(state["server"])


class Component:
    """One service of the stack in a process of its own; its log goes to a file."""

    def __init__(self, module: str, folder: Path) -> None:
        self.name = module
        self._command = [sys.executable, "-m", module]
        self._variables: dict[str, str] = {}
        self._process = ChildProcess(folder / f"{module}.log")
        self._restarts = 0

    def start(self, variables: Mapping[str, str]) -> None:
        """Start the process, with these variables besides our own."""
        self._variables = dict(variables)
        self._process.start(self._command, {**_clean_environment(), **self._variables})

    def tend(self) -> bool:
        """Start it again if it ended; True: it had.

        Raises:
            LocalStackError: it ended too often.
        """
        if not self._process.has_ended:
            return False
        if self._restarts >= RESTARTS:
            raise LocalStackError(
                self.name, f"ended too often\n{self.read_last_words()}"
            )
        self._restarts += 1
        self.start(self._variables)
        return True

    def read_last_words(self, lines: int = 5) -> str:
        """Read the end of its log."""
        return self._process.read_last_words(lines)

    def stop(self) -> None:
        """End it: asked first, forced after some seconds."""
        self._process.stop()


def _clean_environment() -> dict[str, str]:
    """Return our variables without those that would set a service up."""
    prefixes = ("NODEAGENT_", "SOLVER_", "PUBLISHER_")
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}


class StackOptions(Struct, frozen=True, kw_only=True):
    """What a stack runs, and for which cluster."""

    folder: Path
    """Where its state and logs are."""
    fleet: str = ""
    """Of simulated nodes; empty: none."""
    manifests: Path | None = None
    """Where decisions are written if not to a cluster; None: in `folder`."""
    cluster: ClusterAccess | None = None
    cluster_id: str = ""
    """What tells the cluster from others: each has its own data of the bus, so that no
    cluster is given what another has, or what was simulated without one."""
    owned: dict[str, tuple[str, ...]] = {}
    """What is decided for, by variable of the publisher; what is empty means all."""
    objects: tuple[WritableObject, ...] = ()
    """What a cluster would hold where there is none: classes, templates, taint rules.
    Each driver of the fleet has a class besides."""


class LocalStack:
    """What runs, where, and how to reach it."""

    def __init__(self, options: StackOptions) -> None:
        self.folder = folder = options.folder
        self.fleet = find_fleet(options.fleet) if options.fleet else None
        self.manifests = options.manifests or folder / "manifests"
        self.faults = folder / "faults.yaml"
        self.server = ""
        self.publisher_name = f"up-{socket.gethostname()}-{os.getpid()}"
        self._options = options
        self.agent = Component("nodeagent", folder)
        self.publisher = Component("publisher", folder)
        self.solver = Component("solver", folder)

    @property
    def components(self) -> tuple[Component, ...]:
        """Every service, in the order of their start."""
        services = (self.publisher, self.solver)
        return services if self.fleet is None else (self.agent, *services)

    def start(self, server: str) -> None:
        """Start all components against a server."""
        self.server = server
        if self.fleet is not None:
            self.faults.write_text("faults: []\n")
            self.agent.start(
                {
                    "NODEAGENT_SERVERS": server,
                    "NODEAGENT_FLEET": str(self.fleet),
                    "NODEAGENT_FAULTS_FILE": str(self.faults),
                }
            )
        self.publisher.start(
            {"PUBLISHER_SERVERS": server, **self._make_sink_variables()}
        )
        self.solver.start(
            {"SOLVER_SERVERS": server, "SOLVER_NAME": "local", "SOLVER_LEASE_S": "5"}
        )
        state = {"server": server, "pid": os.getpid()}
        (self.folder / STATE_FILE).write_text(json.dumps(state))

    def _make_sink_variables(self) -> dict[str, str]:
        """Make the variables that say where the publisher writes, and what it owns."""
        cluster = self._options.cluster
        if cluster is None:
            return {"PUBLISHER_FOLDER": str(self.manifests)}
        owned = {
            variable: ",".join(names)
            for variable, names in self._options.owned.items()
            if names
        }
        return {
            "PUBLISHER_NAME": self.publisher_name,
            "PUBLISHER_KUBECONFIG": str(cluster.kubeconfig),
            "PUBLISHER_CONTEXT": cluster.context,
            **owned,
        }

    def stop(self) -> None:
        """Stop all components."""
        for component in reversed(self.components):
            component.stop()
        (self.folder / STATE_FILE).unlink(missing_ok=True)

    async def tend(self, stop: asyncio.Event) -> AsyncIterator[str]:
        """Watch over the components until `stop`; yields the names of those restarted.

        Raises:
            LocalStackError: one does not stay up.
        """
        while not stop.is_set():
            for component in self.components:
                if component.tend():
                    yield component.name
            await first_of(stop, within_s=0.5)


@asynccontextmanager
async def open_stack(
    options: StackOptions,
) -> AsyncIterator[tuple[LocalStack, Client]]:
    """Run the stack while the block runs; ready when this yields.

    Raises:
        LocalStackError: a component does not start, or not in time.
        LocalServerError: the nats-server does not start.
    """
    # First a place for it, where no other stack runs.
    folder = options.folder
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    stack = LocalStack(options)
    if find_running_server(folder) is not None:
        raise LocalStackError("stack", f"one runs already with its state in {folder}")

    # Then its processes, which end in reverse when the block does:
    #   nats-server  the bus, by which all others meet
    #   nodeagent    announces the devices of a simulated fleet and judges their health
    #   publisher    writes what is decided: to the cluster if there is one, or a folder
    #   solver       decides which devices each gang gets
    data = f"nats-{options.cluster_id}" if options.cluster_id else "nats"
    async with open_local_nats(folder / data) as server:
        try:
            stack.start(server)
            async with open_client(server, "local") as client:
                # Where no cluster says what it holds, we do.
                await client.bus.ensure_streams()
                if options.cluster is None:
                    classes = [] if stack.fleet is None else make_classes(stack.fleet)
                    await _publish_state(client, [*classes, *options.objects])
                # Whoever submits a gang from now on gets an answer.
                await _wait_ready(stack, client)
                if options.cluster is not None:
                    await _wait_publisher(stack, options.cluster)
                yield stack, client
        finally:
            await asyncio.to_thread(stack.stop)


async def _publish_state(client: Client, objects: Sequence[WritableObject]) -> None:
    """Put objects on the bus, as the publisher of a cluster would."""
    for value in objects:
        raw = to_builtins(to_kubernetes(value))
        meta = value.metadata
        key = meta.name
        if isinstance(value, ResourceClaimTemplate):
            key = object_key(meta.namespace, meta.name)
        message = ObjectObserved(
            cluster=client.cluster, kind=raw["kind"], key=key, object=raw
        )
        await client.bus.publish(Outgoing.of(STATE, message))


async def _wait_ready(stack: LocalStack, client: Client) -> None:
    """Wait until the solver leads: its fence is on the bus."""
    deadline = asyncio.get_running_loop().time() + READY_S
    while await client.bus.read_last(FENCE, client.cluster) is None:
        for component in stack.components:
            component.tend()
        if asyncio.get_running_loop().time() > deadline:
            words = stack.solver.read_last_words()
            raise LocalStackError("solver", f"not ready in {READY_S:g} s\n{words}")
        await asyncio.sleep(0.05)


async def _wait_publisher(stack: LocalStack, cluster: ClusterAccess) -> None:
    """Wait until the publisher has read the cluster and writes."""
    try:
        async with asyncio.timeout(READY_S):
            await wait_leading(cluster, stack.publisher_name)
    except TimeoutError as error:
        words = stack.publisher.read_last_words()
        reason = f"does not lead after {READY_S:g} s\n{words}"
        raise LocalStackError("publisher", reason) from error
