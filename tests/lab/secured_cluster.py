"""Moorings beside a real control plane as k8s/site runs it, as processes.

Three NATS servers with TLS that ask the auth callout about tokens; two of each service;
and a platform that submits by a token of its service account.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import structs

from contracts.ids import GangUID, Namespace
from contracts.topics import DECISIONS
from moorings.demo.workload import make_gang
from runtime.bus.bus import Bus
from tests.lab.clock.stepped import SteppedClock, make_clocks
from tests.lab.cluster import READY_S, publisher
from tests.lab.controlplane.client import named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.server import ControlPlane
from tests.lab.endurance import until_acknowledged
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import CLUSTER, Process, eventually, running, submit
from tests.lab.token_bus import token_of

SOLVERS = ("solver", "second-solver")
PUBLISHERS = ("publisher", "second-publisher")
CALLOUTS = ("callout", "second-callout")
RBAC = "rbac.authorization.k8s.io"
NOBODYS = "nobody.example.com"
"""A class without devices: a gang that asks for it waits, and holds nothing."""


EARLIER = "earlier"
"""The clock by which certificates are made, so that others may be stepped back."""
EARLIER_S = -2 * 3600


class SecuredStack:
    """The servers, and the processes and their clocks by name."""

    def __init__(
        self,
        nats: SecuredNats,
        processes: Mapping[str, Process],
        clocks: Mapping[str, SteppedClock],
    ) -> None:
        """`clocks`: of solvers and publishers; none where they cannot be stepped."""
        self.nats = nats
        self.processes = processes
        self.clocks = clocks
        self.restarts: Counter[str] = Counter()
        """How often a service ended by itself, by name."""

    async def tend(self) -> None:
        """Start what ended by itself again, as kubelet does, until cancelled."""
        while True:
            for name, process in self.processes.items():
                if not process.is_alive:
                    process.start()
                    self.restarts[name] += 1
            await asyncio.sleep(0.5)

    def is_ready(self) -> bool:
        """Whether a solver decides, a publisher writes and a callout answers."""
        return all(
            any(word in self.processes[name].log() for name in names)
            for names, word in (
                (SOLVERS, '"epoch.claimed"'),
                (PUBLISHERS, '"lease.acquired"'),
                (CALLOUTS, '"service.started"'),
            )
        )


@asynccontextmanager
async def secured_stack(
    plane: ControlPlane, folder: Path, **of_publishers: str
) -> AsyncIterator[SecuredStack]:
    """Run everything while the block runs; it works when the block begins.

    `of_publishers` are more variables of these.
    """
    ahead_s = dict.fromkeys((*SOLVERS, *PUBLISHERS), 0) | {EARLIER: EARLIER_S}
    clocks = make_clocks(folder / "clocks", **ahead_s)
    earlier = clocks.pop(EARLIER, None)
    nats = SecuredNats(folder / "nats", tokens=True, clock=earlier)
    of_clocks = {name: clock.variables for name, clock in clocks.items()}
    variables = nats.variables("solver") | {
        "SOLVER_LEASE_S": "2",
        "SOLVER_REPLICAS": str(SERVERS),
    }
    processes = {
        name: Process(
            "solver",
            folder / f"{name}.log",
            SOLVER_NAME=name,
            **variables,
            **of_clocks.get(name, {}),
        )
        for name in SOLVERS
    }
    variables = nats.variables("publisher") | {"PUBLISHER_REPLICAS": str(SERVERS)}
    variables |= of_publishers
    for name in PUBLISHERS:
        more = variables | of_clocks.get(name, {})
        processes[name] = publisher("", plane, folder, name, **more)
    for name in CALLOUTS:
        processes[name] = nats.callout(name, plane.kubeconfig())
    with nats.running():
        async with running(*processes.values()):
            stack = SecuredStack(nats, processes, clocks)
            await eventually(stack.is_ready, "all is ready", READY_S)
            tending = asyncio.create_task(stack.tend())
            try:
                yield stack
            finally:
                tending.cancel()


class TokenPlatform:
    """Who submits gangs of a namespace as a service account that may create them."""

    def __init__(self, plane: ControlPlane, nats: SecuredNats, namespace: str) -> None:
        """Make the account and its rights."""
        self._kubectl = Kubectl(plane.binaries / "kubectl", plane.kubeconfig())
        self._namespace = namespace
        self._token = plane.folder / "platform.token"
        self._submitted: list[GangUID] = []
        role = named(f"{RBAC}/v1", "Role", "submitter", namespace)
        rule = {"apiGroups": ["moorings.dev"], "resources": ["gangs"]}
        role["rules"] = [{**rule, "verbs": ["create"]}]
        binding = named(f"{RBAC}/v1", "RoleBinding", "submitter", namespace)
        binding["roleRef"] = {"apiGroup": RBAC, "kind": "Role", "name": "submitter"}
        account = named("v1", "ServiceAccount", "submitter", namespace)
        binding["subjects"] = [
            {"kind": "ServiceAccount", "name": "submitter", "namespace": namespace}
        ]
        self._kubectl("apply", "-f", "-", given=[account, role, binding])
        self.renew()
        user = f"platform system:serviceaccount:{namespace}:submitter"
        self.settings = nats.settings(user, self._token)

    def renew(self) -> None:
        """Put a new token in the place of the old one, as kubelet does."""
        begun = self._token.with_suffix(".new")
        begun.write_text(token_of(self._kubectl, f"{self._namespace}/submitter"))
        begun.rename(self._token)

    async def submit(self, bus: Bus) -> None:
        """Submit a gang that will wait, until that is acknowledged."""
        gang = make_gang(len(self._submitted), 1, 1, NOBODYS, 0)
        metadata = structs.replace(gang.metadata, namespace=self._namespace)
        gang = structs.replace(gang, metadata=metadata)
        await until_acknowledged(partial(submit, bus, gang))
        self._submitted.append(GangUID(gang.metadata.uid))

    async def all_answered(self, reader: Bus) -> bool:
        """Whether every gang that was acknowledged has an answer."""
        place = (CLUSTER, Namespace(self._namespace))
        answers = await asyncio.gather(
            *(reader.read_last(DECISIONS, *place, uid) for uid in self._submitted)
        )
        return bool(answers) and None not in answers
