"""Gang after gang, each pod where it costs the least."""

from __future__ import annotations

from solver.engines.pattern.columns.greedy import Greedy
from solver.engines.pattern.columns.integer_master import Solution
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"


def pods_of(solution: Solution) -> int:
    """Count the pods that are placed."""
    return sum(
        pods * nodes
        for _, pattern, nodes in solution.uses
        for _, pods in pattern.counts
    )


def test_all_gangs_are_in_where_they_fit_one_by_one() -> None:
    """Every pod has its place, and no class more nodes than it has."""
    gangs = [gang(member(count=2), name=f"g{i}", uid=UID.format(i)) for i in range(3)]
    model = pattern_model(nodes_of_sizes(4, 4), *gangs)
    solution = Greedy(model).run()
    assert solution.gangs == model.data.available == (3,)
    assert pods_of(solution) == 6
    assert sum(nodes for _, _, nodes in solution.uses) <= 2


def test_the_first_gang_without_room_ends_it() -> None:
    """Smaller ones behind it are not taken in before it."""
    gangs = [
        gang(
            member(member_claim(request(count=count))), name=f"g{i}", uid=UID.format(i)
        )
        for i, count in enumerate((1, 5, 1))
    ]
    model = pattern_model(nodes_of_sizes(4), *gangs)
    assert sum(Greedy(model).run().gangs) == 1


def test_a_pod_leaves_whole_what_others_could_use() -> None:
    """Where pairs are expected, a single pod takes the odd device."""
    pair = member(member_claim(request(count=2)))
    model = pattern_model(nodes_of_sizes(4, 3), gang(), expected=[pair], size=2000)
    ((owner, _, nodes),) = Greedy(model).run().uses
    root = int(model.steps.roots[owner])
    state = model.graph.states[int(model.steps.states[root])]
    assert sum(group.size for group in state.groups) == 3
    assert nodes == 1
