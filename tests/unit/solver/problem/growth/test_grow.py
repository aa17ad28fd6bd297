"""Gangs that are in with fewer pods than they ask for, and get more later."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.ids import Namespace, NodeName
from contracts.messages import (
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    DevicesAnnounced,
    ObjectObserved,
    SubmitGang,
)
from contracts.release import RELEASE
from solver.engines import elastic
from solver.queueing import gang_queue
from solver.queueing.rounds import BatchLimits
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DEVICE_CLASS,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.growing import asking, end, key
from tests.builders.problems import CLUSTER, observe_core, snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.solving import Solving

RACK = "example.com/rack"
pytestmark = pytest.mark.usefixtures("batch_sizes")


def cluster(*gangs: Gang, nodes: int = 2) -> Snapshot:
    """Nodes with two devices each."""
    names = [f"n{number}" for number in range(nodes)]
    return snapshot_of({n: [pool(*devices(2), name=n)] for n in names}, gangs)


RACKED = [node(name, labels={RACK: name[0]}) for name in ("a", "b", "b2", "b3")]


def announce(solving: Solving, name: str, count: int) -> None:
    """Let a node come with so many devices."""
    content = pool(*devices(count), name=name)
    solving.hear(
        DevicesAnnounced(cluster=CLUSTER, node=NodeName(name), pools=(content,))
    )


def test_a_gang_grows_when_something_is_freed_and_nothing_moves() -> None:
    """It has what it had, and more; once it has all, nobody asks again."""
    solving = Solving(cluster(asking(1, 2), asking(2, 4, 1)))
    solving.decide()
    before = solving.placed(key(2))
    assert (len(before.members), before.growing, before.attempt) == (
        2,
        {"worker": 2},
        1,
    )
    assert not solving.decide()

    end(solving, 1)
    solving.decide()

    after = solving.placed(key(2))
    assert after.members[:2] == before.members
    assert [pod.index for pod in after.members] == [0, 1, 2, 3]
    assert (after.growing, after.kept, after.attempt) == ({}, {"worker": 2}, 2)
    devices_held = [
        (result.pool, result.device)
        for pod in after.members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    ]
    assert len(set(devices_held)) == 4
    assert not solving.snapshot.growing
    assert not solving.decide()


def test_it_grows_bit_by_bit() -> None:
    """Each decision keeps all that were there before it."""
    waiting = [asking(number, 1) for number in (1, 2, 3)]
    solving = Solving(cluster(*waiting, asking(4, 4, 1)))
    solving.decide()
    for number, expected in ((1, 2), (2, 3), (3, 4)):
        before = solving.placed(key(4)).members
        end(solving, number)
        solving.decide()
        after = solving.placed(key(4))
        assert after.members[: len(before)] == before
        assert len(after.members) == expected
        assert after.attempt == number + 1


def test_gangs_that_are_not_in_come_first() -> None:
    """Whatever their priorities: no extra pod keeps another gang out."""
    solving = Solving(cluster(asking(1, 4), asking(2, 4, 1, priority=9), asking(3, 2)))
    solving.decide()
    assert solving.counts(map(key, (1, 2, 3))) == [0, 2, 2]
    end(solving, 3)
    solving.hear(SubmitGang(cluster=CLUSTER, uid=key(5).uid, gang=asking(5, 1)))
    solving.decide()
    assert solving.counts(map(key, (1, 2, 5))) == [0, 3, 1]


def test_who_grows_first_goes_by_priority_then_namespace_by_namespace() -> None:
    """Two of one namespace do not come before one of another."""
    blockers = [asking(number, 1) for number in (1, 2, 3)]
    growing = [
        asking(4, 2, 1, namespace="a"),
        asking(5, 2, 1, namespace="a"),
        asking(6, 2, 1, namespace="b"),
    ]
    solving = Solving(cluster(*blockers, *growing, nodes=3))
    solving.decide()
    names = [key(4, "a"), key(5, "a"), key(6, "b")]
    assert solving.counts(names) == [1, 1, 1]
    for number in (1, 2):
        end(solving, number)
        solving.decide(BatchLimits(gangs=1))
    counts = solving.counts(names)
    assert counts[2] == 2
    assert sorted(counts[:2]) == [1, 2]


def test_only_what_could_help_wakes_it() -> None:
    """A written confirmation or a change elsewhere costs no solve."""
    solving = Solving(cluster(asking(1, 6, 1)))
    solving.decide()
    written = AllocationWritten(
        cluster=CLUSTER, namespace=Namespace("default"), uid=key(1).uid, attempt=1
    )
    solving.hear(written)
    assert not solving.decide()
    assert key(1) in solving.snapshot.growing


@pytest.mark.parametrize("spec", [{}, {"topology": (topology_rule(RACK),)}])
def test_who_may_grow_past_what_one_batch_tries_is_tried_again(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When gangs come in, and when what they wait for comes; more pods, and gangs."""
    monkeypatch.setattr(elastic, "MOST_EXTRA", 2)
    monkeypatch.setattr(elastic, "MOST_GROWN", 1)
    monkeypatch.setattr(gang_queue, "MOST_GROWN", 1)
    wanted = [asking(number, 7, 1, **spec) for number in range(1, 4)]
    racks = [node(f"n{number}", labels={RACK: "r"}) for number in range(9)]
    solving = Solving(observe_core(cluster(*wanted, nodes=6), *racks))
    solving.decide()
    names = [key(number) for number in range(1, 4)]
    assert sum(solving.counts(names)) == 12
    for number in range(6, 9):
        announce(solving, f"n{number}", 2)
    solving.decide()
    assert sum(solving.counts(names)) == 18


