"""The whole stack on this machine: nats-server, node agent, solver, publisher.

Owns child processes, a state folder and a state file by which the command line finds
the stack. Ports are chosen freely and everything binds to loopback. A component that
ends is started again a few times; what it last said is shown when it does not stay up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from contracts.claim import ResourceClaimTemplate
from contracts.codec import to_builtins
from contracts.ids import object_key
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import DevicesAnnounced, ObjectObserved
from contracts.topics import FENCE, INVENTORIES, STATE
from moorings.client import Client, open_client
from moorings.errors import LocalStackError
from moorings.local.cluster import await_leading
from moorings.local.fleet_classes import classes_of
from moorings.local.kubeconfig import ClusterAccess
from moorings.local.nats_server import local_nats
from runtime.waits import first_of
from runtime.wire import Outgoing

RESTARTS = 3
READY_S = 60.0
STATE_FILE = "stack.json"
FLEETS = Path(__file__).parent.parent / "fleets"
_PR_SET_PDEATHSIG = 1


def state_home() -> Path:
    """Where stacks keep their state unless told otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "moorings"


def running_server(folder: Path | None = None) -> str | None:
    """Find the server of a running stack."""
    file = (folder or state_home()) / STATE_FILE
    try:
        state = json.loads(file.read_text())
        os.kill(int(state["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(state["server"])


def fleet_file(name: str) -> Path:
    """Find a fleet: one of ours by name, or a file.

    Raises:
        LocalStackError: there is no such fleet.
    """
    ours = FLEETS / f"{name}.yaml"
    file = ours if ours.is_file() else Path(name)
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in FLEETS.glob("*.yaml")))
        raise LocalStackError("fleet", f"no file {name!r}, and ours are: {known}")
    return file


class Component:
    """One child process of the stack; its log goes to a file."""

    def __init__(self, name: str, module: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._module = module
        self._variables: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = 0

    def start(self, variables: Mapping[str, str]) -> None:
        """Start the process."""
        self._variables = dict(variables)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                [sys.executable, "-m", self._module],
                env={**_clean_environment(), **self._variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # one call, no threads
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid if self._process is not None else 0

    def tend(self) -> bool:
        """Start it again if it ended; True: it had.

        Raises:
            LocalStackError: it ended too often.
        """
        if self._process is None or self._process.poll() is None:
            return False
        if self._restarts >= RESTARTS:
            raise LocalStackError(self.name, f"ended too often\n{self.last_words()}")
        self._restarts += 1
        self.start(self._variables)
        return True

    def last_words(self, lines: int = 5) -> str:
        """Read the end of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text().splitlines()[-lines:])
        return ""

    def stop(self) -> None:
        """End it: asked first, forced after five seconds."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
        self.fleet = fleet_file(options.fleet) if options.fleet else None
        self.manifests = options.manifests or folder / "manifests"
        self.faults = folder / "faults.yaml"
        self.server = ""
        self.publisher_name = f"up-{socket.gethostname()}-{os.getpid()}"
        self._options = options
        self.agent = Component("nodeagent", "nodeagent", folder)
        self.solver = Component("solver", "solver", folder)
        self.publisher = Component("publisher", "publisher", folder)

    @property
    def components(self) -> tuple[Component, ...]:
        """Every process of ours, in the order of their start."""
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
        self.publisher.start({"PUBLISHER_SERVERS": server, **self._sink()})
        self.solver.start(
            {"SOLVER_SERVERS": server, "SOLVER_NAME": "local", "SOLVER_LEASE_S": "5"}
        )
        state = {"server": server, "pid": os.getpid()}
        (self.folder / STATE_FILE).write_text(json.dumps(state))

    def _sink(self) -> dict[str, str]:
        """Say by variables where the publisher writes, and what for."""
        cluster = self._options.cluster
        if cluster is None:
            return {"PUBLISHER_FOLDER": str(self.manifests)}
        owned = {name: ",".join(of) for name, of in self._options.owned.items() if of}
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
    folder = options.folder
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    stack = LocalStack(options)
    if running_server(folder) is not None:
        raise LocalStackError("stack", f"one runs already with its state in {folder}")
    data = f"nats-{options.cluster_id}" if options.cluster_id else "nats"
    async with local_nats(folder / data) as server:
        try:
            stack.start(server)
            async with open_client(server, "local") as client:
                await client.bus.ensure_streams()
                if options.cluster is None:
                    classes = [] if stack.fleet is None else classes_of(stack.fleet)
                    await _observe(client, [*classes, *options.objects])
                await _ready(stack, client)
                if options.cluster is not None:
                    await _leads(stack, options.cluster)
                yield stack, client
        finally:
            await asyncio.to_thread(stack.stop)


async def _observe(client: Client, objects: Sequence[WritableObject]) -> None:
    """Put objects on the bus, as the publisher of a cluster would."""
    for item in objects:
        raw = to_builtins(to_kubernetes(item))
        meta = item.metadata
        key = meta.name
        if isinstance(item, ResourceClaimTemplate):
            key = object_key(meta.namespace, meta.name)
        seen = ObjectObserved(
            cluster=client.cluster, kind=raw["kind"], key=key, object=raw
        )
        await client.bus.publish(Outgoing.of(STATE, seen))


async def _ready(stack: LocalStack, client: Client) -> None:
    """Wait until the solver leads and knows every node of the fleet."""
    deadline = asyncio.get_running_loop().time() + READY_S
    while await client.bus.read_last(FENCE, client.cluster) is None:
        for component in stack.components:
            if component.tend():
                continue
        if asyncio.get_running_loop().time() > deadline:
            words = stack.solver.last_words()
            raise LocalStackError("solver", f"not ready in {READY_S:g} s\n{words}")
        await asyncio.sleep(0.05)


async def _leads(stack: LocalStack, cluster: ClusterAccess) -> None:
    """Wait until the publisher has read the cluster and writes."""
    try:
        async with asyncio.timeout(READY_S):
            await await_leading(cluster, stack.publisher_name)
    except TimeoutError as error:
        words = stack.publisher.last_words()
        reason = f"does not lead after {READY_S:g} s\n{words}"
        raise LocalStackError("publisher", reason) from error


async def inventories(client: Client) -> dict[str, DevicesAnnounced]:
    """Read what the agents announced, by node."""
    messages_by_node: dict[str, DevicesAnnounced] = {}
    async for batch in client.bus.read_existing(INVENTORIES, client.cluster):
        for incoming in batch.messages:
            if incoming.message is not None:
                messages_by_node[incoming.message.node] = incoming.message
    return messages_by_node


def _clean_environment() -> dict[str, str]:
    prefixes = ("NODEAGENT_", "SOLVER_", "PUBLISHER_")
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
