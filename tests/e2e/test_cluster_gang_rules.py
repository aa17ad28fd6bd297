"""Examples of docs/gangs.md on a real control plane, from objects to bound pods."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from contracts.names import CONSTRAINTS, RECOVERY, TOPOLOGY
from tests.lab.cluster import Stack, exists, is_running, uid_of
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubelet import Kubelets
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.gang_examples import (
    CHECKS,
    DeviceKey,
    ExamplePod,
    ExampleSite,
    check_pairs,
)
from tests.lab.services import eventually
from tests.lab.waits import until_told

INDEXES = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")


@pytest.fixture(scope="module")
def served(gangs: None) -> None:
    """See that the stack sees Gangs from the start."""
    assert gangs is None


@pytest.fixture
def example(namespace: str) -> ExampleSite:
    """The cluster of the examples."""
    return ExampleSite(namespace)


@pytest.fixture
async def kubelets(
    example: ExampleSite, kube: Kube, stack: Stack
) -> AsyncIterator[Kubelets]:
    """Its nodes and devices."""
    assert stack.nats.url
    hosts = [
        objects.node(item["metadata"]["name"], item["metadata"]["labels"])
        for item in example.objects
        if item["kind"] == "Node"
    ]
    others = [item for item in example.objects if item["kind"] != "Node"]
    async with kubelet.running(kube, hosts) as running:
        made = [await kube.create(item) for item in others]
        yield running
        for item in made:
            await kube.delete(item)


async def running_pods(kube: Kube, namespace: str, count: int) -> list[Json]:
    """Wait until so many pods run."""
    found: list[Json] = []

    async def all_run() -> bool:
        found[:] = filter(is_running, await kube.list("v1", "Pod", namespace))
        return len(found) == count

    await eventually(all_run, f"{count} pods of {namespace}", 60.0)
    return found


async def placed(kube: Kube, pod: Json) -> ExamplePod:
    """Read where a pod is bound, and what its claims hold."""
    meta = pod["metadata"]
    devices: list[DeviceKey] = []
    for status in pod["status"]["resourceClaimStatuses"]:
        claim = named(
            RESOURCE, "ResourceClaim", status["resourceClaimName"], meta["namespace"]
        )
        found = await kube.get(claim)
        devices += (
            (result["driver"], result["pool"], result["device"])
            for result in found["status"]["allocation"]["devices"]["results"]
        )
    index = next(meta["labels"][name] for name in INDEXES if name in meta["labels"])
    return ExamplePod("worker", int(index), pod["spec"]["nodeName"], tuple(devices))


@pytest.mark.parametrize(
    ("name", "count"), [("pcie-root", 4), ("rack", 2), ("groups", 16)]
)
async def test_an_example_gets_what_its_rule_says(
    example: ExampleSite, kubelets: Kubelets, kube: Kube, name: str, count: int
) -> None:
    """Bound by kube-scheduler, with the devices that their claims hold then."""
    assert kubelets.nodes
    for item in example.read(name, example.prefix):
        await kube.create(item)
    pods = await running_pods(kube, example.prefix, count)
    CHECKS[name](example, [await placed(kube, pod) for pod in pods])


async def test_pods_on_two_nodes_share_a_channel(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """One allocation, written for the nodes that reach it, and reserved for both."""
    assert kubelets.nodes
    claim, template, item = example.read("channel", example.prefix)
    for made in (claim, template):
        await kube.create(made)
    job = await kube.create(item)
    pods = await running_pods(kube, example.prefix, 2)
    places = [await placed(kube, pod) for pod in pods]
    CHECKS["channel"](example, places)
    (rack,) = set(example.labels("rack", places))
    held = (await kube.get(claim))["status"]
    assert {u["uid"] for u in held["reservedFor"]} == set(map(uid_of, pods))
    (term,) = held["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    (asked,) = term["matchExpressions"]
    assert (asked["operator"], asked["values"]) == ("In", [rack])
    (result,) = held["allocation"]["devices"]["results"]
    assert result["pool"].endswith(f"rack-{rack.removeprefix('r')}")
    await kube.delete(job)


async def test_pods_that_come_later_go_to_the_rack_of_those_that_run(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """Scaled up, then replaced: by names alone they would go elsewhere.

    Nothing that runs is moved, and what has no room there waits.
    """
    assert kubelets.nodes
    template, service = example.read("scaled", example.prefix)
    await kube.create(template)
    created = await kube.create(service)
    before = await running_pods(kube, example.prefix, 2)
    await kube.patch(created, {"spec": {"replicas": 4}})
    pods = await running_pods(kube, example.prefix, 4)
    CHECKS["scaled"](example, [await placed(kube, pod) for pod in pods])
    assert {uid_of(pod) for pod in before} < {uid_of(pod) for pod in pods}
    last = max(pods, key=lambda pod: str(pod["spec"]["nodeName"]))
    await kube.delete(last, grace_s=0)
    await kube.until(last, lambda pod: uid_of(pod) != uid_of(last))
    pods = await running_pods(kube, example.prefix, 4)
    CHECKS["scaled"](example, [await placed(kube, pod) for pod in pods])
    await kube.patch(created, {"spec": {"replicas": 5}})
    late = named("v1", "Pod", "scaled-4", example.prefix)
    await kube.until(late, exists)
    note = await until_told(kube, await kube.get(late), "GangDevicesTaken")
    assert "1 pod needs 2 " in note
    assert "none is free" in note


async def test_pods_that_come_later_are_on_the_rail_of_those_that_run(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """By names alone they would be on both; what has no room on it waits."""
    assert kubelets.nodes
    template, service = example.read("scaled", example.prefix)
    nic = f"nic.{example.prefix}.example.com"
    exactly = {"deviceClassName": nic}
    template["spec"]["spec"]["devices"]["requests"] = [
        {"name": "nic", "exactly": exactly}
    ]
    rules = json.dumps([{"matchAttribute": f"{nic}/rail"}])
    service["spec"]["template"]["metadata"]["annotations"] = {CONSTRAINTS: rules}
    await kube.create(template)
    created = await kube.create(service)
    before = await running_pods(kube, example.prefix, 2)
    await kube.patch(created, {"spec": {"replicas": 3}})
    pods = await running_pods(kube, example.prefix, 3)
    assert {uid_of(pod) for pod in before} < {uid_of(pod) for pod in pods}
    rails = example.values("rail", [await placed(kube, pod) for pod in pods])
    assert len(rails) == 3
    assert len(set.union(*rails)) == 1
    # A rail has eight NICs.
    await kube.patch(created, {"spec": {"replicas": 9}})
    late = named("v1", "Pod", "scaled-8", example.prefix)
    await kube.until(late, exists)
    note = await until_told(kube, await kube.get(late), "GangConstraintUnsatisfiable")
    assert f"{nic}/rail beside its 3 placed pods" in note
    # Without the last there is room for all.
    await kube.patch(created, {"spec": {"replicas": 8}})
    pods = await running_pods(kube, example.prefix, 8)
    rails = example.values("rail", [await placed(kube, pod) for pod in pods])
    assert len(rails) == 8
    assert len(set.union(*rails)) == 1


async def test_what_a_gang_loses_comes_back_to_its_rack(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """A node is gone: no other rack will do, however much room there is."""
    assert kubelets.nodes
    template, service = example.read("scaled", example.prefix)
    service["spec"]["replicas"] = 3
    await kube.create(template)
    await kube.create(service)
    pods = await running_pods(kube, example.prefix, 3)
    crowd = Counter(pod["spec"]["nodeName"] for pod in pods)
    name = min(crowd, key=crowd.__getitem__)
    (lost,) = (pod for pod in pods if pod["spec"]["nodeName"] == name)
    node = await kube.get(named("v1", "Node", name))
    await kube.delete(node)
    await kube.delete(lost, grace_s=0)
    again = await kube.until(lost, lambda pod: uid_of(pod) != uid_of(lost))
    await until_told(kube, again, "GangDevicesTaken")
    meta = {"name": name, "labels": node["metadata"]["labels"]}
    await kube.create({**node, "metadata": meta})
    after = await running_pods(kube, example.prefix, 3)
    CHECKS["scaled"](example, [await placed(kube, pod) for pod in after])
    assert len({uid_of(pod) for pod in pods} & {uid_of(pod) for pod in after}) == 2


async def test_a_gang_that_is_made_anew_is_in_one_rack(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """Somebody took the devices of one pod: with `Recreate` all go, to one rack."""
    assert kubelets.nodes
    template, service = example.read("scaled", example.prefix)
    service["spec"]["replicas"] = 3
    service["spec"]["template"]["metadata"]["annotations"][RECOVERY] = "Recreate"
    await kube.create(template)
    await kube.create(service)
    pods = await running_pods(kube, example.prefix, 3)
    uids = {uid_of(pod) for pod in pods}
    claim = pods[0]["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    await kube.patch(
        named(RESOURCE, "ResourceClaim", claim, example.prefix),
        {"status": {"allocation": None, "reservedFor": None}},
        "status",
    )

    async def are_new() -> bool:
        found = await kube.list("v1", "Pod", example.prefix)
        return len(found) == 3 and all(
            is_running(pod) and uid_of(pod) not in uids for pod in found
        )

    await eventually(are_new, "all pods are made anew", 60.0)
    after = await running_pods(kube, example.prefix, 3)
    CHECKS["scaled"](example, [await placed(kube, pod) for pod in after])


def runs_and_grows(gang: Json) -> bool:
    """Whether a Gang object says that it runs with fewer pods than it asks for."""
    status = gang["status"]
    return (status.get("phase"), status.get("reason")) == ("Running", "Growing")


async def test_a_gang_grows_where_others_leave_room(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """It begins with what fits; the rest waits by name, and nothing that runs moves."""
    assert kubelets.nodes
    template, job = example.read("rack", example.prefix)
    await kube.create(template)
    other = await kube.create(job)
    leaving = await running_pods(kube, example.prefix, 2)
    gang, template, service = example.read("elastic", example.prefix)
    created = await kube.create(gang)
    await kube.create(template)
    created_service = await kube.create(service)
    before = of_service(await running_pods(kube, example.prefix, 8))
    assert len(before) == 6
    assert "6 of 10 pods" in await until_told(kube, created, "Growing")
    found = await kube.until(created, runs_and_grows)
    assert found["status"]["pods"] == "6/10"
    # Then the other leaves its rack.
    for item in (other, *leaving):
        await kube.delete(item, grace_s=0)
    for pod in leaving:
        await kube.until_gone(pod)
    after = await running_pods(kube, example.prefix, 8)
    stayed = {uid_of(p): p["spec"]["nodeName"] for p in after}
    assert stayed.items() >= {uid_of(p): p["spec"]["nodeName"] for p in before}.items()
    check_pairs(example, [await placed(kube, pod) for pod in after])
    # Fewer replicas need no room.
    await kube.patch(created_service, {"spec": {"replicas": 4}})
    await running_pods(kube, example.prefix, 4)


async def test_a_job_grows_with_its_parallelism(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """Beside the pods that run, by the rule that the gang began with."""
    assert kubelets.nodes
    gang, template, service = example.read("elastic", example.prefix)
    gang["spec"]["members"][0] |= {"count": 4, "minCount": 2}
    pods = service["spec"]["template"]
    pods["spec"]["restartPolicy"] = "Never"
    both = {"completions": 2, "parallelism": 2}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": service["metadata"],
        "spec": {"completionMode": "Indexed", "template": pods, **both},
    }
    await kube.create(gang)
    await kube.create(template)
    created = await kube.create(job)
    before = await running_pods(kube, example.prefix, 2)
    await kube.patch(created, {"spec": {"completions": 4, "parallelism": 4}})
    after = await running_pods(kube, example.prefix, 4)
    assert {uid_of(pod) for pod in before} < {uid_of(pod) for pod in after}
    check_pairs(example, [await placed(kube, pod) for pod in after])


def of_service(pods: list[Json]) -> list[Json]:
    """Choose the pods of the elastic service."""
    return [pod for pod in pods if pod["metadata"]["name"].startswith("elastic-")]


async def test_an_annotation_that_is_wrong_is_told_and_can_be_mended(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """By its field; a rule that is not understood is never taken for none."""
    assert kubelets.nodes
    template, service = example.read("scaled", example.prefix)
    await kube.create(template)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lone", "namespace": example.prefix},
        "spec": service["spec"]["template"]["spec"],
    }
    pod["metadata"]["annotations"] = {TOPOLOGY: '[{"key": "rack", "mod": "Preferred"}]'}
    created = await kube.create(pod)
    note = await until_told(kube, created, "GangTopologyInvalid")
    assert f"annotation {TOPOLOGY}: [0].mod: unknown field" in note
    mended = {TOPOLOGY: '[{"key": "rack", "mode": "Preferred"}]'}
    await kube.patch(created, {"metadata": {"annotations": mended}})
    await kube.until(created, is_running)
