"""The cluster as it will be."""

from __future__ import annotations

from contracts.lifecycle import GangRecord
from contracts.messages import (
    ExpectedStart,
    GangReleased,
    ObjectGone,
    ReleaseOutcome,
)
from solver.allocate import allocate
from solver.snapshot.inventory import Inventory
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import answer_all
from solver.timeline.futures import with_gang, without_gangs
from tests.builders import member, member_claim, request
from tests.builders.neighbours import apart, term
from tests.builders.problems import CLUSTER
from tests.builders.timeline import World


def test_what_an_ended_gang_held_is_free() -> None:
    world = World(nodes=2)
    first = world.start("first")
    world.start("second")
    waits = world.submit("waits")
    asker = world.asker(waits)

    now = answer_all(asker.place(world.snapshot, waits), allocate)
    later = without_gangs(world.snapshot, [first])
    fit = answer_all(asker.place(later, waits), allocate)

    assert not now
    assert now.proven
    assert first.placed is not None
    assert [pod.node for pod in fit.members] == [
        pod.node for pod in first.placed.members
    ]
    assert world.snapshot.inventory.holders != later.inventory.holders


def test_pods_and_claims_of_a_running_gang_go_with_it() -> None:
    world = World(nodes=1)
    before = world.snapshot.inventory
    world.start("runs", gpus=4, cpu=60)
    runs = world.run("runs", cpu=60)
    waits = world.submit("waits", gpus=4, cpu=60)
    asker = world.asker(waits)

    assert runs.allocated is None
    assert not answer_all(asker.find(world.snapshot, waits), allocate)
    later = without_gangs(world.snapshot, [runs])
    assert answer_all(asker.find(later, waits), allocate)
    assert [page.sha for page in later.inventory.pages] == [
        page.sha for page in before.pages
    ]


def test_many_ends_at_once_are_as_one_after_the_other() -> None:
    world = World(nodes=4)
    affinity = apart(term())
    lonely = member(member_claim(request(count=2)), affinity=affinity)
    world.start_members("lonely", lonely)
    for name in ("decided", "runs", "stays", "cancelled"):
        world.start(name, pods=2, gpus=2, cpu=4)
    for name in ("lonely", "runs"):
        world.run(name, cpu=4)
    world.cancel("cancelled")
    gone = [world[name] for name in ("lonely", "runs", "decided", "cancelled")]

    at_once = without_gangs(world.snapshot, gone)
    one_by_one = _end_one_by_one(world.snapshot, gone)

    for maps in ("claims", "pod_nodes", "gangs", "placed", "ending", "waiting"):
        assert _items(at_once, maps) == _items(one_by_one, maps)
    for maps in ("holders", "node_uses", "repelling"):
        assert _items(at_once.inventory, maps) == _items(one_by_one.inventory, maps)
    shas = [[page.sha for page in s.inventory.pages] for s in (at_once, one_by_one)]
    assert shas[0] == shas[1]
    assert list(at_once.placed) == [world["stays"].key]


def _end_one_by_one(snapshot: Snapshot, gone: list[GangRecord]) -> Snapshot:
    """End gangs as messages about each of their objects would; all objects are gone."""
    for record in gone:
        released = GangReleased(
            cluster=CLUSTER,
            namespace=record.namespace,
            uid=record.uid,
            name=record.name,
            epoch=1,
            outcome=ReleaseOutcome.COMPLETED,
        )
        snapshot = apply(snapshot, released, sequence=record.decision_sequence)
    objects = [("ResourceClaim", key) for key in snapshot.claims]
    objects += [("Pod", key) for key in snapshot.pod_nodes]
    for kind, key in objects:
        gone_object = ObjectGone(cluster=CLUSTER, kind=kind, key=key)
        snapshot = apply(snapshot, gone_object)
    return snapshot


def _items(owner: Snapshot | Inventory, name: str) -> dict[object, object]:
    return dict(getattr(owner, name).items())


def test_a_place_may_be_held_twice_for_a_while() -> None:
    world = World(nodes=1)
    runs = world.start("runs")
    waits = world.submit("waits")
    other = world.submit("other")
    asker = world.asker(waits, other)
    later = without_gangs(world.snapshot, [runs])
    fit = answer_all(asker.place(later, waits), allocate)

    kept = with_gang(world.snapshot, waits, fit.members)
    assert not answer_all(asker.find(without_gangs(kept, [runs]), other), allocate)
    free = without_gangs(kept, [runs, kept.gangs.get(waits.key) or runs])
    assert answer_all(asker.find(free, other), allocate)


def test_what_is_kept_stays_kept_when_its_gang_is_told_so() -> None:
    world = World(nodes=1)
    waits = world.submit("waits")
    other = world.submit("other")
    asker = world.asker(waits, other)
    fit = answer_all(asker.place(world.snapshot, waits), allocate)
    world.tell("waits", ExpectedStart(because="it is next"))

    kept = with_gang(world.snapshot, waits, fit.members)
    assert not answer_all(asker.find(kept, other), allocate)
