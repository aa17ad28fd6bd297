"""kube-scheduler refuses pods where they are pinned to: told, and mended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from contracts.gang import GangPhase
from contracts.lifecycle import GangRecord
from contracts.names import GANG, RECOVERY
from moorings.bus_client import Client
from tests.lab import cluster
from tests.lab.cluster import (
    GATES,
    LATE_GATE,
    Stack,
    gang_pod,
    is_bound,
    is_running,
    job,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import events_about, pods_of, until_phase, until_told

LATER = {"name": LATE_GATE}
"""A gate of the author, which holds a pod that we have pinned."""
START_S = 90.0
"""Services may have to start first."""
REFUSED = "didn't satisfy existing pods anti-affinity rules"


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Let a refusal count after two seconds."""
    folder = tmp_path_factory.mktemp("stack")
    started = cluster.started(control_plane, folder, PUBLISHER_REFUSAL_GRACE_S="2")
    with started as running:
        yield running


def held_back(made: Json) -> Json:
    """Have the pods of a workload wait for their author, too."""
    made["spec"]["template"]["spec"]["schedulingGates"] = [*GATES, LATER]
    return made


def is_pinned(pod: Json) -> bool:
    """Whether only the gate of the author holds a pod."""
    return bool(pod["spec"].get("schedulingGates") == [LATER])


def node_of(pod: Json) -> str:
    """Name the node that a pod is pinned to."""
    terms = pod["spec"]["affinity"]["nodeAffinity"]
    terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    fields = terms[0]["matchFields"]
    return next(str(f["values"][0]) for f in fields if f["operator"] == "In")


async def let_go(kube: Kube, *pods: Json) -> None:
    """Take the gate of the author away."""
    for pod in pods:
        await kube.patch(pod, [{"op": "remove", "path": "/spec/schedulingGates"}])


async def occupy(site: Fleet, node: str, gang: str) -> None:
    """Put a pod on a node beside which kube-scheduler lets none of the gang be."""
    rule = {
        "labelSelector": {"matchLabels": {GANG: gang}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    affinity = {"podAntiAffinity": required}
    pod = objects.pod(site.namespace, "jealous", affinity=affinity, nodeName=node)
    await site.kube.until(await site.kube.create(pod), is_running)


async def fetch_newest(client: Client, site: Fleet, name: str) -> GangRecord:
    """Fetch the newest gang of a name."""
    gangs = await client.fetch_gangs()
    key = (site.namespace, name)
    return [record for record in gangs if (record.namespace, record.name) == key][-1]


async def test_a_gang_with_a_refused_pod_is_made_anew_elsewhere(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """All of it, though one of its pods runs already."""
    await template(site, count=2)
    made = held_back(stateful_set(site, "train", 2, "pair"))
    made["spec"]["template"]["metadata"]["annotations"][RECOVERY] = "Recreate"
    await kube.create(made)
    first, second = await pods_of(site, "train", 2, is_pinned, START_S)
    node = node_of(first)
    assert node == node_of(second)
    await let_go(kube, first)
    await kube.until(first, is_running)
    await occupy(site, node, "train")
    await let_go(kube, second)
    note = await until_told(kube, second, "GangSchedulerRefused")
    assert REFUSED in note
    others = await pods_of(site, "train", 2, is_pinned)
    assert {uid_of(pod) for pod in others}.isdisjoint(map(uid_of, (first, second)))
    assert {node_of(pod) for pod in others} == set(site.nodes) - {node}
    await let_go(kube, *others)
    await pods_of(site, "train", 2, is_running)
    record = await fetch_newest(client, site, "train")
    assert record.submission is not None
    (avoided,) = record.submission.avoided
    assert (avoided.node, avoided.pod) == (node, name_of(second))
    assert REFUSED in avoided.message


async def test_a_refused_pod_is_told_and_its_node_avoided_when_it_is_replaced(
    site: Fleet, kube: Kube, client: Client, stack: Stack
) -> None:
    """Also by a publisher that was not there, and as a reason of the next no."""
    await template(site, count=4)
    await kube.create(held_back(stateful_set(site, "train", 1, "pair")))
    (pod,) = await pods_of(site, "train", 1, is_pinned, START_S)
    node = node_of(pod)
    await occupy(site, node, "train")
    rest = gang_pod(site.namespace, "rest", templates={"d": "pair"})
    await kube.until(await kube.create(rest), is_bound)
    await let_go(kube, pod)
    note = await until_told(kube, pod, "GangSchedulerRefused")
    assert REFUSED in note
    assert is_pinned_pending(await kube.get(pod))
    assert (await fetch_newest(client, site, "train")).phase is GangPhase.RUNNING
    stack["publisher"].kill()
    await kube.delete(pod, grace_s=0)
    stack["publisher"].start()
    (again,) = await pods_of(site, "train", 1, lambda p: uid_of(p) != uid_of(pod))
    record = await until_phase(client, site, "train", GangPhase.PENDING)
    assert record.submission is not None
    assert [avoided.node for avoided in record.submission.avoided] == [node]

    def tells(text: str) -> bool:
        return f"node {node} avoided: kube-scheduler refused pod train-0 there" in text

    note = await until_told(kube, again, "GangDevicesTaken")
    assert tells(note), await events_about(kube, again)
    await kube.delete(named("v1", "Pod", "rest", site.namespace), grace_s=0)
    again = await kube.until(again, is_pinned)
    assert node_of(again) != node
    await let_go(kube, again)
    await kube.until(again, is_running)


def is_pinned_pending(pod: Json) -> bool:
    """Whether a pod is still there and on no node."""
    return not is_bound(pod) and "deletionTimestamp" not in pod["metadata"]


async def test_a_node_whose_kubelet_rejects_a_pod_is_avoided(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Its Job makes another, which goes elsewhere."""
    await template(site, count=2)
    await kube.create(job(site, "train", 1, "pair"))
    (first,) = await pods_of(site, "train", 1, is_running, START_S)
    node = first["spec"]["nodeName"]
    words = "Node didn't have enough resource: cpu"
    failed = {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": f"Pod was rejected: {words}",
        "startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    await kube.patch(first, {"status": failed}, "status")

    def is_another(pod: Json) -> bool:
        return uid_of(pod) != uid_of(first) and is_running(pod)

    (again,) = await pods_of(site, "train", 1, is_another)
    assert again["spec"]["nodeName"] != node
    record = await fetch_newest(client, site, "train")
    assert record.submission is not None
    (avoided,) = record.submission.avoided
    assert avoided.message == f"kubelet: OutOfcpu: {words}"
