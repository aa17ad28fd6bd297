"""Which gangs are decided together, and which are tried again, and by what hint."""

from __future__ import annotations

from msgspec import structs

from contracts.claim import ResourceClaimTemplate
from contracts.gang import Gang
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    PoolName,
)
from contracts.lifecycle import GangRecord
from contracts.messages import CancelGang, ObjectGone
from solver.allocate import allocate
from solver.queueing.gang_queue import GangQueue, choose_batch
from solver.queueing.hints import events_for, widen_events
from solver.queueing.rounds import BatchLimits
from solver.snapshot.events import (
    ANYTHING,
    EXTENDED_RESOURCES,
    NODE_EVENT,
    POD_EVENT,
    ClusterEvent,
    claim_event,
    class_event,
    driver_event,
    template_event,
)
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DRIVER,
    claim,
    claim_template,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.problems import (
    CLUSTER,
    observe,
    observe_core,
    problem_of,
    snapshot_of,
)

OTHER = "other.example.com"
CLASSES = {
    "gpu.example.com": (f'device.driver == "{DRIVER}"',),
    "nic": (f'device.driver == "{OTHER}" && true',),
    "any": ("true",),
}
RACK = "example.com/rack"
MANY = BatchLimits(gangs=1_000_000, pods=1_000_000)


def key(number: int) -> GangKey:
    """Name the gang of that number."""
    uid = GangUID(f"00000000-0000-4000-8000-{number:012}")
    return GangKey(Namespace("default"), uid)


def asking(
    number: int,
    *,
    namespace: str = "default",
    device_class: str = "gpu.example.com",
    priority: int = 0,
    pods: int = 1,
) -> Gang:
    claim = member_claim(request(device_class=device_class))
    return gang(
        member(claim, count=pods),
        name=f"{namespace}-{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=priority,
    )


def gangs(*priorities: int, pods: int = 1) -> Snapshot:
    wanted = [
        asking(index, priority=priority, pods=pods)
        for index, priority in enumerate(priorities)
    ]
    return snapshot_of({}, wanted)


def names(records: tuple[GangRecord, ...]) -> list[str]:
    return [record.name for record in records]


def queue_of(snapshot: Snapshot) -> GangQueue:
    queue = GangQueue()
    for record in snapshot.waiting.values():
        queue.follow(record)
    return queue


def woken(queue: GangQueue, snapshot: Snapshot) -> list[str]:
    """Name who is tried again for what grew."""
    queue.wake(snapshot, snapshot.grown)
    return names(queue.choose(snapshot, MANY))


def test_a_batch_is_by_priority_then_age() -> None:
    """Higher first, and of equals the older."""
    batch = choose_batch(gangs(0, 5, 0, 5), BatchLimits())
    assert names(batch) == ["default-1", "default-3", "default-0", "default-2"]


def test_a_batch_has_limits_but_takes_one_gang_of_any_size() -> None:
    """A gang beyond the limit is decided alone."""
    assert len(choose_batch(gangs(*[0] * 5), BatchLimits(gangs=3))) == 3
    assert len(choose_batch(gangs(*[0] * 5, pods=4), BatchLimits(pods=8))) == 2
    assert len(choose_batch(gangs(0, pods=100), BatchLimits(pods=8))) == 1


def test_a_batch_of_one_reaches_everybody() -> None:
    """Even where everybody is woken before each choice."""
    snapshot = gangs(0, 0, 0)
    queue = queue_of(snapshot)
    chosen = []
    for _ in range(3):
        queue.wake(snapshot, [ANYTHING])
        chosen += names(queue.choose(snapshot, BatchLimits(gangs=1)))
    assert sorted(chosen) == ["default-0", "default-1", "default-2"]


def test_namespaces_take_turns_within_a_priority() -> None:
    """A backlog costs its own namespace alone; age counts inside a namespace."""
    wanted = [asking(n, namespace="a") for n in range(6)]
    wanted += [asking(n, namespace="b") for n in range(6, 8)]
    wanted += [asking(8, namespace="c", priority=1)]
    snapshot = snapshot_of({}, wanted)
    queue = queue_of(snapshot)
    four = BatchLimits(gangs=4)
    assert names(queue.choose(snapshot, four)) == ["c-8", "a-0", "a-1", "b-6"]
    assert names(queue.choose(snapshot, four)) == ["a-2", "a-3", "a-4", "b-7"]
    assert names(queue.choose(snapshot, four)) == ["a-5"]


