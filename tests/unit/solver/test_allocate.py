"""The rules of optional features of DRA: what each lets pass, and what it forbids."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from contracts.allocation import DeviceRequestAllocationResult, Rule
from contracts.device import (
    CapacityRequestPolicy,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import DeviceID, DeviceName, DriverName, GangUID, NodeName, PoolName
from contracts.messages import ObjectObserved, Place, PodRef, SubmitGang
from contracts.quantity import Quantity
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.snapshot.snapshot import apply
from solver.tiers import Tier
from tests.builders import (
    DEVICE_CLASS,
    DRIVER,
    constraint,
    counter_set,
    device,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
    sub_request,
)
from tests.builders.problems import (
    CLUSTER,
    PARAMETERS,
    observe,
    problem_of,
    snapshot_of,
)

SIZE = f'device.attributes["{DRIVER}"].size == "{{}}"'
WHOLE, HALF = SIZE.format("whole"), SIZE.format("half")


def decided(
    nodes: dict[str, Any],
    *gangs: Gang,
    slices: tuple[Any, ...] = (),
    features: Features = Features(),  # noqa: B008  # frozen
    **more: Any,
) -> Decision:
    snapshot = snapshot_of(nodes, gangs, **more)
    for item in slices:
        snapshot = observe(snapshot, item.metadata.name, item)
    return allocate(
        problem_of(snapshot, structs.replace(PARAMETERS, features=features))
    )


def asked(*claims: Any, pods: int = 1, number: int = 1, **spec: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    made = member(*claims, count=pods)
    return gang(made, name=f"g{number}", uid=uid, **spec)


def verdicts(decision: Decision) -> list[str]:
    assert decision.status is Status.OPTIMAL
    return [item.verdict for item in decision.gangs]


def results(decision: Decision) -> list[DeviceRequestAllocationResult]:
    return [
        found
        for item in decision.gangs
        for pod in item.members
        for claim in pod.claims
        for found in claim.allocation.devices.results
    ]


def partitions() -> dict[str, Any]:
    """A GPU that is one whole or two halves (kubernetes/kubernetes#138765)."""

    def part(name: str, size: str, memory: str) -> Device:
        consumes = {"gpu": {"memory": memory}}
        return device(name, attributes={"size": size}, consumes=consumes)

    content = (
        part("whole", "whole", "80Gi"),
        part("half-a", "half", "40Gi"),
        part("half-b", "half", "40Gi"),
    )
    return {
        "n": [pool(*content, name="n", counters=[counter_set("gpu", memory="80Gi")])]
    }


ANY_SIZE = member_claim(
    request(
        first_available=(
            sub_request("whole", select=(WHOLE,)),
            sub_request("half", select=(HALF,)),
        )
    )
)


def test_two_pods_share_a_gpu_that_each_would_rather_have_whole() -> None:
    """Everybody in comes before first choices."""
    found = decided(partitions(), asked(ANY_SIZE, pods=2))
    assert verdicts(found) == ["allocated"]
    assert sorted(item.device for item in results(found)) == ["half-a", "half-b"]
    assert [(t.tier, t.value) for t in found.objective] == [
        (Tier.GANGS, 2),
        (Tier.ALTERNATIVES, 2),
        (Tier.NODES, 1),
    ]
    assert [t.bound for t in found.objective[:2]] == [2, 2]


def test_the_first_alternative_is_taken_where_nothing_is_lost_by_it() -> None:
    """Alternatives are in the user's order."""
    found = decided(partitions(), asked(ANY_SIZE))
    assert [(r.request, r.device) for r in results(found)] == [("gpu/whole", "whole")]
    assert [(t.tier, t.value) for t in found.objective] == [
        (Tier.GANGS, 1),
        (Tier.ALTERNATIVES, 0),
        (Tier.NODES, 1),
    ]


def test_counters_bound_partitions() -> None:
    """Whole and halves draw from one counter."""
    halves = member_claim(
        request(count=2, select=(HALF,)), request("one", select=(WHOLE,))
    )
    assert verdicts(decided(partitions(), asked(halves))) == ["none"]
    held = [DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName("half-a"))]
    whole = asked(member_claim(request(select=(WHOLE,))))
    assert verdicts(decided(partitions(), whole, taken=held)) == ["none"]
    half = asked(member_claim(request(select=(HALF,))))
    assert verdicts(decided(partitions(), half, taken=held)) == ["allocated"]


