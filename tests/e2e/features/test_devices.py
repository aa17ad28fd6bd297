"""What a driver may say of its devices, from its slices to the pods that run."""

from __future__ import annotations

from collections import Counter

from tests.lab.bound import (
    Bound,
    asks,
    create_gang,
    device,
    exactly,
    model,
    report_condition,
    run_gang,
    told_by_scheduler,
    until_bound,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import events_about, until_told


async def until_reason(kube: Kube, pod: Json) -> str:
    """Wait until the author of a pod is told why it waits, and give the words."""
    notes: list[str] = []

    async def told() -> bool:
        notes[:] = [note for _, note in await events_about(kube, pod)]
        return bool(notes)

    await eventually(told, "a pod is told why it waits")
    return notes[0]


def partition(name: str, kind: str, memory: int) -> Json:
    """A part of the one GPU that there is."""
    draws = {"memory": {"value": f"{memory}Gi"}}
    consumes = [{"counterSet": "gpu", "counters": draws}]
    return device(name, kind, consumesCounters=consumes)


async def memory_in_use(site: Fleet, devices: list[Json]) -> int:
    """Add up what all claims of the namespace draw, in Gi."""
    draws = {
        item["name"]: int(
            item["consumesCounters"][0]["counters"]["memory"]["value"][:-2]
        )
        for item in devices
    }
    claims = await site.kube.list(objects.RESOURCE, "ResourceClaim", site.namespace)
    return sum(
        draws[result["device"]]
        for claim in claims
        for result in claim.get("status", {}).get(
            "allocation", {"devices": {"results": ()}}
        )["devices"]["results"]
    )


async def test_partitions_never_draw_more_than_there_is(
    bare: Fleet, kube: Kube
) -> None:
    """Over two gangs: free parts of a GPU in use wait for its memory."""
    devices = [partition("whole", "whole", 80)]
    devices += [partition(f"half-{number}", "half", 40) for number in range(2)]
    devices += [partition(f"quarter-{number}", "quarter", 20) for number in range(4)]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
    where = {"nodeName": bare.a}
    specs = ({**where, "sharedCounters": counters}, {**where, "devices": devices})
    await bare.publish(*objects.pool(bare.driver, bare.a, *specs))

    def parts(*kinds: str) -> Json:
        requests = (
            exactly(bare.device_class, f"r{number}", selectors=model(bare, kind))
            for number, kind in enumerate(kinds)
        )
        return asks(*requests)

    (half,) = await run_gang(bare, "half", parts("half"))
    quarters = await run_gang(bare, "quarters", parts("quarter"), 2)
    assert await memory_in_use(bare, devices) == 80
    more = await create_gang(bare, "more", parts("quarter"), 2)
    (whole,) = await create_gang(bare, "whole", parts("whole"))
    for pod in (*more, whole):
        await until_reason(kube, pod)
    assert await memory_in_use(bare, devices) == 80
    bare.kubelets.finish(half.pod)
    later = await until_bound(bare, "more", 2)
    assert await memory_in_use(bare, devices) == 80
    for ended in (*quarters, *later):
        bare.kubelets.finish(ended.pod)
    (last,) = await until_bound(bare, "whole")
    assert last.devices == ["whole"]
    assert await memory_in_use(bare, devices) == 80


def share(pod: Bound) -> int:
    """What a pod has of the one device, in units of the policy's step."""
    (result,) = pod.results
    return int(result["consumedCapacity"]["bandwidth"].removesuffix("G"))


async def test_shares_of_a_device_add_up_to_its_capacity(
    bare: Fleet, kube: Kube
) -> None:
    """Each has an id of its own, and what it asked for, rounded up to the step."""
    policy = {"default": "10G", "validRange": {"min": "5G", "step": "5G", "max": "20G"}}
    capacity = {"bandwidth": {"value": "40G", "requestPolicy": policy}}
    nic = device("nic", allowMultipleAllocations=True, capacity=capacity)
    await bare.publish(objects.resource_slice(bare.driver, bare.a, [nic]))

    def bandwidth(amount: str) -> Json:
        wish = {"requests": {"bandwidth": amount}} if amount else {}
        return asks(exactly(bare.device_class, capacity=wish))

    pods = await run_gang(bare, "seven", bandwidth("7G"), 2)
    pods += await run_gang(bare, "default", bandwidth(""))
    assert [share(pod) for pod in pods] == [10, 10, 10]
    (waiting,) = await create_gang(bare, "much", bandwidth("15G"))
    await until_reason(kube, waiting)
    pods += await run_gang(bare, "little", bandwidth("10G"))
    assert sum(map(share, pods)) == 40
    ids = Counter(pod.results[0]["shareID"] for pod in pods)
    assert set(ids.values()) == {1}
    for pod in pods[:2]:
        bare.kubelets.finish(pod.pod)
    (pod,) = await until_bound(bare, "much")
    assert share(pod) == 15
    assert pod.results[0]["shareID"] not in ids


async def test_devices_of_several_nodes_are_for_just_these(bare: Fleet) -> None:
    """The result says where: as its slice does, everywhere, or at one node."""
    some = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/hostname",
                        "operator": "In",
                        "values": [bare.b, bare.c],
                    }
                ]
            }
        ]
    }
    here = {"nodeName": bare.b}
    specs: Json = {
        "some": {"nodeSelector": some, "devices": [device("some", "some")]},
        "all": {"allNodes": True, "devices": [device("all", "all")]},
        "each": {
            "perDeviceNodeSelection": True,
            "devices": [device("here", "here", **here)],
        },
    }
    for name, spec in specs.items():
        (slice_,) = objects.pool(bare.driver, f"{bare.namespace}-{name}", spec)
        await bare.publish(slice_)
    selectors = {}
    for kind in ("some", "all", "here"):
        request = exactly(bare.device_class, selectors=model(bare, kind))
        (pod,) = await run_gang(bare, kind, asks(request))
        assert pod.devices == [kind]
        selectors[kind] = pod.allocation.get("nodeSelector")
    only = {"key": "metadata.name", "operator": "In", "values": [bare.b]}
    assert selectors == {
        "some": some,
        "all": None,
        "here": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    }


