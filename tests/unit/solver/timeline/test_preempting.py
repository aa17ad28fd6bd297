"""Who is made to go for whom, when, and what is kept for it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.gang import GangPhase
from contracts.lifecycle import PREEMPTED, PUBLISHER
from solver.allocate import allocate
from solver.snapshot.snapshot import apply
from solver.timeline.asking import answer_all
from solver.timeline.futures import without_gangs
from solver.timeline.keeper import Outlook
from solver.timeline.preempting import LIMIT_S, REST_S, believe, is_leaving, list_void
from solver.timeline.reservations import Reservations
from tests.builders.claims import claim
from tests.builders.problems import observe
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.timeline import World
from tests.builders.values import DEVICE_CLASS as CLASS
from tests.builders.values import NAMESPACE

NOW = 1000
WITHIN = {"withinClusterQueue": "LowerPriority"}


def queued(world: World, delay: str = "5m", **policy: Any) -> World:
    """Let all gangs of a world be of one ClusterQueue."""
    queue = cluster_queue("all", {"any": {CLASS: 99}}, preemption=policy)
    if delay:
        said = {
            "moorings.dev/preemption-delay": delay,
            "moorings.dev/patience": "never",
        }
        queue["metadata"]["annotations"] = said
    local = local_queue(NAMESPACE, "all")
    world.snapshot = with_queues(world.snapshot, flavor("any"), queue, local)
    return world


def look_at(
    world: World, reservations: Reservations, now_s: int = NOW
) -> dict[str, str]:
    """Look once, as whoever leads; names who must go for whom."""
    preempting = reservations.preempting
    outlook = Outlook(
        snapshot=preempting.see(world.snapshot),
        now_s=now_s,
        asker_of=world.asker,
        patience_s=0,
    )
    answer_all(reservations.look(outlook), allocate)
    return {
        victim.record.name: plan.reservation.record.name
        for plan in preempting.plans
        for victim in plan.victims
    }


def full(delay: str = "5m", **policy: Any) -> World:
    """Make two full nodes, and a gang that has waited for 5 minutes for one of them."""
    world = queued(World(nodes=2), delay, **(policy or WITHIN))
    world.start("old", at_s=0)
    world.start("young", at_s=600)
    world.wait_for("waits", at_s=NOW - 300, priority=1)
    return world


def test_the_cheapest_goes_after_the_delay_and_its_place_is_kept() -> None:
    world, reservations = full(), Reservations()
    assert look_at(world, reservations, NOW - 1) == {}
    assert look_at(world, reservations) == {"young": "waits"}
    (kept,) = reservations.book.kept
    assert kept.start_s == NOW + LIMIT_S
    assert kept.quota is not None
    placed = world["young"].placed
    assert placed is not None
    assert [pod.node for pod in kept.members] == [pod.node for pod in placed.members]
    assert kept.after == (world["young"].key,)


def test_nobody_goes_where_the_queue_says_nothing() -> None:
    assert look_at(full(delay=""), Reservations()) == {}
    assert look_at(full(delay="never"), Reservations()) == {}
    never = full(withinClusterQueue="Never")
    assert look_at(never, Reservations()) == {}


def test_one_plan_makes_go_once() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    (said,) = plan.mark(world.snapshot)
    assert said.preempted is not None
    assert said.preempted.preemptor == world["waits"].key
    world.snapshot = believe(world.snapshot, [said])
    assert plan.mark(world.snapshot) == ()
    assert world["young"].placed_since_s == 600
    # As another leader finds it: it is kept, and nobody else goes.
    for leader in (reservations, Reservations()):
        assert look_at(world, leader, NOW + 1) == {}
    world.wait_for("too", at_s=0, priority=1)
    assert look_at(world, reservations, NOW + 2) == {"old": "too"}


def test_who_did_not_go_in_time_stays_and_nobody_else_goes_soon() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    world.snapshot = believe(world.snapshot, plan.mark(world.snapshot))
    late = NOW + LIMIT_S + 1
    assert world["young"].preempted_at(late) is None
    assert look_at(world, reservations, late) == {}
    assert look_at(world, reservations, late + REST_S) == {"young": "waits"}


def test_who_was_to_go_for_a_gang_that_is_gone_stays() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    world.snapshot = believe(world.snapshot, plan.mark(world.snapshot))
    assert list(list_void(world.snapshot, NOW + 1)) == []
    world.cancel("waits")
    (stays,) = list_void(world.snapshot, NOW + 1)
    world.snapshot = believe(world.snapshot, [stays])
    assert world["young"].preempted_at(NOW + 2) is None
    assert list(list_void(world.snapshot, NOW + 2)) == []


def test_a_plan_that_does_not_hold_any_more_is_dropped() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    world.cancel("young")
    assert plan.mark(world.snapshot) == ()
    reservations.preempting.see(world.snapshot)
    assert reservations.preempting.plans == ()


def test_whose_growth_was_refused_goes_and_stays_as_others() -> None:
    """Its decision is repeated as it was made, or the refusal would be of all of it."""
    world, reservations = full(), Reservations()
    world.refuse_growth("young")
    assert look_at(world, reservations) == {"young": "waits"}
    (plan,) = reservations.preempting.plans
    world.snapshot = believe(world.snapshot, plan.mark(world.snapshot))
    assert world["young"].preempted_at(NOW) is not None
    world.cancel("waits")
    world.snapshot = believe(world.snapshot, list_void(world.snapshot, NOW + 1))
    assert world["young"].phase is GangPhase.ALLOCATED


def test_nobody_goes_for_a_gang_that_is_to_start_elsewhere() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    world.snapshot = without_gangs(world.snapshot, [world["old"]])
    assert look_at(world, reservations, NOW + 1) == {}
    (kept,) = reservations.book.kept
    assert kept.start_s == NOW + 1


@pytest.mark.parametrize(
    ("delay", "policy"),
    [
        ("", WITHIN),
        ("never", WITHIN),
        ("soon", WITHIN),
        ("5m", {"withinClusterQueue": "Never"}),
        ("5m", {"reclaimWithinCohort": "Any"}),
    ],
)
def test_who_was_to_go_stays_once_the_queue_lets_nobody_go(
    delay: str, policy: dict[str, Any]
) -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    marked = believe(world.snapshot, plan.mark(world.snapshot))
    queued(world, delay, **policy)
    assert plan.mark(world.snapshot) == ()
    world.snapshot = marked
    assert list(list_void(queued(world, "0s", **WITHIN).snapshot, NOW + 1)) == []
    (stays,) = list_void(queued(world, delay, **policy).snapshot, NOW + 1)
    assert stays.uid == "young"


def test_who_was_to_go_stays_for_one_of_its_own_priority() -> None:
    """Both may have changed since."""
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    world.submit("waits", at_s=NOW - 300, priority=0)
    assert world["waits"].key in world.snapshot.waiting
    assert plan.mark(world.snapshot) == ()


def test_who_starts_soon_makes_nobody_go() -> None:
    world = queued(World(nodes=1), **WITHIN)
    world.start("ends", at_s=NOW - 3500, duration="1h")
    world.wait_for("waits", at_s=0, priority=1)
    assert look_at(world, Reservations()) == {}
    world = queued(World(nodes=1), **WITHIN)
    world.start("ends", at_s=NOW - 3000, duration="1h")
    world.wait_for("waits", at_s=0, priority=1)
    assert look_at(world, Reservations()) == {"ends": "waits"}


def test_what_becomes_free_is_kept_from_those_who_went() -> None:
    world, reservations = full(), Reservations()
    look_at(world, reservations)
    again = structs.replace(world.submit("again"), waits_since_s=NOW)
    assert reservations.list_aside(again, NOW + 1)


def test_who_goes_has_its_place_until_its_pods_are_gone() -> None:
    """What is kept holds meanwhile, and nobody else goes."""
    world, reservations = full(), Reservations()
    world.run("young")
    look_at(world, reservations)
    (plan,) = reservations.preempting.plans
    world.snapshot = believe(world.snapshot, plan.mark(world.snapshot))
    assert not is_leaving(world.snapshot, world["young"])
    assert look_at(world, reservations, NOW + 1) == {}
    world.cancel("young", reason=f"{PUBLISHER}{PREEMPTED}: for waits")
    assert is_leaving(world.snapshot, world["young"])
    for now_s, late_s in ((5, 0), (LIMIT_S + 5, 60), (LIMIT_S + 59, 60), (190, 120)):
        assert look_at(world, reservations, NOW + now_s) == {}
        (kept,) = reservations.book.kept
        assert kept.key == world["waits"].key
        # It does not move with each look.
        assert kept.start_s == NOW + LIMIT_S + late_s
    young = world["young"]
    world.snapshot = without_gangs(world.snapshot, [young])
    assert not is_leaving(world.snapshot, young)


def test_a_claim_that_outlives_its_pods_holds_nobody() -> None:
    world = full()
    world.run("young")
    world.cancel("young", reason=f"{PUBLISHER}{PREEMPTED}: for waits")
    young = world["young"]
    assert young.placed is not None
    world.snapshot = without_gangs(world.snapshot, [young])
    for each in young.placed.members[0].claims:
        free = claim(name=each.ref.name)
        world.snapshot = observe(world.snapshot, str(each.ref), free)
        world.snapshot = apply(world.snapshot, young.placed, sequence=99)
    assert not is_leaving(world.snapshot, world["young"])


def test_who_is_cancelled_by_others_is_let_go_at_once() -> None:
    world = full()
    world.run("young")
    world.cancel("young", reason="no more")
    assert not is_leaving(world.snapshot, world["young"])
