"""What is believed, message by message."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec import structs

from contracts.allocation import AllocationResult, DeviceAllocationResult
from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.errors import DecodeError
from contracts.gang import GangPhase
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    PoolName,
    SolveID,
)
from contracts.messages import (
    DevicesAnnounced,
    GangAllocated,
    GangReleased,
    ObjectGone,
    ObjectObserved,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.quantity import Quantity
from contracts.release import RELEASE, make_release
from contracts.workload import Node, NodeTaint
from solver.snapshot.events import ANYTHING, driver_event
from solver.snapshot.inventory import with_node
from solver.snapshot.parts import NodePart, PoolPart, UsePart, pool_key, use_key
from solver.snapshot.snapshot import (
    KEPT_GANGS,
    GangForgotten,
    NodePresence,
    Snapshot,
    apply,
)
from tests.builders import (
    DRIVER,
    claim,
    device,
    devices,
    gang,
    node,
    pool,
    resource_slice,
    result,
    taint,
    taint_rule,
)
from tests.builders.problems import CLUSTER, observe, snapshot_of

NAMESPACE = Namespace("default")


def part_of(snapshot: Snapshot, node: str, name: str) -> PoolPart | None:
    part = snapshot.inventory.pages.get(
        node, pool_key(DriverName(DRIVER), PoolName(name))
    )
    assert part is None or isinstance(part, PoolPart)
    return part


def use_of(snapshot: Snapshot, node: str, name: str) -> UsePart:
    part = snapshot.inventory.pages.get(
        node, use_key(DriverName(DRIVER), PoolName(name))
    )
    assert isinstance(part, UsePart)
    return part


def announced(node: str, *pools: object) -> DevicesAnnounced:
    return DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=pools)  # type: ignore[arg-type]  # pools


def test_a_message_applied_twice_changes_nothing() -> None:
    """The very snapshot comes back."""
    snapshot = snapshot_of({"a": [pool(*devices(2), name="a")]})
    again = apply(snapshot, announced("a", pool(*devices(2), name="a")))
    assert again is snapshot


def test_a_changed_node_changes_one_page() -> None:
    """All other pages are the same objects."""
    nodes = {f"n{i}": [pool(*devices(2), name=f"n{i}")] for i in range(50)}
    before = snapshot_of(nodes)
    after = apply(before, announced("n7", pool(*devices(1), name="n7")))
    old, new = list(before.inventory.pages), list(after.inventory.pages)
    assert sum(x is not y for x, y in zip(old, new, strict=True)) == 1


def test_an_announcement_replaces_all_that_was_said_before() -> None:
    """What it does not name is gone."""
    snapshot = snapshot_of({"a": [pool(name="a-0"), pool(name="a-1")]})
    snapshot = apply(snapshot, announced("a", pool(name="a-1")))
    assert part_of(snapshot, "a", "a-0") is None
    assert part_of(snapshot, "a", "a-1") is not None


def test_a_pool_of_two_agents_is_out_until_one_stops() -> None:
    """Nobody can say whose devices they are."""
    snapshot = snapshot_of({"a": [pool(name="p")], "b": [pool(name="p")]})
    part = part_of(snapshot, "", "p")
    assert part is not None
    assert part.contested == f"pool {DRIVER}/p is announced by nodes a and b"
    snapshot = apply(snapshot, announced("b"))
    assert part_of(snapshot, "", "p") is None
    healed = part_of(snapshot, "a", "p")
    assert healed is not None
    assert healed.contested == ""


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("first", ["n-1", "evil"])
def test_an_agent_has_no_say_about_a_pool_of_another_node(
    first: str, count: int
) -> None:
    """Whoever spoke first, and whatever it says is in it."""
    ours = announced("n-1", pool(*devices(2), name="n-1"))
    theirs = structs.replace(pool(name="n-1"), devices=devices(count, prefix="x"))
    messages = [ours, announced("evil", theirs)]
    snapshot = snapshot_of({})
    for message in messages if first == "n-1" else reversed(messages):
        snapshot = apply(snapshot, message)
    alone = part_of(apply(snapshot_of({}), ours), "n-1", "n-1")
    assert part_of(snapshot, "n-1", "n-1") == alone


def test_an_empty_pool_contests_nothing() -> None:
    """Until there is something in it."""
    empty = structs.replace(pool(name="p"), devices=())
    snapshot = snapshot_of({"a": [empty], "b": [pool(*devices(2), name="p")]})
    assert len(getattr(part_of(snapshot, "b", "p"), "devices", ())) == 2
    snapshot = apply(snapshot, announced("a", pool(name="p")))
    assert getattr(part_of(snapshot, "", "p"), "contested", "")
    snapshot = apply(snapshot, announced("a", empty))
    assert len(getattr(part_of(snapshot, "b", "p"), "devices", ())) == 2


def test_only_the_agent_of_its_node_speaks_of_a_pool_that_others_publish() -> None:
    """Of a pool that several nodes see, no agent does."""
    local = resource_slice(*devices(3), name="local", node="a", pool="p")
    fabric = resource_slice(*devices(3), name="fabric", pool="q", all_nodes=True)
    snapshot = observe(observe(Snapshot(), "l", local), "f", fabric)
    before = part_of(snapshot, "a", "p"), part_of(snapshot, "", "q")
    for name in ("evil", "p", "q"):
        snapshot = apply(snapshot, announced(name, pool(name="p"), pool(name="q")))
        assert (part_of(snapshot, "a", "p"), part_of(snapshot, "", "q")) == before


def test_the_agent_of_its_node_comes_before_slices() -> None:
    """Of two who speak of one pool the agent is nearer."""
    snapshot = observe(Snapshot(), "s", resource_slice(*devices(3), node="a", pool="p"))
    assert len(getattr(part_of(snapshot, "a", "p"), "devices", ())) == 3
    snapshot = apply(snapshot, announced("a", pool(name="p")))
    assert len(getattr(part_of(snapshot, "a", "p"), "devices", ())) == 1
    snapshot = apply(snapshot, announced("a"))
    assert len(getattr(part_of(snapshot, "a", "p"), "devices", ())) == 3


def test_a_pool_keeps_every_slice_of_every_generation_by_name() -> None:
    """Which of them count depends on the node that looks."""
    new = resource_slice(device("y"), name="s2", node="a", pool="p", generation=2)
    old = resource_slice(device("x"), name="s1", node="a", pool="p", generation=1)
    part = part_of(observe(observe(Snapshot(), "k", new), "l", old), "a", "p")
    assert part is not None
    assert [item.generation for item in part.slices] == [1, 2]
    assert [item.name for item in part.devices] == ["x", "y"]


def test_shares_of_a_device_are_added_up_once_each() -> None:
    """A decision and its claim hold one share together."""

    def holder(name: str, share_id: str) -> ResourceClaim:
        held = result(
            "gpu-0", pool="a", share_id=share_id, consumed_capacity={"m": gibibytes(2)}
        )
        allocation = AllocationResult(devices=DeviceAllocationResult(results=(held,)))
        status = ResourceClaimStatus(allocation=allocation)
        return structs.replace(claim(name=name), status=status)

    snapshot = snapshot_of({"a": [pool(*devices(1), name="a")]})
    snapshot = observe(snapshot, "default/one", holder("one", "share-1"))
    snapshot = observe(snapshot, "default/again", holder("again", "share-1"))
    snapshot = observe(snapshot, "default/two", holder("two", "share-2"))
    use = use_of(snapshot, "a", "a")
    assert use.taken == ()
    assert [(s.device, dict(s.consumed)["m"]) for s in use.shared] == [
        ("gpu-0", gibibytes(4))
    ]


def gibibytes(amount: int) -> Quantity:
    return Quantity.of(amount << 30)


def test_taken_devices_are_given_back() -> None:
    """When the claim loses its allocation."""
    name = DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-1"))
    nodes = {"a": [pool(*devices(2), name="a")]}
    snapshot = snapshot_of(nodes, taken=[name])
    assert use_of(snapshot, "a", "a").taken == ("gpu-1",)
    snapshot = snapshot.without_grown()
    gone = ObjectGone(cluster=CLUSTER, kind="ResourceClaim", key="default/holder")
    snapshot = apply(snapshot, gone)
    assert use_of(snapshot, "a", "a").taken == ()
    assert snapshot.grown == {driver_event(DRIVER)}


def test_a_claim_before_its_pool_still_takes_its_devices() -> None:
    """In whatever order messages come."""
    name = DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-0"))
    snapshot = snapshot_of({}, taken=[name])
    snapshot = apply(snapshot, announced("a", pool(*devices(2), name="a")))
    assert use_of(snapshot, "a", "a").taken == ("gpu-0",)


def test_taint_rules_taint_what_they_select() -> None:
    """And nothing beside it."""
    snapshot = snapshot_of({"a": [pool(*devices(2), name="a")]})
    rule = taint_rule(driver=DRIVER, pool="a", device="gpu-1")
    snapshot = observe(snapshot, "r", rule)
    assert [name for name, _ in use_of(snapshot, "a", "a").taints] == ["gpu-1"]


def test_health_taints_and_heals() -> None:
    """A device is tainted as long as its agent says so."""
    name = DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-0"))
    nodes = {"a": [pool(*devices(2), name="a")]}
    sick = snapshot_of(nodes, taints={name: taint()})
    assert [d for d, _ in use_of(sick, "a", "a").taints] == ["gpu-0"]
    from contracts.messages import HealthJudged

    healed = apply(
        sick.without_grown(), HealthJudged(cluster=CLUSTER, node=NodeName("a"))
    )
    assert use_of(healed, "a", "a").taints == ()
    assert healed.grown == {driver_event(DRIVER)}


def test_presence_makes_a_node_unavailable_and_back() -> None:
    """Its devices stay known meanwhile."""
    snapshot = snapshot_of({"a": [pool(name="a")]}, away=["a"])
    away = snapshot.inventory.pages.get("a", "node/a")
    assert getattr(away, "unavailable", None) == "away"
    back = apply(snapshot, NodePresence(node=NodeName("a"), away=False))
    part = back.inventory.pages.get("a", "node/a")
    assert getattr(part, "unavailable", None) == ""


def test_a_node_is_gone_with_the_last_that_speaks_of_it() -> None:
    """Else a shared pool's devices could be placed on a node that was deleted."""
    local = resource_slice(device("x"), name="s", node="a", pool="p")
    seen = ObjectObserved(
        cluster=CLUSTER,
        kind="Node",
        key="a",
        object={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
    )
    snapshot = observe(apply(Snapshot(), seen), "s", local)
    for kind, key, is_there in (("Node", "a", True), ("ResourceSlice", "s", False)):
        gone = ObjectGone(cluster=CLUSTER, kind=kind, key=key)
        snapshot = apply(snapshot, gone)
        part = snapshot.inventory.pages.get("a", "node/a")
        assert (part is not None) is is_there
    assert not list(snapshot.inventory.pages)
    assert not len(snapshot.inventory.nodes)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (node("a"), ""),
        (node("a", ready=False), "not ready"),
        (node("a", unschedulable=True), ""),
        (node("a", taints=(NodeTaint(key="k", effect="NoSchedule"),)), ""),
    ],
)
def test_a_node_says_whether_it_may_be_used(item: Node, why: str) -> None:
    """Readiness decides; nothing said is no objection."""
    snapshot = snapshot_of({"a": [pool(name="a")]})
    inventory = with_node(snapshot.inventory, NodeName("a"), item)
    part = inventory.pages.get("a", "node/a")
    assert getattr(part, "unavailable", None) == why


