"""The whole stack on this machine: nats-server, node agent, solver, publisher.

Owns child processes and a state folder. Ports are chosen freely and everything binds to
loopback. A child that ends is started again; what it last said is shown when it does
not stay up.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from contracts.claim import ResourceClaimTemplate
from contracts.codec import to_builtins
from contracts.counts import counted
from contracts.ids import object_key
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import ObjectObserved
from contracts.topics import INVENTORIES, STATE
from moorings.bus_client import Client, open_client
from moorings.errors import BadInputError, LocalStackError
from moorings.local.bus_users import LocalUsers
from moorings.local.cluster import ClusterAccess, wait_leading
from moorings.local.fleets import (
    count_nodes,
    find_fleet,
    list_drivers,
    make_classes,
)
from moorings.local.full_disk import DiskWatch
from moorings.local.nats_server import LocalServer
from moorings.local.process import ChildProcess
from moorings.local.restarts import Restarts
from moorings.local.state import RunningStack, claim_folder, write_state
from publisher.errors import FolderError
from publisher.folder.files import Folder
from runtime.waits import first_of
from runtime.wire import Outgoing

READY_S = 60.0
_MOST_ENDS_AT_START = 2
"""After so many ends at the start, a component is given up, with its last words."""


class TendedChild:
    """A child that is started again when it ends, and given up only at the start.

    So that one that does not stay up never takes the bus from the others.
    """

    def __init__(
        self, name: str, process: ChildProcess, start_again: Callable[[], None]
    ) -> None:
        self._name = name
        self._process = process
        self._start_again = start_again
        self._restarts = Restarts()
        self._due_s: float | None = None
        """When it is started again; None: it runs, as far as is known."""
        self._end = ""

    def tend(self, now_s: float, most_ends: int | None = None) -> str:
        """Start it again once that is due; returns what there is to say, or nothing.

        Raises:
            LocalStackError: it ended more often than that in five minutes.
        """
        if self._due_s is None:
            if not self._process.has_ended:
                return ""
            self._end = self._process.describe_end()
            if reason := self._process.read_last_reason():
                self._end += f" ({reason})"
            pause_s = self._restarts.note_end(now_s)
            if most_ends is not None and self._restarts.ends > most_ends:
                words = self._process.read_last_words(5)
                reason = f"{self._end}, as it did before, too often\n{words}"
                raise LocalStackError(self._name, reason)
            self._due_s = now_s + pause_s
        if now_s < self._due_s:
            return ""
        self._due_s = None
        self._start_again()
        line = f"{self._name} {self._end} and was started again"
        ends = self._restarts.ends
        return line if ends == 1 else f"{line}, {ends} times in five minutes"


class Component:
    """One service of the stack in a process of its own; its log goes to a file."""

    def __init__(self, module: str, folder: Path) -> None:
        self.name = module
        self._command = [sys.executable, "-m", module]
        self._variables: dict[str, str] = {}
        self._process = ChildProcess(folder / f"{module}.log")
        self.tended = TendedChild(module, self._process, self._start_again)
        """Watched over, once it was started."""

    def start(self, variables: Mapping[str, str]) -> None:
        """Start the process, with these variables besides our own."""
        self._variables = dict(variables)
        self._process.start(self._command, {**_clean_environment(), **self._variables})

    def _start_again(self) -> None:
        self.start(self._variables)

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
    """Options of a stack."""

    folder: Path
    """Where its state and logs are."""
    fleet: str = ""
    """Of simulated nodes; empty: none."""
    manifests: Path | None = None
    """Where decisions are written if not to a cluster; None: in `folder`."""
    cluster: ClusterAccess | None = None
    cluster_id: str = ""
    """Identifies the cluster: each has its own data of the bus, so that no
    cluster is given what another has, or what was simulated without one."""
    owned: dict[str, tuple[str, ...]] = {}
    """Ownership, by variable of the publisher; empty: all."""
    objects: tuple[WritableObject, ...] = ()
    """Objects in place of a cluster's: classes, templates, taint rules.
    Each driver of the fleet has a class besides."""


class LocalStack:
    """A running stack: its folder and addresses."""

    def __init__(self, options: StackOptions) -> None:
        self.folder = folder = options.folder
        self.fleet = find_fleet(options.fleet) if options.fleet else None
        self.manifests = options.manifests or folder / "manifests"
        self.faults = folder / "faults.yaml"
        # Each cluster has data of its own, and so has what is simulated without one.
        of = f"nats-{options.cluster_id}" if options.cluster_id else "nats"
        self.users = LocalUsers(folder / of / "users")
        self.nats = LocalServer(folder / of, sync="always", users=self.users)
        self.publisher_name = f"up-{socket.gethostname()}-{os.getpid()}"
        self._options = options
        self.agent = Component("nodeagent", folder)
        self.publisher = Component("publisher", folder)
        self.solver = Component("solver", folder)
        self._tended_nats = TendedChild(
            "nats-server", self.nats.process, self.nats.spawn
        )

    @property
    def server(self) -> str:
        """Where clients connect."""
        return self.nats.url

    @property
    def components(self) -> tuple[Component, ...]:
        """Every service, in the order of their start."""
        services = (self.publisher, self.solver)
        return services if self.fleet is None else (self.agent, *services)

    async def start(self) -> None:
        """Start the server, make the streams, then start all components.

        Raises:
            LocalServerError: the nats-server does not start.
        """
        self.users.make()
        self.nats.spawn()
        await asyncio.to_thread(self.nats.wait_healthy)
        async with self.open_client("publisher") as publisher:
            await publisher.bus.ensure_streams()
        # Nobody but the agent of the fleet has devices to announce.
        drivers = "" if self.fleet is None else ",".join(list_drivers(self.fleet))
        if self.fleet is not None:
            self.faults.write_text("faults: []\n")
            self.agent.start(
                {
                    **self._make_bus_variables("nodeagent"),
                    "NODEAGENT_CREATE_STREAMS": "false",  # it may not
                    "NODEAGENT_FLEET": str(self.fleet),
                    "NODEAGENT_FAULTS_FILE": str(self.faults),
                }
            )
        self.publisher.start(
            {
                **self._make_bus_variables("publisher"),
                **self._make_sink_variables(),
                "PUBLISHER_AGENT_DRIVERS": drivers,
            }
        )
        self.solver.start(
            {
                **self._make_bus_variables("solver"),
                "SOLVER_NAME": "local",
                "SOLVER_LEASE_S": "5",
                "SOLVER_PATIENCE": "10s",
                "SOLVER_AGENT_DRIVERS": drivers,
            }
        )
        running = RunningStack(
            server=self.server, users=self.users.folder, monitor=self.nats.monitor
        )
        write_state(self.folder, running)

    def _make_bus_variables(self, service: str) -> dict[str, str]:
        """Make the variables with the address and the user of the bus."""
        prefix = service.upper()
        return {
            f"{prefix}_SERVERS": self.server,
            f"{prefix}_BUS_USER": service,
            f"{prefix}_BUS_PASSWORD_FILE": str(self.users.password_file(service)),
        }

    def open_client(self, user: str) -> AbstractAsyncContextManager[Client]:
        """Connect to the bus of the stack as one of its users."""
        return open_client(self.server, "local", login=self.users.login_of(user))

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
        """Stop all components, then the server."""
        for component in reversed(self.components):
            component.stop()
        self.nats.stop()

    async def tend(self, stop: asyncio.Event) -> AsyncIterator[str]:
        """Watch over everything until `stop`; yields a line for each restart."""
        disk = DiskWatch(self.nats)
        while not stop.is_set():
            if line := await disk.look():
                yield line
            for line in () if disk.is_full else self.tend_once():
                yield line
            await first_of(stop, within_s=0.5)

    def tend_once(self, most_ends: int | None = None) -> Iterator[str]:
        """Start again what has ended and is due; yields a line for each.

        Raises:
            LocalStackError: something ended more often than that in five minutes.
        """
        now_s = asyncio.get_running_loop().time()
        for child in (self._tended_nats, *(c.tended for c in self.components)):
            if line := child.tend(now_s, most_ends):
                yield line


@asynccontextmanager
async def open_stack(options: StackOptions) -> AsyncIterator[LocalStack]:
    """Run the stack while the block runs; ready when this yields.

    Raises:
        LocalStackError: a component does not start, or not in time.
        LocalServerError: the nats-server does not start.
        BadInputError: manifests cannot be written where they should be.
    """
    # Its processes, which end in reverse when the block does:
    #   nats-server  the bus, by which all others meet
    #   nodeagent    announces the devices of a simulated fleet and judges their health
    #   publisher    writes what is decided: to the cluster if there is one, or a folder
    #   solver       decides which devices each gang gets
    stack = LocalStack(options)
    with claim_folder(options.folder):
        if options.cluster is None:
            check_manifests(stack.manifests)
        try:
            await stack.start()
            if options.cluster is None:
                # Where no cluster says what it holds, we do.
                classes = [] if stack.fleet is None else make_classes(stack.fleet)
                async with stack.open_client("publisher") as publisher:
                    await _publish_state(publisher, [*classes, *options.objects])
            # Whoever submits a gang from now on gets an answer.
            async with stack.open_client("solver") as solver:
                await _wait_ready(stack, solver)
                await _wait_announced(stack, solver)
            if options.cluster is not None:
                await _wait_publisher(stack, options.cluster)
            yield stack
        finally:
            await asyncio.to_thread(stack.stop)


def check_manifests(folder: Path) -> None:
    """Make the folder of manifests if it is not there, as the publisher would.

    Raises:
        BadInputError: it cannot be made or written, or another publisher has it.
    """
    try:
        with Folder(folder).open():
            pass
    except FolderError as error:
        raise BadInputError("up: --folder", str(error)) from error


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
    # Whoever wrote nonsense to the fence does not lead: a solver takes over from it.
    while client.cluster not in await client.fetch_solvers():
        list(stack.tend_once(most_ends=_MOST_ENDS_AT_START))
        if asyncio.get_running_loop().time() > deadline:
            words = stack.solver.read_last_words()
            raise LocalStackError("solver", f"not ready in {READY_S:g} s\n{words}")
        await asyncio.sleep(0.05)


async def _wait_announced(stack: LocalStack, client: Client) -> None:
    """Wait until every node of the fleet has announced its devices."""
    if stack.fleet is None:
        return
    nodes = count_nodes(stack.fleet)
    deadline = asyncio.get_running_loop().time() + READY_S
    while (found := (await client.bus.usage(INVENTORIES.stream)).subjects) < nodes:
        list(stack.tend_once(most_ends=_MOST_ENDS_AT_START))
        if asyncio.get_running_loop().time() > deadline:
            words = stack.agent.read_last_words()
            those = f"{found} of {counted(nodes, 'node')}"
            reason = f"{those} announced in {READY_S:g} s\n{words}"
            raise LocalStackError("nodeagent", reason)
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
