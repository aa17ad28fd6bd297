"""What nodes have left follows from gangs and pods, each counted once."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from contracts.gang import GANG_LABEL, Gang
from contracts.ids import (
    ClusterName,
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
    MemberAllocated,
    ObjectGone,
    ReleaseOutcome,
    SubmitGang,
)
from solver.snapshot.parts import NodePart
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import gang, member, node, pod, pool, quantities
from tests.problems import CLUSTER, observe_core, snapshot_of

GANG = gang(member(count=2, resources={"cpu": 2}), name="train", namespace="team")
UID = GangUID(GANG.metadata.uid)


def free(snapshot: Snapshot, name: str = "a") -> dict[str, int] | None:
    part = snapshot.inventory.pages.get(name, f"node/{name}")
    assert isinstance(part, NodePart)
    return part.free


def world(*gangs: Gang) -> Snapshot:
    snapshot = snapshot_of({n: [pool(name=PoolName(n))] for n in ("a", "b")}, gangs)
    items = [node(n, allocatable={"cpu": 8, "pods": 10}) for n in ("a", "b")]
    return observe_core(snapshot, *items)


def placed(*nodes: str) -> GangAllocated:
    return GangAllocated(
        cluster=CLUSTER,
        namespace=Namespace("team"),
        name="train",
        uid=UID,
        solve=SolveID("s"),
        attempt=1,
        epoch=1,
        members=tuple(
            MemberAllocated(member="worker", index=i, node=NodeName(n))
            for i, n in enumerate(nodes)
        ),
    )


def bound(name: str, on: str = "a", cpu: str = "2", gang_name: str = "") -> Any:
    labels = {GANG_LABEL: gang_name} if gang_name else {}
    return pod(
        name,
        requests={"cpu": cpu},
        namespace="team",
        labels=labels,
        node_name=NodeName(on),
        phase="Running",
    )


def test_a_decided_gang_uses_its_nodes_until_it_is_released() -> None:
    snapshot = apply(world(GANG), placed("a", "a"), sequence=1)
    assert free(snapshot) == {"cpu": 4000, "pods": 8}
    assert free(snapshot, "b") == {"cpu": 8000, "pods": 10}
    released = GangReleased(
        cluster=CLUSTER,
        namespace=Namespace("team"),
        name="train",
        uid=UID,
        epoch=1,
        outcome=ReleaseOutcome.COMPLETED,
    )
    after = apply(snapshot, released, sequence=2)
    assert free(after) == {"cpu": 8000, "pods": 10}
    assert after.growth > snapshot.growth


def test_the_order_of_messages_does_not_matter() -> None:
    """Streams are read in any order after a restart: decision, gang, node, pod."""
    submitted = SubmitGang(cluster=CLUSTER, uid=UID, gang=GANG)
    snapshot = apply(Snapshot(), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("other"))
    snapshot = apply(snapshot, submitted, sequence=1)
    snapshot = observe_core(snapshot, node("a", allocatable={"cpu": 8, "pods": 10}))
    assert free(snapshot) == {"cpu": 4000, "pods": 8}


def test_a_pod_uses_its_node_while_it_runs_there() -> None:
    snapshot = observe_core(world(), bound("p"))
    assert free(snapshot) == {"cpu": 6000, "pods": 9}
    ended = structs.replace(
        bound("p"), status=structs.replace(bound("p").status, phase="Failed")
    )
    assert free(observe_core(snapshot, ended)) == {"cpu": 8000, "pods": 10}
    gone = ObjectGone(cluster=CLUSTER, kind="Pod", key="team/p")
    after = apply(snapshot, gone)
    assert free(after) == {"cpu": 8000, "pods": 10}
    assert after.growth > snapshot.growth


def test_a_pod_without_a_node_uses_none() -> None:
    snapshot = observe_core(world(), pod("p", requests={"cpu": 2}))
    assert free(snapshot) == {"cpu": 8000, "pods": 10}


def test_pods_of_a_decided_gang_are_not_counted_beside_it() -> None:
    snapshot = apply(world(GANG), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", gang_name="train"))
    assert free(snapshot) == {"cpu": 6000, "pods": 9}
    snapshot = observe_core(snapshot, bound("x", gang_name="other"))
    assert free(snapshot) == {"cpu": 4000, "pods": 8}


def test_of_a_gang_and_its_pods_whichever_is_more_counts() -> None:
    snapshot = apply(world(GANG), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", gang_name="train", cpu="5"))
    assert free(snapshot) == {"cpu": 3000, "pods": 9}


def test_what_is_used_twice_is_believed_once() -> None:
    snapshot = observe_core(world(), bound("p"))
    again = observe_core(snapshot, bound("p"))
    assert again.inventory.pages is snapshot.inventory.pages


def test_less_left_is_no_growth_and_touches_one_page() -> None:
    before = world()
    after = observe_core(before, bound("p"))
    assert after.growth == before.growth
    pages = zip(before.inventory.pages, after.inventory.pages, strict=True)
    assert sum(old is not new for old, new in pages) == 1


def test_an_overbooked_node_has_less_than_nothing() -> None:
    snapshot = observe_core(world(), bound("p", cpu="9"))
    assert free(snapshot) == {"cpu": -1000, "pods": 9}


def test_an_agent_says_what_its_node_has_where_no_node_object_does() -> None:
    announced = DevicesAnnounced(
        cluster=ClusterName("test"),
        node=NodeName("a"),
        resources=quantities({"cpu": 4}),
    )
    snapshot = apply(Snapshot(), announced)
    assert free(snapshot) == {"cpu": 4000}
    named = node("a", allocatable={"cpu": 2})
    assert free(observe_core(snapshot, named)) == {"cpu": 2000}
    assert free(apply(Snapshot(), structs.replace(announced, resources={}))) is None
