"""Nodes for a gang with topology are found by counting; the model needs no others."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from contracts.gang import Gang
from solver.decision import Status
from solver.engines.direct.places import Places, choose_places
from solver.engines.solve import answer
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import devices, gang, member, node, pool, topology_rule
from tests.builders.problems import observe_core, problem_of, snapshot_of

RACK, BLOCK = "example.com/rack", "example.com/block"


def problem(racks: Mapping[str, tuple[int, ...]], asked: Gang) -> Problem:
    """Ask on racks, given by the devices of their nodes; two racks are a block."""
    pools, nodes = {}, []
    for number, (rack, sizes) in enumerate(racks.items()):
        for position, size in enumerate(sizes):
            name = f"{rack}-{position}"
            pools[name] = [pool(*devices(size), name=name)]
            labels = {RACK: rack, BLOCK: f"block{number // 2}"}
            nodes.append(node(name, labels=labels))
    return problem_of(observe_core(snapshot_of(pools, [asked]), *nodes))


def chosen(racks: Mapping[str, tuple[int, ...]], asked: Gang) -> Places | None:
    made = problem(racks, asked)
    demand = Demand(made.gangs)
    return choose_places(demand, find_node_kinds(made, demand.query))


def racks_of(places: Places) -> list[set[str]]:
    """List the racks of each cell."""
    return [
        {name.partition("-")[0] for name in places[kind]} for kind in sorted(places)
    ]


def test_the_tightest_domain_that_holds_all_is_chosen() -> None:
    """Three pods: a rack of three devices, not one of four."""
    racks = {"a": (2, 2), "b": (1, 1), "c": (1, 2)}
    found = chosen(racks, gang(member(count=3), topology=(topology_rule(RACK),)))
    assert found is not None
    assert racks_of(found) == [{"c"}]


def test_an_outer_domain_holds_whole_inner_groups() -> None:
    """Four groups of two: a block with odd racks has the devices, but not the pairs."""
    racks = {"a": (1, 2), "b": (2, 3), "c": (4,), "d": (2, 2, 1)}
    levels = (topology_rule(BLOCK), topology_rule(RACK, group_size=2))
    found = chosen(racks, gang(member(count=8), topology=levels))
    assert found is not None
    assert sorted(map(sorted, racks_of(found))) == [["c"], ["c"], ["d"], ["d"]]


def test_pods_that_are_spread_go_to_several_domains() -> None:
    """Two in each rack, however large it is."""
    racks = {"a": (4,), "b": (1, 4), "c": (2,)}
    rule = topology_rule(RACK, max_per_domain=2)
    found = chosen(racks, gang(member(count=6), topology=(rule,)))
    assert found is not None
    assert racks_of(found) == [{"a", "b", "c"}]
    assert chosen(racks, gang(member(count=7), topology=(rule,))) is None


def test_nothing_is_found_where_no_domain_is_large_enough() -> None:
    """Or where no node has the label."""
    racks = {"a": (2,), "b": (2,)}
    for key, pods in ((RACK, 3), ("no.such/label", 1)):
        asked = gang(member(count=pods), topology=(topology_rule(key),))
        assert chosen(racks, asked) is None


def test_the_model_of_many_groups_is_small() -> None:
    """64 pods in groups of 4 and 16 on 64 nodes: a few variables for each pod."""
    racks = {f"r{number:02}": (1,) * 8 for number in range(8)}
    levels = (
        topology_rule(RACK, group_size=4),
        topology_rule(BLOCK, group_size=16),
        topology_rule(BLOCK, group_size=8),
    )
    made = problem(racks, gang(member(count=64), topology=levels))
    made.parameters = structs.replace(made.parameters, last_tier=Tier.ALTERNATIVES)
    found = answer(made)
    assert found.status is Status.OPTIMAL
    assert found.tiers[0].value == 64
    assert found.statistics.variables < 64 * 4


def test_even_parts_are_in_the_fewest_domains_that_are_large_enough() -> None:
    """Twelve pods: no rack holds all, two hold six; of these the tightest."""
    racks = {"a": (8,), "b": (4, 3), "c": (5,), "d": (3, 3)}
    even = topology_rule(RACK, group_size="Even")
    found = chosen(racks, gang(member(count=12), topology=(even,)))
    assert found is not None
    assert racks_of(found) == [{"b", "d"}]
    assert chosen(racks, gang(member(count=27), topology=(even,))) is None


def test_finer_parts_are_tried_where_nodes_tear_coarser_ones() -> None:
    """Two racks hold six pods, but a limit leaves each four: three parts of four."""
    racks = {"a": (6,), "b": (6,), "c": (6,)}
    rules = (
        topology_rule(RACK, group_size="Even"),
        topology_rule(RACK, max_per_domain=4),
    )
    found = answer(problem(racks, gang(member(count=12), topology=rules)))
    assert found.status is Status.OPTIMAL
    assert [len(pods) for of in found.placements for pods in of.members] == [12]
    assert next(t.value for t in found.tiers if t.tier is Tier.TOPOLOGY) == 2


def test_the_fewest_parts_of_many_are_proven() -> None:
    """640 pods over racks of 37 to 40 nodes: sixteen of forty are too many racks."""
    racks = {f"r{number:02}": (1,) * (40 - number % 4) for number in range(40)}
    even = topology_rule(RACK, group_size="Even")
    made = problem(racks, gang(member(count=640), topology=(even,)))
    found = answer(made)
    assert found.status is Status.OPTIMAL
    assert next(t for t in found.tiers if t.tier is Tier.TOPOLOGY).value == 19