def test_a_small_gang_is_tried_soon_beside_a_backlog_that_grows_again_and_again() -> (
    None
):
    """10,000 older gangs of another namespace; a device is freed before each batch."""
    wanted = [asking(n, namespace="a") for n in range(10_000)]
    snapshot = snapshot_of({}, [*wanted, asking(10_000, namespace="b")])
    queue = queue_of(snapshot)
    seen: set[str] = set()
    for batch in range(80):
        chosen = names(queue.choose(snapshot, BatchLimits()))
        assert len(chosen) == 256
        seen.update(chosen)
        assert batch > 0 or "b-10000" in seen
        queue.wake(snapshot, [ANYTHING])
    assert len(seen) == 10_001, "nobody is passed over for a whole round"


def test_what_is_freed_is_offered_to_the_most_urgent_first() -> None:
    """In the middle of a round, up to half of a batch begins from the front."""
    snapshot = gangs(9, *[0] * 20)
    queue = queue_of(snapshot)
    assert names(queue.choose(snapshot, BatchLimits(gangs=4)))[0] == "default-0"
    queue.wake(snapshot, [ANYTHING])
    again = names(queue.choose(snapshot, BatchLimits(gangs=4)))
    assert again == ["default-0", "default-1", "default-4", "default-5"]


def test_a_gang_is_tried_again_only_after_something_grew_that_may_concern_it() -> None:
    """Devices of its driver, its class, or the class of devices of any driver."""
    held = DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-0"))
    wanted = [asking(0), asking(1, device_class="nic"), asking(2, device_class="any")]
    nodes = {"a": [pool(*devices(2), name="a")]}
    snapshot = snapshot_of(nodes, wanted, taken=[held], classes=CLASSES)
    snapshot = snapshot.without_grown()
    queue = queue_of(snapshot)
    assert len(queue.choose(snapshot, MANY)) == 3
    assert queue.choose(snapshot, MANY) == ()
    gone = ObjectGone(cluster=CLUSTER, kind="ResourceClaim", key="default/holder")
    snapshot = apply(snapshot, gone)
    assert woken(queue, snapshot) == ["default-0", "default-2"]
    assert woken(queue, snapshot.without_grown()) == []
    gone = ObjectGone(cluster=CLUSTER, kind="DeviceClass", key="nic")
    assert woken(queue, apply(snapshot.without_grown(), gone)) == ["default-1"]


def test_a_node_that_changes_racks_wakes_the_gangs_that_its_devices_concern() -> None:
    """Two pods need two devices of one rack; a relabelled node makes it so."""
    wanted = asking(0, pods=2)
    spec = structs.replace(wanted.spec, topology=(topology_rule(RACK),))
    other = asking(1, device_class="nic", pods=2)
    pools = {name: [pool(*devices(1), name=name)] for name in ("a", "b")}
    snapshot = snapshot_of(
        pools, [structs.replace(wanted, spec=spec), other], classes=CLASSES
    )
    racks = (node("a", labels={RACK: "r1"}), node("b", labels={RACK: "r2"}))
    snapshot = observe_core(snapshot, *racks).without_grown()
    queue = queue_of(snapshot)
    assert len(queue.choose(snapshot, MANY)) == 2
    first, _ = allocate(problem_of(snapshot)).gangs
    assert not first.members

    moved = observe_core(snapshot, node("b", labels={RACK: "r1"}))
    assert woken(queue, moved) == ["default-0"]
    first, _ = allocate(problem_of(moved)).gangs
    assert first.members
    same = observe_core(moved.without_grown(), node("b", labels={RACK: "r1"}))
    assert woken(queue, same) == []


def test_a_template_concerns_its_own_namespace_alone() -> None:
    """And there the gangs that name it; the same again concerns nobody."""
    claim = member_claim(template="t")
    wanted = [
        gang(
            member(claim),
            name=namespace,
            namespace=namespace,
            uid=f"00000000-0000-4000-8000-{number:012}",
        )
        for number, namespace in enumerate(("a", "b"))
    ]
    snapshot = snapshot_of({}, wanted).without_grown()
    queue = queue_of(snapshot)
    assert len(queue.choose(snapshot, MANY)) == 2
    template: ResourceClaimTemplate = claim_template(request(), name="t", namespace="a")
    snapshot = observe(snapshot, "a/t", template)
    assert woken(queue, snapshot) == ["a"]
    assert not observe(snapshot.without_grown(), "a/t", template).grown


def test_what_grows_while_a_batch_is_decided_counts_for_it() -> None:
    """The choice itself sets a gang aside."""
    snapshot = gangs(0)
    queue = queue_of(snapshot)
    assert queue.choose(snapshot, MANY)
    queue.wake(snapshot, [ANYTHING])
    assert queue.choose(snapshot, MANY)


