"""The clusters and gangs of benchmarks are what their descriptions promise."""

from __future__ import annotations

import random

from benchmarks.worlds import many_worlds, mixed_nodes, mixed_pods, same_kinds
from benchmarks.worlds.demand import MOST_PODS
from benchmarks.worlds.objects import NUMA_NODE, PCIE_ROOT
from contracts.messages import SubmitGang
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.snapshot.parts import PoolPart, UsePart
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders.problems import problem_of

NODES = 300


def pools(snapshot: Snapshot) -> list[PoolPart]:
    values = snapshot.inventory.pages.values()
    return [value for value in values if isinstance(value, PoolPart)]


def taken(snapshot: Snapshot) -> int:
    values = snapshot.inventory.pages.values()
    return sum(len(value.taken) for value in values if isinstance(value, UsePart))


def pods(gangs: list[SubmitGang]) -> list[int]:
    return [sum(member.count for member in m.gang.spec.members) for m in gangs]


def test_nodes_of_few_kinds_stay_of_few_kinds() -> None:
    """However many nodes there are."""
    snapshot, _ = same_kinds.cluster(NODES, 1)
    for age, message in enumerate(same_kinds.full_demand(1000, 1), start=1):
        snapshot = apply(snapshot, message, sequence=age)
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    assert len(demand.member_kinds) == 7
    assert 10 <= len(find_node_kinds(problem, demand.query)) <= 15


def test_every_gpu_has_an_id_and_a_root_of_its_own() -> None:
    """As real drivers publish."""
    found = [d for pool in pools(same_kinds.cluster(20, 1)[0]) for d in pool.devices]
    assert len(found) == 20 * same_kinds.GPUS
    for name in ("uuid", PCIE_ROOT):
        assert len({device.attributes[name] for device in found}) == len(found)
    assert len({device.attributes[NUMA_NODE] for device in found}) == 2


def test_what_is_free_is_what_nobody_holds() -> None:
    """The count that is promised is the count that is made."""
    snapshot, free = same_kinds.cluster(NODES, 1)
    assert free == NODES * same_kinds.GPUS - taken(snapshot)
    assert 0.6 < free / (NODES * same_kinds.GPUS) < 0.69


def test_a_full_cluster_has_nothing_free() -> None:
    """Every device is held."""
    snapshot, free = same_kinds.cluster(20, 1, free=0.0)
    assert free == 0
    assert taken(snapshot) == 20 * same_kinds.GPUS


def test_gangs_ask_for_more_than_there_is() -> None:
    """So that somebody has to wait."""
    gangs = list(same_kinds.full_demand(1000, 1))
    asked = [
        member.count * request.exactly.count
        for message in gangs
        for member in message.gang.spec.members
        for claim in member.claims
        if claim.spec
        for request in claim.spec.devices.requests
        if request.exactly
    ]
    assert 1300 <= sum(asked) < 1300 + 8 * MOST_PODS
    assert {1, MOST_PODS} <= set(pods(gangs)) <= set(range(1, MOST_PODS + 1))


def test_one_seed_makes_one_cluster() -> None:
    """Byte for byte, gangs included."""
    first, second = (mixed_nodes.cluster(20, 7)[0] for _ in range(2))
    assert [p.data for p in first.inventory.pages] == [
        p.data for p in second.inventory.pages
    ]
    assert list(mixed_pods.full_demand(99, 7)) == list(mixed_pods.full_demand(99, 7))


def test_mixed_nodes_have_eight_shapes_and_parts_that_draw_from_counters() -> None:
    """As their module promises."""
    snapshot, _ = mixed_nodes.cluster(NODES, 1)
    gpus = [pool for pool in pools(snapshot) if pool.driver == mixed_nodes.GPU]
    shapes = {
        tuple(
            (d.attributes["model"], (d.attributes[PCIE_ROOT].string_value or "")[-1])
            for d in pool.devices
        )
        for pool in gpus
    }
    assert len(shapes) == len(mixed_nodes.SHAPES) == 8
    parts = [
        device
        for pool in gpus
        for device in pool.devices
        if device.attributes["type"].string_value == "part"
    ]
    assert parts
    assert all(device.consumes_counters for device in parts)


def test_mixed_pods_are_of_thirty_kinds() -> None:
    """No two of them ask for the same."""
    kinds = mixed_pods.pod_kinds()
    assert len(kinds) == 30
    different = {(kind.claims, str(kind.node.resources)) for kind in kinds}
    assert len(different) == 30


def submissions(family: str, seed: int = 1) -> list[SubmitGang]:
    """Draw the gangs of a family."""
    return list(many_worlds.draw_world(many_worlds.FAMILIES[family], NODES, seed)[1])


def test_kept_cases_are_drawn_by_seed_from_a_family() -> None:
    """Each once."""
    assert len(set(many_worlds.KEPT_CASES)) == len(many_worlds.KEPT_CASES)
    assert {family for family, _, _ in many_worlds.KEPT_CASES} <= {
        *many_worlds.FAMILIES
    }


def test_families_change_the_size_of_gangs() -> None:
    """As their names promise."""
    assert set(pods(submissions("small gangs"))) == {1, 2, 3}
    assert set(pods(submissions("prime gangs"))) <= set(many_worlds.PRIMES)
    tail = pods(submissions("heavy-tailed gangs"))
    assert max(tail) > 5 * sorted(tail)[len(tail) // 2]
    assert min(pods(submissions("huge gangs"))) >= NODES // 8
    assert len(submissions("huge gangs")) < len(submissions("plain")) // 3


def test_families_change_how_many_kinds_of_pod_there_are() -> None:
    """No two of them ask for the same."""
    for count in (5, 30, 100):
        kinds = many_worlds.draw_pod_kinds(count, random.Random(1))
        assert len({(k.claims, str(k.node.resources)) for k in kinds}) == count


def test_families_change_supply_and_demand() -> None:
    """More is free, or more is asked for."""
    plain, more = len(submissions("plain")), len(submissions("demand 2.0"))
    assert 1.3 < more / plain < 1.8
    assert len(submissions("nearly full")) < plain < len(submissions("nearly empty"))


def test_one_seed_makes_one_world() -> None:
    """So that the worst one can be looked at again."""
    assert submissions("prime gangs", 3) == submissions("prime gangs", 3)
    assert submissions("prime gangs", 3) != submissions("prime gangs", 4)