def test_a_node_keeps_pods_away_by_taints_and_by_its_cordon() -> None:
    """Only taints that bind the scheduler count; a pod may tolerate them."""
    hard = tuple(NodeTaint(key="k", effect=e) for e in ("NoSchedule", "NoExecute"))
    soft = NodeTaint(key="k", effect="PreferNoSchedule")
    snapshot = snapshot_of({"a": [pool(name="a")]})
    item = node("a", taints=(*hard, soft), unschedulable=True)
    inventory = with_node(snapshot.inventory, NodeName("a"), item)
    part = inventory.pages.get("a", "node/a")
    assert isinstance(part, NodePart)
    assert (part.taints, part.unschedulable) == (hard, True)


# --- gangs ------------------------------------------------------------


def uid(number: int) -> GangUID:
    return GangUID(f"00000000-0000-4000-8000-{number:012}")


def key(number: int) -> GangKey:
    return GangKey(Namespace("default"), uid(number))


def submitted(snapshot: Snapshot, number: int) -> Snapshot:
    asked = gang(namespace=NAMESPACE, uid=uid(number))
    message = SubmitGang(cluster=CLUSTER, uid=uid(number), gang=asked)
    return apply(snapshot, message, sequence=number)


def allocated(snapshot: Snapshot, number: int) -> Snapshot:
    message = GangAllocated(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        name="train",
        uid=uid(number),
        epoch=1,
        solve=SolveID("s"),
        attempt=1,
    )
    return apply(snapshot, message, sequence=number)