def test_beside_kubernetes_only_the_publisher_asks_for_more() -> None:
    """Else its pods would be asked for twice."""
    solving = Solving(cluster(asking(1, 2), asking(2, 4, 1)))
    solving.decide()
    release = {"release": "1.37"}
    solving.hear(
        ObjectObserved(cluster=CLUSTER, kind=RELEASE, key="cluster", object=release)
    )
    end(solving, 1)
    assert not solving.decide()
    assert solving.counts([key(2)]) == [2]


def test_a_gang_that_somebody_ends_does_not_grow() -> None:
    solving = Solving(cluster(asking(1, 2), asking(2, 4, 1)))
    solving.decide()
    solving.hear(
        CancelGang(cluster=CLUSTER, namespace=Namespace("default"), uid=key(2).uid)
    )
    end(solving, 1)
    assert not solving.decide()


def test_growth_that_is_refused_leaves_the_gang_as_it_was() -> None:
    """What the new pods had is free again, what the old ones have is not."""
    solving = Solving(cluster(asking(1, 2), asking(2, 4, 1)))
    solving.decide()
    before = solving.placed(key(2))
    end(solving, 1)
    solving.decide()
    refused = AllocationRefused(
        cluster=CLUSTER,
        namespace=Namespace("default"),
        uid=key(2).uid,
        attempt=2,
        reason="taken",
        keeps=True,
    )
    solving.hear(refused)
    assert solving.placed(key(2)).members == before.members
    solving.hear(SubmitGang(cluster=CLUSTER, uid=key(3).uid, gang=asking(3, 2)))
    solving.decide()
    assert solving.counts([key(2), key(3)]) == [2, 2]
    end(solving, 3)
    solving.decide()
    again = solving.placed(key(2))
    assert (len(again.members), again.attempt) == (4, 3)


def of_three(snapshot: Snapshot) -> Snapshot:
    """Let namespace `default` hold three devices."""
    quotas = {"any": {DEVICE_CLASS: 3}}
    return with_queues(
        snapshot, flavor("any"), cluster_queue("q", quotas), local_queue("default", "q")
    )


def test_quota_that_one_gang_cannot_use_lets_another_grow() -> None:
    """Both ask for more than is left; only the younger has a place for it."""
    solving = Solving(of_three(observe_core(cluster(nodes=0), *RACKED)))
    for name in ("a", "b"):
        announce(solving, name, 1)
    for number, rack in ((1, "a"), (2, "b")):
        claim = member_claim(request())
        wanted = member(claim, count=3, min_count=1, node_selector={RACK: rack})
        about: dict[str, Any] = {"name": f"g{number}", "namespace": "default"}
        asked = gang(wanted, uid=key(number).uid, **about)
        solving.hear(SubmitGang(cluster=CLUSTER, uid=key(number).uid, gang=asked))
    solving.decide()
    announce(solving, "b2", 1)
    solving.decide()
    assert solving.counts([key(1), key(2)]) == [1, 2]
    announce(solving, "b3", 1)
    assert len(solving.decide()) == 1, "nothing is left: nobody is tried alone"


def test_a_namespace_grows_up_to_its_quota() -> None:
    """As many pods as there is quota for; then it stays as it is, and says nothing."""
    other = asking(3, 1, namespace="other")
    solving = Solving(of_three(cluster(asking(1, 1), asking(2, 4, 1), other)))
    solving.decide()
    assert solving.counts(map(key, (1, 2))) == [1, 2]
    end(solving, 1)
    solving.decide()
    assert solving.counts([key(2)]) == [3]
    end(solving, 3, "other")
    solving.decide()
    assert solving.decisions[-1].gangs[0].reasons[0].rule is Rule.QUOTA
    assert (len(solving.placed(key(2)).members), solving.placed(key(2)).attempt) == (
        3,
        2,
    )


def test_members_grow_each_by_itself() -> None:
    """One that is full is not asked for; one of which none was needed begins at 0."""
    claim = member_claim(request())
    wanted = gang(
        member(claim, name="lead", count=1),
        member(claim, name="worker", count=2, min_count=1),
        member(claim, name="spare", count=2, min_count=0),
        name="g2",
        uid=key(2).uid,
        namespace="default",
    )
    solving = Solving(cluster(asking(1, 2), wanted, nodes=3))
    solving.decide()
    solving.decide()
    before = solving.placed(key(2))
    assert len(before.members) == 4
    end(solving, 1)
    solving.decide()
    after = solving.placed(key(2))
    assert [(pod.member, pod.index) for pod in after.members] == [
        ("lead", 0),
        ("worker", 0),
        ("worker", 1),
        ("spare", 0),
        ("spare", 1),
    ]
    assert set(map(str, before.members)) <= set(map(str, after.members))
