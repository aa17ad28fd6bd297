"""How many Workloads a second does Kueue admit, alone and with an AdmissionCheck?

Nodes of three flavors in racks; each Workload has two pods of two devices and 16 CPUs
in one rack (topology-aware scheduling; Kueue v0.19 fits no counted devices into a
topology, so that is of CPUs). All are created while the queue is stopped; the time runs
from its release until Kueue has admitted the last, at most 300 s. First Kueue alone,
then with a check that says yes at once, then with ours: devices are held before Kueue
admits. Then: pods placed on nodes of another flavor or rack than Kueue assigned,
evictions, and what a Workload costs: writes of its status, and calls of Kueue's
webhooks (to validate it, and to convert it to its older version).

    python -m benchmarks.cluster.kueue [--size full] [--workloads N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from benchmarks.cluster import setup
from benchmarks.cluster.always_ready import answering
from benchmarks.cluster.api_requests import WRITES, requests, webhook_calls
from benchmarks.processes import processes_of, usage, used
from benchmarks.report import Row, parser, report
from contracts.messages import GangAllocated
from contracts.topics import DECISIONS
from publisher.kueue.members import make_members
from publisher.kueue.objects import CONTROLLER, read_flavor, read_kueue_workload
from runtime.bus.bus import Bus
from runtime.wire import BusSettings
from tests.lab import cluster
from tests.lab.cluster import Stack
from tests.lab.controlplane import objects, programs, server
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    Options,
)
from tests.lab.controlplane.server import ControlPlane
from tests.lab.kueue import manager, queues
from tests.lab.kueue import programs as kueue_programs
from tests.lab.kueue.queues import DEVICES, FLAVOR, KUEUE, RACK
from tests.lab.services import CLUSTER

WORKLOADS = {"small": 60, "full": 1000}
FLAVORS = ("a100", "h100", "spot")
PODS, DEVICES_EACH, CPUS_EACH = 2, 2, 16
NODES_A_RACK = 8
CHECK, QUEUE, TEMPLATE = "devices", "team", "pair"
READY = "ready"
ALONE, ANY, CHECKED = "Kueue alone", "a check that says yes", "our check"
_LIMIT_S = 300.0
_POLL_S = 0.1


class Outcome(Struct, kw_only=True):
    """What became of the Workloads of one namespace."""

    way: str
    seconds: float
    admitted: list[Json]
    processors: Row
    status_writes: int
    webhook_calls: int
    misplaced: int = 0

    @property
    def row(self) -> Row:
        """Its row of the table."""
        count = len(self.admitted)
        return {
            "way": self.way,
            "Workloads": count,
            "s": self.seconds,
            "Workloads/s": count / self.seconds,
            "evictions": sum(map(queues.evictions, self.admitted)),
            "misplaced pods": self.misplaced,
            "status writes a Workload": self.status_writes / count,
            "webhook calls a Workload": self.webhook_calls / count,
            **{f"{name} s": value for name, value in self.processors.items()},
        }


class Measurement:
    """The same Workloads, once for each way, on one control plane."""

    def __init__(
        self, plane: ControlPlane, kube: Kube, stack: Stack, count: int, *, kueue: int
    ) -> None:
        """`kueue` is the process of Kueue's manager."""
        self._plane = plane
        self._kube = kube
        self._stack = stack
        self._count = count
        self._kueue = kueue
        self._labels: dict[str, dict[str, str]] = {}
        """Of nodes, by name."""

    async def prepare(self) -> None:
        """Create nodes for all Workloads, flavors, a topology and our check."""
        pods = self._count * PODS
        racks = -(-pods * DEVICES_EACH // (setup.DEVICES_EACH * NODES_A_RACK)) + 6
        made = []
        for rack in range(racks):
            labels = {FLAVOR: FLAVORS[rack % len(FLAVORS)], RACK: f"rack-{rack}"}
            for number in range(NODES_A_RACK):
                name = f"node-{rack}-{number}"
                self._labels[name] = labels
                made.append(objects.node(name, labels))
        await setup.create(self._kube, made)
        await setup.create_devices(self._kube, made)
        flavors = [
            queues.flavor(name, {FLAVOR: name}, topologyName="racks")
            for name in FLAVORS
        ]
        check = queues.check(CHECK, CONTROLLER)
        shared = [queues.topology("racks", RACK), check, queues.flavor("any", {})]
        await setup.create(self._kube, [*shared, *flavors])
        await self._kube.until(check, lambda c: queues.is_true(c, "Active"), 60.0)

    async def measure(self, way: str, *checks: str) -> Outcome:
        """Release a queue of Workloads, and wait until all are admitted."""
        async with self._kube.namespace() as space:
            spec = objects.requests(setup.DRIVER, DEVICES_EACH)
            await self._kube.create(objects.template(space, TEMPLATE, spec))
            share = -(-self._count // len(FLAVORS)) + 8
            cpus = {"cpu": share * PODS * CPUS_EACH}
            devices = {DEVICES: self._count * PODS * DEVICES_EACH}
            quotas = {**dict.fromkeys(FLAVORS, cpus), "any": devices}
            queue = queues.cluster_queue(space, quotas, *checks, stopPolicy="Hold")
            await self._kube.create(queue)
            await self._kube.create(queues.local_queue(space, QUEUE, space))
            await setup.create(
                self._kube, (workload(space, n) for n in range(self._count))
            )
            pids = processes_of(self._plane, self._stack) | {"kueue": self._kueue}
            sent, called = await self._count_requests()
            before, began_s = usage(pids), time.monotonic()
            await self._kube.patch(queue, {"spec": {"stopPolicy": "None"}})
            await self._until_admitted(queue)
            seconds, after = time.monotonic() - began_s, usage(pids)
            sent_then, called_then = await self._count_requests()
            listed = await self._kube.list(KUEUE, "Workload", space)
            admitted = [one for one in listed if queues.is_true(one, "Admitted")]
            outcome = Outcome(
                way=way,
                seconds=seconds,
                admitted=admitted,
                processors=used(before, after),
                status_writes=sent_then - sent,
                webhook_calls=called_then - called,
            )
            if way == CHECKED:
                outcome.misplaced = await self._count_misplaced(space, admitted)
            for one in listed:
                await self._kube.delete(one)
            return outcome

    async def _count_requests(self) -> tuple[int, int]:
        """Count writes of Workloads' statuses, and calls of webhooks, until now."""
        counts = await requests(self._kube)
        sent = sum(counts[f"{verb} workloads/status"] for verb in WRITES)
        return sent, await webhook_calls(self._kube)

    async def _until_admitted(self, queue: Json) -> None:
        """Wait until Kueue counts all as admitted; to list them would cost too much."""
        deadline = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline:
            status = (await self._kube.get(queue)).get("status") or {}
            if status.get("admittedWorkloads") == self._count:
                return
            await asyncio.sleep(_POLL_S)

    async def _count_misplaced(self, space: str, workloads: list[Json]) -> int:
        """Count pods that were placed where Kueue did not put them."""
        names = {one["metadata"]["name"] for one in workloads}
        decided = await self._read_decisions(space, names)
        flavors = {
            flavor: read_flavor({"spec": {"nodeLabels": {FLAVOR: flavor}}}, flavor)
            for flavor in FLAVORS
        } | {"any": read_flavor({}, "any")}
        misplaced = 0
        for one in workloads:
            members = make_members(read_kueue_workload(one), flavors)
            wanted = {part.name: part for parts in members.values() for part in parts}
            pods = decided[one["metadata"]["name"]].members
            for pod in pods:
                selector = wanted[pod.member].node.node_selector
                misplaced += not selector.items() <= self._labels[pod.node].items()
            misplaced += abs(len(pods) - PODS)
        return misplaced

    async def _read_decisions(
        self, space: str, names: set[str]
    ) -> dict[str, GangAllocated]:
        """Read the last decision for each of these gangs of a namespace."""
        found: dict[str, GangAllocated] = {}
        stop = asyncio.Event()
        settings = BusSettings(servers=(self._stack.nats.url,), name="benchmark")
        async with Bus.open(settings) as bus:
            await bus.wait_connected(10)
            below = DECISIONS.subjects_below(CLUSTER, space)
            async for page in bus.follow(DECISIONS.stream, [below], stop):
                for received in page.messages:
                    message = DECISIONS.codec.decode(received.data)
                    if isinstance(message, GangAllocated):
                        found[message.name.rpartition("/")[2]] = message
                if names <= found.keys():
                    stop.set()
        return found


def workload(space: str, number: int) -> Json:
    """Make a Workload that nothing owns: no pods come of it."""
    pod = objects.pod(
        space, "", templates={"d": TEMPLATE}, requests={"cpu": str(CPUS_EACH)}
    )
    pod_set = {
        "name": "main",
        "count": PODS,
        "template": {"spec": pod["spec"]},
        "topologyRequest": {"required": RACK},
    }
    made = named(KUEUE, "Workload", f"w-{number}", space)
    return made | {"spec": {"queueName": QUEUE, "podSets": [pod_set]}}


@contextmanager
def kueue(plane: ControlPlane) -> Iterator[int]:
    """Run Kueue beside the control plane; gives its process."""
    assets = kueue_programs.built()
    if assets is None:
        raise SystemExit(kueue_programs.NO_KUEUE)
    configuration = queues.configuration(setup.DRIVER)
    with manager.running(assets, plane, **configuration) as program:
        assert program.pid is not None
        yield program.pid


async def run(
    plane: ControlPlane, stack: Stack, count: int, kueue: int
) -> list[Outcome]:
    """Measure each way."""
    async with plane.client() as kube:
        measurement = Measurement(plane, kube, stack, count, kueue=kueue)
        await measurement.prepare()
        outcomes = [await measurement.measure(ALONE)]
        async with answering(kube, READY):
            outcomes.append(await measurement.measure(ANY, READY))
        return [*outcomes, await measurement.measure(CHECKED, CHECK)]


def main() -> None:
    """Print the table."""
    arguments = parser(__doc__ or "")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--workloads", type=int)
    options = arguments.parse_args()
    count = options.workloads or WORKLOADS[options.size]
    binaries = programs.built()
    if binaries is None:
        raise SystemExit(programs.NO_CONTROL_PLANE)
    parts = Options(programs=(ETCD, API_SERVER, CONTROLLER_MANAGER))
    with (
        tempfile.TemporaryDirectory() as folder,
        server.running(binaries, Path(folder), parts) as plane,
    ):
        serve_gangs(Kubectl(binaries / "kubectl", plane.kubeconfig()))
        (Path(folder) / "stack").mkdir()
        with (
            kueue(plane) as pid,
            cluster.started(
                plane,
                Path(folder) / "stack",
                PUBLISHER_KUEUE_CHECKS="true",
                PUBLISHER_LEASE_S="15",
            ) as stack,
        ):
            outcomes = asyncio.run(run(plane, stack, count, pid))
    report("kueue", options, [outcome.row for outcome in outcomes])


if __name__ == "__main__":
    main()
