"""Services as processes of their own, to be started, stopped and killed by tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from contracts import topics
from contracts.claim import DeviceClass, ResourceClaim
from contracts.codec import to_builtins
from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.ids import ClusterName, GangUID, Namespace, NodeName, object_key
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import (
    ConfirmationMessage,
    DecisionMessage,
    DevicesAnnounced,
    ObjectObserved,
    SubmitGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import device_class

CLUSTER = ClusterName("local")
PATIENCE_S = 120.0
"""What is waited for comes in a second or two; on a machine that others use, later."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.2
"""Between two looks at it."""


class Process:
    """One service process; its log goes to a file."""

    def __init__(self, module: str, log: Path, **variables: str) -> None:
        self._module = module
        self._log = log
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None
        self.python = [sys.executable]
        """What runs it, with options."""

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, **more: str) -> None:
        """Start it, or start it again, with `more` variables this time."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.python, "-m", self._module],
                env={**os.environ, **self._variables, **more},
                stdout=log,
                stderr=log,
            )

    def ended(self) -> int:
        """Wait until it ends by itself; gives its exit code."""
        assert self._process is not None
        return self._process.wait(timeout=PATIENCE_S)

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it by SIGTERM; gives its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=PATIENCE_S)

    def close(self) -> None:
        """End it in whatever state it is."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def log(self) -> str:
        """Read its log."""
        return self._log.read_text()


@asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    """Run processes while the block runs."""
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.close()


async def is_ready(address: str) -> bool:
    """Ask a service as kubelet does."""
    try:
        reader, writer = await asyncio.open_connection(*address.split(":"))
    except OSError:
        return False
    writer.write(b"GET /readyz HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.startswith(b"HTTP/1.1 200 ")


def solver(url: str, folder: Path, name: str = "one", **more: str) -> Process:
    """Make a solver with a short lease."""
    variables = {"SOLVER_SERVERS": url, "SOLVER_NAME": name, "SOLVER_LEASE_S": "2"}
    return Process("solver", folder / f"solver-{name}.log", **variables, **more)


async def announce(bus: Bus, *inventories: DevicesAnnounced) -> None:
    """Put inventories on the bus, as node agents do."""
    for message in inventories:
        subject = topics.INVENTORIES.subject(CLUSTER, NodeName(message.node))
        data = topics.INVENTORIES.codec.encode(message)
        await bus.publish(Outgoing(subject=subject, data=data, zstd=True))


async def observe_class(bus: Bus) -> None:
    """Put the default DeviceClass on the bus, as the publisher does."""
    await observe(bus, device_class())


async def observe(
    bus: Bus, resource: DeviceClass | ResourceClaim | ResourceSlice
) -> int:
    """Put an object on the bus; gives its sequence there."""
    kind, key = type(resource).__name__, resource.metadata.name
    if isinstance(resource, ResourceClaim):
        key = object_key(resource.metadata.namespace, key)
    raw = to_builtins(to_kubernetes(resource))
    message = ObjectObserved(cluster=CLUSTER, kind=kind, key=key, object=raw)
    subject = topics.STATE.subject(CLUSTER, kind, key)
    data = topics.STATE.codec.encode(message)
    return await bus.publish(Outgoing(subject=subject, data=data, zstd=True))


async def confirm(bus: Bus, message: ConfirmationMessage) -> None:
    """Say what became of a decision, as the publisher does."""
    subject = topics.CONFIRMATIONS.subject(CLUSTER, message.namespace, message.uid)
    data = topics.CONFIRMATIONS.codec.encode(message)
    await bus.publish(Outgoing(subject=subject, data=data))


async def submit(bus: Bus, gang: Gang) -> None:
    """Submit a gang under its own uid."""
    uid, namespace = GangUID(gang.metadata.uid), Namespace(gang.metadata.namespace)
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang)
    subject = topics.SUBMISSIONS.subject(CLUSTER, namespace, uid)
    await bus.publish(
        Outgoing(subject=subject, data=topics.SUBMISSIONS.codec.encode(message))
    )


async def decision_on(bus: Bus, gang: Gang) -> DecisionMessage | None:
    """Read the last decision about a gang."""
    uid, namespace = GangUID(gang.metadata.uid), Namespace(gang.metadata.namespace)
    last = await bus.read_last(topics.DECISIONS, CLUSTER, namespace, uid)
    return None if last is None else last.message


async def confirmation_on(bus: Bus, gang: Gang) -> ConfirmationMessage | None:
    """Read the last confirmation about a gang."""
    uid, namespace = GangUID(gang.metadata.uid), Namespace(gang.metadata.namespace)
    last = await bus.read_last(topics.CONFIRMATIONS, CLUSTER, namespace, uid)
    return None if last is None else last.message


async def eventually(
    holds: Callable[[], object],
    what: str | Callable[[], str],
    within_s: float = PATIENCE_S,
) -> None:
    """Wait until something holds, asked as a function or a coroutine function.

    What is asked often takes from what is waited for, so it is asked less and less.
    """
    deadline = time.monotonic() + within_s
    pause_s = FIRST_PAUSE_S
    while True:
        answer = holds()
        if await answer if isinstance(answer, Awaitable) else answer:
            return
        if time.monotonic() >= deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {within_s} s: {said}")
        await asyncio.sleep(pause_s)
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)