def released(snapshot: Snapshot, number: int) -> Snapshot:
    message = GangReleased(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        name="train",
        uid=uid(number),
        epoch=1,
        outcome=ReleaseOutcome.COMPLETED,
    )
    return apply(snapshot, message, sequence=number)


def commanded(snapshot: Snapshot, number: int) -> Snapshot:
    message = ReleaseGang(cluster=CLUSTER, namespace=NAMESPACE, uid=uid(number))
    return apply(snapshot, message)


def test_the_gangs_that_ended_last_are_kept_and_the_waiting_and_running_are() -> None:
    snapshot = submitted(Snapshot(), 1)
    snapshot = allocated(submitted(snapshot, 2), 2)
    for number in range(3, KEPT_GANGS + 13):
        snapshot = released(submitted(snapshot, number), number)
    assert len(snapshot.gangs) == KEPT_GANGS + 2
    phases = [r.phase for n in (1, 2) if (r := snapshot.gangs.get(key(n)))]
    assert phases == [GangPhase.PENDING, GangPhase.DECIDED]
    assert snapshot.gangs.get(key(12)) is None
    assert snapshot.gangs.get(key(13)) is not None
    assert set(snapshot.waiting) == {key(1)}


def test_a_uid_is_one_namespace_s_alone() -> None:
    """What is said of a gang says nothing of another's with its uid."""
    other = GangKey(Namespace("team-b"), uid(1))
    asked = gang(namespace=other.namespace, uid=other.uid)
    message = SubmitGang(cluster=CLUSTER, uid=other.uid, gang=asked)
    snapshot = apply(submitted(Snapshot(), 1), message, sequence=2)
    assert set(snapshot.waiting) == {key(1), other}
    snapshot = commanded(snapshot, 1)
    assert [set(snapshot.waiting), set(snapshot.ending)] == [{other}, {key(1)}]


