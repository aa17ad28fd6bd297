"""What nodes have left follows from gangs and pods, each counted once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts import names
from contracts.gang import Gang
from contracts.ids import ClusterName, GangUID, Namespace, NodeName, PoolName, SolveID
from contracts.messages import (
    DevicesAnnounced,
    GangAllocated,
    GangReleased,
    GatesOpened,
    MemberAllocated,
    ObjectGone,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.workload import PodSchedulingGate
from solver.snapshot.events import NODE_EVENT, POD_EVENT
from solver.snapshot.parts import NodePart
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import gang, member, node, pod, pool, quantities
from tests.builders.problems import CLUSTER, observe_core, snapshot_of

GANG = gang(member(count=2, resources={"cpu": 2}), name="train", namespace="team")
UID = GangUID(GANG.metadata.uid)
GATES = (PodSchedulingGate(name="moorings.dev/gang"),)


def free(snapshot: Snapshot, name: str = "a") -> dict[str, int] | None:
    part = snapshot.inventory.pages.get(name, f"node/{name}")
    assert isinstance(part, NodePart)
    return part.free


def world(*gangs: Gang) -> Snapshot:
    snapshot = snapshot_of({n: [pool(name=PoolName(n))] for n in ("a", "b")}, gangs)
    items = [node(n, allocatable={"cpu": 8, "pods": 10}) for n in ("a", "b")]
    return observe_core(snapshot, *items)


def placed(*nodes: str, uid: GangUID = UID) -> GangAllocated:
    return GangAllocated(
        cluster=CLUSTER,
        namespace=Namespace("team"),
        name="train",
        uid=uid,
        solve=SolveID("s"),
        attempt=1,
        epoch=1,
        members=tuple(
            MemberAllocated(member="worker", index=i, node=NodeName(n))
            for i, n in enumerate(nodes)
        ),
    )


def opened() -> GatesOpened:
    return GatesOpened(
        cluster=CLUSTER, namespace=Namespace("team"), uid=UID, attempt=1, state=0
    )


def of_gang(uid: str = UID) -> dict[str, Any]:
    """Say by which metadata a pod is of a gang; the label names it only."""
    return {"annotations": {names.GANG_UID: uid}, "labels": {names.GANG: "train"}}


def bound(name: str, on: str = "a", cpu: str = "2", **metadata: Any) -> Any:
    return pod(
        name,
        requests={"cpu": cpu},
        namespace="team",
        node_name=NodeName(on),
        phase="Running",
        **metadata,
    )


def test_a_decided_gang_uses_its_nodes_until_it_is_released() -> None:
    """From the decision on, before any pod is there."""
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
    after = apply(snapshot.without_grown(), released, sequence=2)
    assert free(after) == {"cpu": 8000, "pods": 10}
    assert NODE_EVENT in after.grown


def test_the_order_of_messages_does_not_matter() -> None:
    """Streams are read in any order after a restart: decision, gang, node, pod."""
    submitted = SubmitGang(cluster=CLUSTER, uid=UID, gang=GANG)
    snapshot = apply(Snapshot(), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("other"))
    snapshot = apply(snapshot, submitted, sequence=1)
    snapshot = observe_core(snapshot, node("a", allocatable={"cpu": 8, "pods": 10}))
    assert free(snapshot) == {"cpu": 4000, "pods": 8}


def test_a_pod_uses_its_node_while_it_runs_there() -> None:
    """One that is over uses nothing."""
    snapshot = observe_core(world(), bound("p"))
    assert free(snapshot) == {"cpu": 6000, "pods": 9}
    ended = structs.replace(
        bound("p"), status=structs.replace(bound("p").status, phase="Failed")
    )
    assert free(observe_core(snapshot, ended)) == {"cpu": 8000, "pods": 10}
    gone = ObjectGone(cluster=CLUSTER, kind="Pod", key="team/p")
    after = apply(snapshot.without_grown(), gone)
    assert free(after) == {"cpu": 8000, "pods": 10}
    assert NODE_EVENT in after.grown


def test_a_pod_without_a_node_uses_none() -> None:
    """It waits."""
    snapshot = observe_core(world(), pod("p", requests={"cpu": 2}))
    assert free(snapshot) == {"cpu": 8000, "pods": 10}


def test_a_nominated_pod_uses_its_node() -> None:
    """kube-scheduler makes room for it, which nobody else is to fill."""
    waiting = pod("p", requests={"cpu": 2})
    status = structs.replace(waiting.status, nominated_node_name="a")
    snapshot = observe_core(world(), structs.replace(waiting, status=status))
    assert free(snapshot) == {"cpu": 6000, "pods": 9}


def test_pods_of_a_decided_gang_are_not_counted_beside_it() -> None:
    """The gang counts for them already."""
    snapshot = apply(world(GANG), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", **of_gang()))
    assert free(snapshot) == {"cpu": 6000, "pods": 9}
    snapshot = observe_core(snapshot, bound("x", **of_gang("other")))
    assert free(snapshot) == {"cpu": 4000, "pods": 8}


def test_of_a_gang_and_its_pods_whichever_is_more_counts() -> None:
    """Pods may use more than was decided."""
    snapshot = apply(world(GANG), placed("a", "b"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", cpu="5", **of_gang()))
    assert free(snapshot) == {"cpu": 3000, "pods": 9}


def test_two_gangs_of_one_name_are_two() -> None:
    """Pods of a running gang that are replaced come as another gang of its name."""
    metadata = structs.replace(GANG.metadata, uid="replacement")
    again = structs.replace(GANG, metadata=metadata)
    snapshot = apply(world(GANG, again), placed("a"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", **of_gang()))
    snapshot = apply(snapshot, placed("a", uid=GangUID("replacement")), sequence=2)
    assert free(snapshot) == {"cpu": 4000, "pods": 8}


def test_of_a_running_gang_its_pods_count_one_by_one() -> None:
    """What its pods do not use any more, others may, though the gang runs on."""
    snapshot = apply(world(GANG), placed("a", "a"), sequence=1)
    snapshot = observe_core(snapshot, bound("w-0", **of_gang()))
    pinned = structs.replace(
        bound("w-1", **of_gang()).spec, node_name=None, affinity=pin("a")
    )
    waiting = structs.replace(bound("w-1", **of_gang()), spec=pinned)
    snapshot = observe_core(snapshot, waiting)
    snapshot = apply(snapshot, opened())
    assert free(snapshot) == {"cpu": 4000, "pods": 8}
    gone = ObjectGone(cluster=CLUSTER, kind="Pod", key="team/w-0")
    after = apply(snapshot.without_grown(), gone)
    assert free(after) == {"cpu": 6000, "pods": 9}
    assert NODE_EVENT in after.grown


def pin(*nodes: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": list(nodes)}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("change", "uses"),
    [
        ({"affinity": pin("a")}, True),
        ({"affinity": pin("a", "b")}, False),
        ({"affinity": {}}, False),
        ({"affinity": pin("a"), "scheduling_gates": GATES}, False),
    ],
)
def test_an_unbound_pod_of_a_gang_uses_the_node_it_is_pinned_to(
    change: dict[str, Any], uses: bool
) -> None:
    """It cannot go anywhere else."""
    waiting = pod("p", requests={"cpu": 2}, namespace="team", **of_gang(), **change)
    left = free(observe_core(world(), waiting))
    assert left == {"cpu": 8000 - 2000 * uses, "pods": 10 - uses}
    others = structs.replace(
        waiting, metadata=structs.replace(waiting.metadata, annotations={})
    )
    assert free(observe_core(world(), others)) == {"cpu": 8000, "pods": 10}


def test_what_is_used_twice_is_believed_once() -> None:
    """The same pod again changes nothing."""
    snapshot = observe_core(world(), bound("p"))
    again = observe_core(snapshot, bound("p"))
    assert again.inventory.pages is snapshot.inventory.pages


def test_less_left_is_no_growth_and_touches_one_page() -> None:
    """Nobody is tried again because there is less."""
    before = world().without_grown()
    after = observe_core(before, bound("p"))
    assert after.grown == {POD_EVENT}
    pages = zip(before.inventory.pages, after.inventory.pages, strict=True)
    assert sum(old is not new for old, new in pages) == 1


def test_an_overbooked_node_has_less_than_nothing() -> None:
    """And serves nobody who asks for anything."""
    snapshot = observe_core(world(), bound("p", cpu="9"))
    assert free(snapshot) == {"cpu": -1000, "pods": 9}


def test_an_agent_says_what_its_node_has_where_no_node_object_does() -> None:
    """A Node says it better, so it wins."""
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