def test_partitions_need_their_gate() -> None:
    """While it is off such devices are not there."""
    half = asked(member_claim(request(select=(HALF,))))
    off = Features(partitionable_devices=False)
    refused = decided(partitions(), half, features=off)
    assert verdicts(refused) == ["none"]
    assert refused.gangs[0].reasons[0].rule is Rule.DISABLED


def shareable(memory: str = "10Gi", default: str = "1Gi") -> Device:
    policy = CapacityRequestPolicy(default=Quantity.parse(default))
    capacity = DeviceCapacity(value=Quantity.parse(memory), request_policy=policy)
    return device(capacity={"memory": capacity}, allow_multiple_allocations=True)


def test_pods_share_a_device_as_far_as_its_capacity_goes() -> None:
    """And no further."""
    nodes = {"n": [pool(shareable(), name="n")]}
    four = member_claim(request(capacity={"memory": "4Gi"}))
    assert verdicts(decided(nodes, asked(four, pods=3))) == ["none"]
    found = decided(nodes, asked(four, pods=2), asked(number=2))
    assert verdicts(found) == ["allocated", "allocated"]
    given = results(found)
    assert len({item.share_id for item in given}) == 3
    consumed = [str(r.consumed_capacity["memory"]) for r in given]
    assert sorted(consumed) == ["1Gi", "4Gi", "4Gi"]


def test_one_request_has_a_shared_device_once() -> None:
    """Two requests may have it both."""
    nodes = {"n": [pool(shareable(), name="n")]}
    assert verdicts(decided(nodes, asked(member_claim(request(count=2))))) == ["none"]
    twice = member_claim(request("one"), request("two"))
    assert verdicts(decided(nodes, asked(twice))) == ["allocated"]


def test_admin_access_sees_devices_that_others_hold() -> None:
    """And takes them from nobody."""
    held = [DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName("gpu-0"))]
    nodes = {"n": [pool(*devices(1), name="n")]}
    admin = asked(member_claim(request(admin_access=True)), pods=2)
    found = decided(nodes, admin, taken=held)
    assert verdicts(found) == ["allocated"]
    assert all(item.admin_access for item in results(found))


def test_nobody_has_a_device_after_admin_access_in_the_same_pod() -> None:
    """As kube-scheduler's order of claims has it."""
    nodes = {"n": [pool(*devices(1), name="n")]}
    admin = member_claim(request(admin_access=True), name="watch")
    work = member_claim(request(), name="work")
    assert verdicts(decided(nodes, asked(work, admin))) == ["allocated"]
    assert verdicts(decided(nodes, asked(admin, work))) == ["none"]


def test_a_device_that_many_nodes_see_is_given_once() -> None:
    """Whichever node it is used from."""
    fabric = resource_slice(device("link"), name="f", pool="fabric", all_nodes=True)
    nodes = {n: [pool(device(attributes={"size": "half"}), name=n)] for n in "ab"}
    both = member_claim(request("gpu", select=(HALF,)), request("link", count=1))
    found = decided(nodes, asked(both, pods=2), slices=(fabric,))
    assert verdicts(found) == ["none"]
    assert verdicts(decided(nodes, asked(both), slices=(fabric,))) == ["allocated"]


def test_lists_match_in_one_common_element() -> None:
    """Not in equal lists."""

    def linked(name: str, *links: int) -> Device:
        item = device(name)
        return structs.replace(
            item, attributes={"links": DeviceAttribute(int_values=links)}
        )

    triple = asked(
        member_claim(request(count=3), constraints=[constraint(f"{DRIVER}/links")])
    )
    on = Features(list_type_attributes=True)
    circle = (linked("a", 1, 2), linked("b", 2, 3), linked("c", 3, 1))
    assert verdicts(decided({"n": [pool(*circle, name="n")]}, triple, features=on)) == [
        "none"
    ]
    star = (linked("a", 1, 2), linked("b", 2, 3), linked("c", 2))
    nodes = {"n": [pool(*star, name="n")]}
    assert verdicts(decided(nodes, triple, features=on)) == ["allocated"]
    assert verdicts(decided(nodes, triple)) == ["none"]