async def test_a_pool_counts_once_it_is_whole(bare: Fleet, kube: Kube) -> None:
    """Of its newest generation; until then its devices are nobody's."""
    parts = [{"nodeName": bare.a, "devices": [device(name)]} for name in ("one", "two")]
    first, second = objects.pool(bare.driver, bare.a, *parts)
    await bare.publish(first)
    request = exactly(bare.device_class, allocationMode="All")
    (waiting,) = await create_gang(bare, "all", asks(request))
    assert "1 pool or device unusable" in await until_reason(kube, waiting)
    await bare.publish(second)
    (pod,) = await until_bound(bare, "all")
    assert sorted(pod.devices) == ["one", "two"]
    bare.kubelets.finish(pod.pod)
    newest = {"name": bare.a, "generation": 2, "resourceSliceCount": 1}
    devices = [device("three")]
    await kube.patch(second, {"spec": {"pool": newest, "devices": devices}})
    (pod,) = await run_gang(bare, "newest", asks(request))
    assert pod.devices == ["three"]


async def test_a_device_in_use_that_leaves_its_slice_is_told(
    bare: Fleet, kube: Kube
) -> None:
    """Not while the slice is being made again, as after a restart of kubelet."""
    slice_ = objects.resource_slice(bare.driver, bare.a, objects.devices(2))
    await bare.publish(slice_)
    (pod,) = await run_gang(bare, "user", asks(exactly(bare.device_class)))
    assert pod.devices == ["dev-0"]
    await kube.delete(slice_)
    await bare.controller_manager_caught_up()
    await kube.create(slice_)
    await kube.patch(slice_, {"spec": {"devices": [device("dev-1")]}})
    note = await until_told(kube, pod.pod, "GangDeviceRemoved")
    assert f"{bare.driver}/{bare.a}/dev-0 of pod user-0" in note
    assert [reason for reason, _ in await events_about(kube, pod.pod)] == [
        "GangDeviceRemoved"
    ]


async def until_allocated(site: Fleet, pod: Json, device: str) -> Json:
    """Wait until the claim of a pod holds a device; gives the claim."""
    claim = await site.generated(pod)

    def holds(claim: Json) -> bool:
        held = claim.get("status", {}).get("allocation", {}).get("devices", {})
        return [result["device"] for result in held.get("results", ())] == [device]

    return await site.kube.until(claim, holds)


async def test_a_pod_is_bound_when_its_device_is_attached(
    bare: Fleet, kube: Kube
) -> None:
    """kube-scheduler waits for the driver; what cannot be attached is had elsewhere.

    As KEP-5007 has it, a driver taints what it could not attach before it says so.
    """
    attached, failed = "example.com/attached", "example.com/failed"
    fabric: Json = {
        "bindsToNode": True,
        "bindingConditions": [attached],
        "bindingFailureConditions": [failed],
    }
    devices = [device(f"fabric-{number}", **fabric) for number in range(2)]
    names = {"key": "kubernetes.io/hostname", "operator": "In", "values": bare.nodes}
    somewhere = {"nodeSelectorTerms": [{"matchExpressions": [names]}]}
    (slice_,) = objects.pool(
        bare.driver, bare.namespace, {"nodeSelector": somewhere, "devices": devices}
    )
    await bare.publish(slice_)
    (pod,) = await create_gang(bare, "late", asks(exactly(bare.device_class)))
    claim = await until_allocated(bare, pod, "fabric-0")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["bindingConditions"] == [attached]
    assert result["bindingFailureConditions"] == [failed]
    node = only_node(claim["status"]["allocation"])
    await told_by_scheduler(bare, pod, "BindingConditionsPending")
    assert "nodeName" not in (await kube.get(pod))["spec"]
    taint = {"key": "example.com/unreachable", "effect": "NoSchedule"}
    tainted = [{**devices[0], "taints": [taint]}, devices[1]]
    await kube.patch(slice_, {"spec": {"devices": tainted}})
    await report_condition(bare, claim, failed)
    claim = await until_allocated(bare, pod, "fabric-1")
    await report_condition(bare, claim, attached)
    (bound,) = await until_bound(bare, "late")
    assert (bound.node, bound.devices) == (node, ["fabric-1"])


def only_node(allocation: Json) -> str:
    """Give the one node that an allocation names."""
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    (name,) = term["matchFields"][0]["values"]
    return str(name)
