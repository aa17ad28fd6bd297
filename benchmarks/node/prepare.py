"""Preparing claims beside a real kubelet: each pod alone, then all at once.

kubelet, control plane and agent run on the same cores; the container runtime is played.
kube-scheduler allocates, so that pods come as fast as they can. Each claim is timed by
the agent from kubelet's call to its answer; p50 and p99 are the upper bounds of their
buckets. `running s` is from the first pod that was created until all run; `failed`
counts calls that were refused.

    python -m benchmarks.node.prepare [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import aiohttp

from benchmarks.report import Row, parser, report
from moorings.local.process import find_free_port
from tests.lab.controlplane import objects, programs
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import runs
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.node import light
from tests.lab.node import programs as node_programs
from tests.lab.node.light import LightNode
from tests.lab.node.site import write_fleet
from tests.lab.services import Process, eventually

RUNNING_S = 300.0
_BUCKET = re.compile(
    r'moorings_dra_operations_duration_seconds_bucket\{(?=.*is_error="(\w+)")'
    r'(?=.*le="([^"]+)")(?=.*operation_name="PrepareResources").*\} (\S+)'
)


class Buckets:
    """How many calls took at most how long, as the agent has counted so far."""

    def __init__(self, text: str) -> None:
        self.failed = 0.0
        self._counts: dict[float, float] = {}
        for failed, bound, count in _BUCKET.findall(text):
            if failed == "true" and bound == "+Inf":
                self.failed = float(count)
            elif failed == "false":
                self._counts[float(bound)] = float(count)

    def quantile(self, share: float, before: Buckets) -> float:
        """Give the bound of the bucket that a share of the calls since `before` has."""
        counts = {
            bound: count - before._counts.get(bound, 0.0)
            for bound, count in self._counts.items()
        }
        wanted = share * max(counts.values())
        return min(bound for bound, count in counts.items() if count >= wanted)


async def measure(
    kube: Kube, node: LightNode, namespace: str, address: str, count: int
) -> list[Row]:
    """Start pods one after the other, end them, and start as many at once."""

    async def read() -> Buckets:
        url = f"http://{address}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return Buckets(await answer.text())

    async def start(name: str) -> Json:
        return await kube.create(
            objects.pod(
                namespace,
                name,
                templates={"d": "one"},
                node_selector={"light": node.name},
                tolerations=[{"operator": "Exists"}],
                automountServiceAccountToken=False,
                enableServiceLinks=False,
                hostNetwork=True,
                terminationGracePeriodSeconds=1,
            )
        )

    async def end(pods: Sequence[Json]) -> None:
        await asyncio.gather(*map(kube.delete, pods))
        await asyncio.gather(*(kube.until_gone(pod, RUNNING_S) for pod in pods))

    rows: list[Row] = []
    for how in ("alone", "at once"):
        before, started_s = await read(), perf_counter()
        if how == "alone":
            pods = []
            for number in range(count):
                pods.append(await start(f"a-{number}"))
                await kube.until(pods[-1], runs, RUNNING_S)
        else:
            pods = list(
                await asyncio.gather(*(start(f"b-{number}") for number in range(count)))
            )
            await asyncio.gather(*(kube.until(pod, runs, RUNNING_S) for pod in pods))
        took_s, after = perf_counter() - started_s, await read()
        rows.append(
            {
                "pods": count,
                "started": how,
                "prepare p50 ms": after.quantile(0.5, before) * 1000,
                "prepare p99 ms": after.quantile(0.99, before) * 1000,
                "failed": after.failed - before.failed,
                "running s": took_s,
            }
        )
        await end(pods)
    return rows


async def run(
    control_plane: ControlPlane, node: LightNode, folder: Path, count: int
) -> list[Row]:
    """Measure on a node with as many devices as pods."""
    driver = f"{node.name}.example.com"
    write_fleet(folder, node.name, driver, count=count, name="dev")
    address = f"127.0.0.1:{find_free_port()}"
    agent = Process(
        "nodeagent",
        folder / "agent.log",
        NODEAGENT_SERVERS=f"nats://127.0.0.1:{find_free_port()}",
        NODEAGENT_FLEET=str(folder / "fleet.yaml"),
        NODEAGENT_NODE=node.name,
        NODEAGENT_KUBELET_FOLDER=str(node.kubelet_folder),
        NODEAGENT_CDI_FOLDER=str(node.cdi_folder),
        NODEAGENT_KUBECONFIG=str(control_plane.kubeconfig()),
        NODEAGENT_HEALTH_ADDRESS=address,
    )
    agent.start()
    try:
        await eventually(lambda: '"plugin.registered"' in agent.log(), "registered", 60)
        async with control_plane.client() as kube, kube.namespace() as namespace:
            devices = objects.devices(count)
            await kube.create(objects.resource_slice(driver, node.name, devices))
            await kube.create(objects.device_class(namespace, driver))
            spec = objects.requests(namespace)
            await kube.create(objects.template(namespace, "one", spec))
            return await measure(kube, node, namespace, address, count)
    finally:
        agent.close()


def main() -> None:
    """Measure one size on a control plane and a node of its own."""
    made = parser(__doc__ or "")
    made.add_argument("--pods", type=int, help="this many only")
    options = made.parse_args()
    binaries, kubelet = programs.built(), node_programs.kubelet_built()
    assert binaries is not None, programs.NO_CONTROL_PLANE
    assert kubelet is not None, node_programs.NO_KUBELET
    count = options.pods or (20 if options.size == "small" else 100)
    with tempfile.TemporaryDirectory() as name:
        folder, node_name = Path(name), f"light-{secrets.token_hex(4)}"
        with (
            running(binaries, folder, Options()) as control_plane,
            light.running(control_plane, kubelet, node_name) as node,
        ):
            rows = asyncio.run(run(control_plane, node, folder, count))
    report("prepare", options, rows)


if __name__ == "__main__":
    main()