def test_groups_keep_devices_of_one_counter_set_apart() -> None:
    """Devices of one set must share a compatibility group."""

    def grouped(name: str, *names: str) -> Device:
        consumption = DeviceCounterConsumption(
            counter_set="gpu", compatibility_groups=names
        )
        return structs.replace(device(name), consumes_counters=(consumption,))

    on = Features(compatibility_groups=True)
    sets = [counter_set("gpu", memory="1")]
    pair = asked(member_claim(request(count=2)))
    for second, verdict in (("one", "allocated"), ("two", "none")):
        content = (grouped("a", "one"), grouped("b", second))
        nodes = {"n": [pool(*content, name="n", counters=sets)]}
        assert verdicts(decided(nodes, pair, features=on)) == [verdict]


def test_all_devices_of_a_claim_stay_within_its_limit() -> None:
    """A claim holds 32 devices at most."""
    nodes = {"n": [pool(*devices(33), name="n")]}
    assert verdicts(decided(nodes, asked(member_claim(request(mode="All"))))) == [
        "none"
    ]


def test_extended_resources_are_devices_where_the_node_offers_none_itself() -> None:
    """A device plugin on the node comes first."""
    resources = {f"deviceclass.resource.kubernetes.io/{DEVICE_CLASS}": 2}
    pod = member(resources=resources)
    wanted = gang(
        structs.replace(pod, claims=()), uid="00000000-0000-4000-8000-000000000001"
    )
    nodes = {"n": [pool(*devices(2), name="n")]}
    found = decided(nodes, wanted)
    assert verdicts(found) == ["allocated"]
    assert [item.request for item in results(found)] == ["container-0-request-0"] * 2


def test_extended_resources_of_waiting_pods_are_refused_while_a_class_is_there() -> (
    None
):
    """Their claims are made when they are bound; a device plugin's need none."""
    resource = "example.com/gpu"
    uid = GangUID("00000000-0000-4000-8000-000000000001")
    pod = member(member_claim(), name="w", resources={resource: 1})
    snapshot = snapshot_of({"n": [pool(*devices(2), name="n")]})
    serving = device_class("serving", extended_resource_name=resource)
    snapshot = observe(snapshot, "serving", serving)
    waits = Place(pods=(PodRef(name="p", uid="u"),), claims=())
    wanted = gang(pod, uid=uid)
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=wanted, places={"w": (waits,)})
    snapshot = apply(snapshot, message, sequence=1)
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert (reason.rule, reason.subject) == (Rule.NOT_MODELLED, "w")
    assert reason.field == f"spec.containers[].resources[{resource}]"
    assert "'serving'" in reason.message
    snapshot = observe(snapshot, "serving", device_class("serving"))
    assert verdicts(allocate(problem_of(snapshot))) == ["allocated"]


def test_a_pod_may_be_pinned_to_a_node() -> None:
    """By name, whatever other nodes have."""
    nodes = {n: [pool(*devices(1), name=n)] for n in ("a", "b")}
    pod = member(member_claim(), node_name=NodeName("b"))
    found = decided(nodes, gang(pod, uid="00000000-0000-4000-8000-000000000001"))
    assert found.gangs[0].members[0].node == "b"


def test_a_missing_gate_is_named() -> None:
    """The user reads which feature is off."""
    off = Features(prioritized_list=False)
    found = decided(partitions(), asked(ANY_SIZE), features=off)
    assert found.gangs[0].reasons[0].rule is Rule.INVALID
    assert "DRAPrioritizedList feature is disabled" in found.gangs[0].reasons[0].message


def test_devices_that_need_node_fit_are_refused_while_their_gate_is_on() -> None:
    """This version cannot decide them."""
    needy = structs.replace(device(), node_allocatable_resources={"cpu": {}})
    nodes = {"n": [pool(needy, name="n")]}
    assert verdicts(decided(nodes, asked())) == ["allocated"]
    on = Features(node_allocatable_resources=True)
    refused = decided({"n": [pool(needy, name="n")]}, asked(), features=on)
    assert refused.gangs[0].reasons[0].rule is Rule.NOT_MODELLED


def test_a_selected_node_pins_nothing_more_than_the_slice_does() -> None:
    """A device of all nodes leaves the allocation free of any node."""
    item = resource_slice(device("link"), name="f", pool="fabric", all_nodes=True)
    found = decided({}, asked(), slices=(item,))
    assert verdicts(found) == ["none"]
    snapshot = observe(snapshot_of({}, [asked()]), "f", item)
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    named = ObjectObserved(cluster=CLUSTER, kind="Node", key="n", object=raw)
    snapshot = apply(snapshot, named)
    decision = allocate(problem_of(snapshot))
    assert verdicts(decision) == ["allocated"]
    claim = decision.gangs[0].members[0].claims[0]
    assert claim.allocation.node_selector is None
