"""What each gang's end makes room for, by counting."""

from __future__ import annotations

from contracts.gang import Member
from solver.tiers import Tier
from solver.timeline.counting import Counts, Limit, count_joint_room, count_room
from solver.timeline.holdings import read_holding
from tests.builders import member, member_claim, request, topology_rule
from tests.builders.timeline import World, worker


def count(world: World, *gangs: str) -> Counts:
    """Count the room for the gang `waits` once others end."""
    waits = world["waits"]
    problem = world.asker(waits).question(world.snapshot, waits, Tier.GANGS)
    return count_room(
        problem,
        problem.gangs[0],
        [read_holding(world.snapshot, world[name]) for name in gangs],
    )


def test_devices_and_resources_limit_the_pods_of_a_node() -> None:
    world = World(nodes=1)
    world.start("runs", gpus=6, cpu=60)
    world.submit("waits", pods=3, gpus=2, cpu=4)

    counts = count(world, "runs")

    assert counts.pods == (3,)
    ((node,),) = [region.nodes for region in counts.regions]
    assert node.most == ((0, 4),)
    limits = {limit.needs: (limit.left, limit.given) for limit in node.limits}
    assert limits[(0, 2),] == (2, ((0, 6),))
    assert limits[(0, 4000),] == (4000, ((0, 60_000),))
    assert counts.regions[0].gangs == (0,)


def test_devices_of_others_stay_held() -> None:
    world = World(nodes=1)
    world.start("stays", gpus=5)
    world.start("runs", gpus=3)
    world.submit("waits", pods=2, gpus=2)

    ((node,),) = [region.nodes for region in count(world, "runs").regions]

    assert node.most == ((0, 1),)
    assert (((0, 2),), 0, ((0, 3),)) in [
        (x.needs, x.left, x.given) for x in node.limits
    ]


def test_each_domain_is_a_region_of_its_own() -> None:
    world = World(nodes=4, rack=2)
    rack = topology_rule()
    world.submit("waits", pods=2, topology=(rack,))
    spread = topology_rule(max_per_domain=1)

    regions = [[n.name for n in region.nodes] for region in count(world).regions]
    world.submit("waits-too", pods=2, topology=(spread,))

    assert regions == [["n-0", "n-1"], ["n-2", "n-3"]]


def test_all_devices_of_a_node_wait_for_each_who_has_one() -> None:
    world = World(nodes=1)
    world.start("a", gpus=1)
    world.start("b", gpus=1)
    world.submit_members("waits", member(member_claim(request(mode="All"))))

    ((node,),) = [region.nodes for region in count(world, "a", "b").regions]

    assert sorted(node.blocked) == [(0, 0), (0, 1)]


def test_shares_limit_the_pods_by_capacity() -> None:
    world = World(1, 2, capacity={"m": 10}, allow_multiple_allocations=True)
    world.start_members("runs", shares(2, 6))
    world.submit_members("waits", shares(3, 3))

    ((node,),) = [region.nodes for region in count(world, "runs").regions]

    unit = 10**9
    assert Limit(((0, 3 * unit),), 8 * unit, ((0, 12 * unit),)) in node.limits


def shares(count: int, amount: int) -> Member:
    """Make pods that each share a device."""
    return member(member_claim(request(capacity={"m": amount})), count=count)


def test_kinds_of_pods_share_what_a_node_has() -> None:
    world = World(nodes=1)
    world.submit_members("waits", worker(1, 2, name="a"), worker(2, 3, name="b"))

    counts = count(world)

    assert counts.pods == (1, 2)
    ((node,),) = [region.nodes for region in counts.regions]
    assert any(sorted(limit.needs) == [(0, 2), (1, 3)] for limit in node.limits)


def test_gangs_that_are_placed_together_are_counted_by_kind() -> None:
    world = World(nodes=2)
    world.submit("one", pods=3, gpus=2)
    world.submit("two", pods=1, gpus=2)
    world.submit("three", pods=2, gpus=8)
    records = [world[name] for name in ("one", "two", "three")]
    asker = world.asker(*records)
    problem = asker.question_together(world.snapshot, records, Tier.GANGS)

    counts = count_joint_room(problem, problem.gangs, [])

    assert counts.pods == (((0, 3),), ((0, 1),), ((1, 2),))
    assert counts.kinds == 2
    assert [node.name for node in counts.nodes] == ["n-0", "n-1"]
    assert counts.nodes[0].most == ((0, 4), (1, 1))