def test_gangs_that_were_not_tried_after_all_are_tried_next() -> None:
    """Their batch failed before anybody was told anything."""
    snapshot = gangs(0, 0)
    queue = queue_of(snapshot)
    batch = queue.choose(snapshot, MANY)
    queue.retry(record.key for record in batch)
    assert queue.choose(snapshot, MANY) == batch


def test_a_resting_gang_is_left_out_until_its_rest_ends() -> None:
    """Whoever rests is passed by, whatever its priority, and holds up nobody."""
    snapshot = gangs(5, 0)
    queue = queue_of(snapshot)
    queue.rest(key(0), 10.0)
    assert names(queue.choose(snapshot, MANY, now=9.0)) == ["default-1"]
    assert names(queue.choose(snapshot, MANY, now=10.0)) == ["default-0"]


def test_a_gang_that_wants_no_decision_any_more_is_forgotten() -> None:
    """Wherever it stands."""
    snapshot = gangs(0, 0, 0)
    queue = queue_of(snapshot)
    queue.choose(snapshot, BatchLimits(gangs=1))
    queue.rest(key(1), 10.0)
    for record in snapshot.waiting.values():
        cancelled = CancelGang(
            cluster=CLUSTER, namespace=record.namespace, uid=record.uid
        )
        snapshot = apply(snapshot, cancelled, sequence=1)
        queue.follow(snapshot.gangs.get(record.key) or record)
    assert len(queue) == 0
    assert queue.choose(snapshot, MANY, now=10.0) == ()


INSISTS = f'device.driver == "{DRIVER}"'


def events(snapshot: Snapshot) -> frozenset[ClusterEvent]:
    """List what may help the only gang that waits."""
    (record,) = snapshot.waiting.values()
    return events_for(snapshot, record) - {ANYTHING}


def test_a_gang_names_the_classes_of_all_its_alternatives() -> None:
    """Written out, or by the template or claim that it refers to."""
    either = request(
        first_available=[
            sub_request("x", device_class="b"),
            sub_request("y", device_class="c"),
        ]
    )
    wanted = gang(member(member_claim(request("one", device_class="a"), either)))
    classes = {class_event("a"), class_event("b"), class_event("c")}
    assert events(snapshot_of({}, [wanted])) == classes
    by_name = gang(
        member(member_claim(template="t")),
        member(member_claim(claim="c"), name="other"),
        namespace="ns",
    )
    snapshot = snapshot_of({}, [by_name])
    named = {template_event("ns/t"), claim_event("ns/c")}
    assert events(snapshot) == named
    template = claim_template(request(device_class="a"), name="t", namespace="ns")
    snapshot = observe(snapshot, "ns/t", template)
    existing = claim(request(device_class="b"), name="c", namespace="ns")
    snapshot = observe(snapshot, "ns/c", existing)
    assert events(snapshot) == named | {class_event("a"), class_event("b")}


def test_pods_without_claims_look_at_nodes_and_some_at_resources_of_classes() -> None:
    plain = structs.replace(member(resources={"cpu": 1}), claims=())
    assert events(snapshot_of({}, [gang(plain)])) == {NODE_EVENT}
    extended = structs.replace(member(resources={"example.com/gpu": 1}), claims=())
    expected = {NODE_EVENT, EXTENDED_RESOURCES}
    assert events(snapshot_of({}, [gang(extended)])) == expected


def test_devices_concern_the_classes_that_may_choose_them() -> None:
    """One that insists on their driver, and one that insists on none."""
    classes = {
        "own": (INSISTS,),
        "any": ('device.attributes["x"].y == "z"',),
        "both": (INSISTS, 'device.driver == "other"'),
        "other": ('device.driver == "other"',),
    }
    snapshot = snapshot_of({}, classes=classes)
    grown = widen_events(snapshot, [driver_event(DRIVER)])
    assert grown == {
        driver_event(DRIVER),
        class_event("own"),
        class_event("any"),
        EXTENDED_RESOURCES,
    }
    assert widen_events(snapshot, [POD_EVENT]) == {POD_EVENT}
    assert widen_events(snapshot, []) == frozenset()


def test_a_node_concerns_devices_that_no_node_owns() -> None:
    """They may be used from any node, so from this one, too."""
    snapshot = snapshot_of({"a": [pool(*devices(1), name="a")]})
    assert widen_events(snapshot, [NODE_EVENT]) == {NODE_EVENT}
