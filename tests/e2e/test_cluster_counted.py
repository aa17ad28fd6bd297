"""Things that are there because a file counts them, as devices that pods claim.

The DRA form of what tests/integration/test_extended_resources.py does with resources of
a Node: whole things, and one thing that claims share in steps. Agent, publisher, solver
and the control plane are real; nobody prepares the devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.lab import cluster
from tests.lab.cluster import Stack, create_pods, exists, is_running
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import Process
from tests.lab.waits import pods_of, until_told

DRIVER = "counted.moorings.dev"
SOURCES = f"""
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- kind: counted
  name: things
  driver: {DRIVER}
  resources:
  - {{name: dongle, count: 4}}
  - {{name: scratch, total: 800Gi, step: 100Gi}}
"""


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Everything but the agent."""
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running


@asynccontextmanager
async def counting_agent(
    kube: Kube, stack: Stack, namespace: str, folder: Path
) -> AsyncIterator[Fleet]:
    """Run an agent that counts things on node a, and make a class of them."""
    async with fleet.running(kube, namespace, ("a",), devices=()) as site:
        (folder / "sources.yaml").write_text(SOURCES)
        site.driver = DRIVER
        await site.publish(objects.device_class(f"{namespace}-things", DRIVER))
        agent = Process(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=stack.nats.url,
            NODEAGENT_SOURCES=str(folder / "sources.yaml"),
            NODEAGENT_NODE=site.a,
        )
        agent.start()
        try:
            yield site
        finally:
            agent.close()


async def template(site: Fleet, name: str, kind: str, **request: object) -> None:
    """Make a template of claims for things of a kind."""
    is_kind = f'device.attributes["{DRIVER}"].kind == "{kind}"'
    spec = objects.requests(
        f"{site.namespace}-things", selectors=[{"cel": {"expression": is_kind}}]
    )
    spec["devices"]["requests"][0]["exactly"] |= request
    await site.kube.create(objects.template(site.namespace, name, spec))


async def held(site: Fleet, pod: Json) -> list[Json]:
    """Give what a pod holds: the results of its claim."""
    (status,) = pod["status"]["resourceClaimStatuses"]
    claim = await site.kube.get(
        named(RESOURCE, "ResourceClaim", status["resourceClaimName"], site.namespace)
    )
    results: list[Json] = claim["status"]["allocation"]["devices"]["results"]
    return results


async def test_all_that_a_pod_asks_for_or_it_waits(
    kube: Kube, stack: Stack, namespace: str, tmp_path: Path
) -> None:
    """Three of four dongles are held; who wants two waits until they are given back."""
    async with counting_agent(kube, stack, namespace, tmp_path) as site:
        await template(site, "three", "dongle", count=3)
        await template(site, "two", "dongle", count=2)
        await create_pods(site, "first", range(1), "three", size=1)
        (first,) = await pods_of(site, "first", 1, is_running, 60.0)
        names = {result["device"] for result in await held(site, first)}
        assert len(names) == 3
        assert names < {f"dongle-{number}" for number in range(4)}
        await create_pods(site, "second", range(1), "two", size=1)
        (waiting,) = await pods_of(site, "second", 1, exists)
        await until_told(kube, waiting, "GangDevicesTaken")
        site.kubelets.finish(first)
        await pods_of(site, "second", 1, is_running, 60.0)


async def test_what_is_shared_is_given_in_steps(
    kube: Kube, stack: Stack, namespace: str, tmp_path: Path
) -> None:
    """Amounts are rounded up to the step; all of it is given, and no more."""
    async with counting_agent(kube, stack, namespace, tmp_path) as site:
        some = {"requests": {"size": "250Gi"}}
        await template(site, "some", "scratch", capacity=some)
        await template(site, "least", "scratch")
        await create_pods(site, "large", range(2), "some", size=2)
        await create_pods(site, "small", range(2), "least", size=2)
        pods = await pods_of(site, "large", 2, is_running, 60.0)
        pods += await pods_of(site, "small", 2, is_running, 60.0)
        results = [result for pod in pods for result in await held(site, pod)]
        assert {result["device"] for result in results} == {"scratch"}
        sizes = Counter(result["consumedCapacity"]["size"] for result in results)
        assert sizes == {"300Gi": 2, "100Gi": 2}
        await create_pods(site, "last", range(1), "least", size=1)
        (last,) = await pods_of(site, "last", 1, exists)
        await until_told(kube, last, "GangDevicesTaken")
