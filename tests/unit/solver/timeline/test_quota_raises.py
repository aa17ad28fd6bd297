"""Which quota a gang is short of, and a cluster in which it is larger."""

from __future__ import annotations

from solver.problem.assemble import resolve_gangs
from solver.timeline.quota_raises import (
    QuotaRaise,
    Raises,
    describe_raises,
    list_raises,
    with_raises,
)
from tests.builders.problems import PARAMETERS
from tests.builders.queues import (
    Quotas,
    cluster_queue,
    cohort,
    flavor,
    local_queue,
    with_queues,
)
from tests.builders.timeline import World
from tests.builders.values import DEVICE_CLASS, NAMESPACE


def waiting(quotas: Quotas, *objects: dict[str, object], parent: str = "") -> World:
    """Submit a gang of 8 devices and 4 CPUs to a queue."""
    world = World(1)
    world.snapshot = with_queues(
        world.snapshot,
        flavor("a"),
        flavor("b"),
        cluster_queue("q", quotas, cohort=parent),
        local_queue(NAMESPACE, "q"),
        *objects,
    )
    world.submit("waits", cpu=4)
    return world


def find(world: World) -> list[Raises]:
    (gang,) = resolve_gangs(world.snapshot, [world["waits"]], PARAMETERS.features)
    return list_raises(world.snapshot, gang)


def test_all_that_is_short_is_raised_at_once() -> None:
    world = waiting({"a": {DEVICE_CLASS: 6, "cpu": 1}})
    (raises,) = find(world)
    assert describe_raises(raises) == (
        f"ClusterQueue q has a quota of 4 instead of 1 cpu of flavor a and "
        f"8 instead of 6 {DEVICE_CLASS} of flavor a"
    )
    world.snapshot = with_raises(world.snapshot, raises)
    assert find(world) == []


def test_each_flavor_is_a_way() -> None:
    found = find(waiting({f: {DEVICE_CLASS: 6, "cpu": 4} for f in "ab"}))
    assert [[each.flavor for each in raises] for raises in found] == [["a"], ["b"]]


def test_one_flavor_with_enough_is_enough() -> None:
    assert (
        find(waiting({f: {DEVICE_CLASS: n, "cpu": 4} for f, n in (("a", 6), ("b", 8))}))
        == []
    )


def test_limits_of_cohorts_are_raised_too() -> None:
    limited: Quotas = {"a": {DEVICE_CLASS: (0, 1, None), "cpu": 4}}
    larger = cohort("all", {"a": {DEVICE_CLASS: 9, "cpu": 0}})
    world = waiting(limited, cohort("c", limited, parent="all"), larger, parent="c")
    own, borrowed = find(world)
    assert describe_raises(own).startswith("ClusterQueue q has a quota of 7 instead of")
    assert describe_raises(borrowed) == (
        f"ClusterQueue q may borrow 8 instead of 1 {DEVICE_CLASS} of flavor a and "
        f"Cohort c may borrow 8 instead of 1 {DEVICE_CLASS} of flavor a"
    )
    world.snapshot = with_raises(world.snapshot, borrowed)
    assert find(world) == []


def test_cpu_is_written_as_kubernetes_does() -> None:
    half = QuotaRaise(
        name="q", flavor="a", resource="cpu", amount=1500, instead_of=1000
    )
    assert str(half) == "1500m instead of 1 cpu of flavor a"