def test_nothing_is_forgotten_before_its_submission_was_read() -> None:
    """After a restart decisions may be read before the submissions they answer."""
    snapshot = Snapshot()
    numbers = range(1, KEPT_GANGS + 20)
    for number in numbers:
        snapshot = released(snapshot, number)
    assert len(snapshot.unknown) == len(numbers)
    for number in numbers:
        snapshot = submitted(snapshot, number)
    assert not len(snapshot.waiting)
    assert not len(snapshot.unknown)
    assert len(snapshot.gangs) == KEPT_GANGS


def test_a_late_message_about_a_forgotten_gang_wakes_nobody() -> None:
    snapshot = commanded(Snapshot(), 1)
    assert not len(snapshot.waiting)
    assert not len(snapshot.ending)
    snapshot = apply(snapshot, GangForgotten(gang=key(1)))
    assert not len(snapshot.gangs)
    assert not len(snapshot.unknown)


def test_a_gang_that_holds_devices_is_never_forgotten() -> None:
    snapshot = allocated(Snapshot(), 1)
    assert apply(snapshot, GangForgotten(gang=key(1))) is snapshot
    known = submitted(Snapshot(), 2)
    assert apply(known, GangForgotten(gang=key(2))) is known


def test_gangs_are_listed_by_what_is_to_be_done_for_them() -> None:
    """In whatever order the streams are read; who ends does not wait."""
    snapshot = submitted(Snapshot(), 1)
    assert [set(snapshot.waiting), set(snapshot.ending)] == [{key(1)}, set()]
    for change in permutations((submitted, allocated, commanded)):
        snapshot = Snapshot()
        for apply_next in change:
            snapshot = apply_next(snapshot, 1)
        assert [set(snapshot.waiting), set(snapshot.ending)] == [set(), {key(1)}]
        assert not len(snapshot.unknown)
        ended = released(snapshot, 1)
        assert not len(ended.ending)


def test_release_of_the_cluster_is_followed() -> None:
    """With other features a no may become a yes; the same again changes nothing."""
    raw = make_release("1.35")
    said = ObjectObserved(cluster=CLUSTER, kind=RELEASE, key=RELEASE, object=raw)
    before = Snapshot()
    after = apply(before, said)
    assert (before.release, after.release) == ("", "1.35")
    assert after.grown == {ANYTHING}
    assert apply(after, said) is after
    with pytest.raises(DecodeError):
        apply(after, structs.replace(said, object={**raw, "release": "newest"}))
