"""Gangs in domains of nodes, placed one after the other, whatever their pods ask for.

Packing decides batches with such gangs together. Where pods ask for what it does not
know (alternatives, all devices of a node), and for a gang alone, which should leave
much to pods that are expected, they are placed in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from solver.engines.blocks import Instance, find_without_tree, make_blocks
from solver.engines.choose import PATTERN, choose_engine
from solver.engines.greedy.search import GreedySearch
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.kinds.topology import without_spanning_rules
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import DEVICE, MAX_SIZE, ExpectedPart, Problem

MOST_KINDS = 256
"""Member kinds whose room is counted beside each other."""
Placements = tuple[GangPlacement, ...]


def place_alone(problem: Problem, demand: Demand) -> Placements:
    """Place the only gang of a batch; nothing: it is not found, or not of this sort.

    With its first choices where that can be, where what is expected loses least.
    """
    if len(demand.gangs) != 1 or demand.is_elastic:
        return ()
    search = _make_search(problem, demand, problem.expected)
    try:
        return () if search is None else search.run([0])
    except PatternLimitError:
        return ()


def place_in_order(problem: Problem, gangs: Sequence[GangPart]) -> Placements:
    """Place the gangs that are of this sort, on a cluster as it is; not all may fit.

    The largest come first, or those that are worth most for what they ask. `gangs` are
    numbered as they stand.
    """
    search = _make_search(problem, Demand(gangs), None)
    if search is None:
        return ()
    sizes = [sum(m.asked * m.count for m in gang.members) or 1 for gang in gangs]
    best: Placements = ()
    try:
        for keys in (sizes, [g.weight / s for g, s in zip(gangs, sizes, strict=True)]):
            order = sorted(range(len(gangs)), key=lambda gang: -keys[gang])
            placed = search.run(order)
            best = max((best, placed), key=lambda found: _weigh(gangs, found))
            if len(best) == len(gangs):
                break
    except PatternLimitError:
        return best
    return best


def _weigh(gangs: Sequence[GangPart], placements: Placements) -> int:
    return sum(gangs[item.gang].weight for item in placements)


def _make_search(
    problem: Problem, demand: Demand, expected: Iterable[ExpectedPart] | None
) -> GreedySearch | None:
    """Prepare to place gangs, each as a tree of blocks; None: some are no such trees.

    `expected`: for whom room is kept; None: for pods as these.
    """
    bare = Demand(map(without_spanning_rules, demand.gangs))
    if len(bare.member_kinds) > MOST_KINDS or not _has_trees(demand):
        return None
    bare = Demand(bare.gangs, expected=_samples(bare) if expected is None else expected)
    # Rules that span pods leave no trace in what is asked of nodes but the labels.
    query = structs.replace(bare.query, labels=demand.query.labels)
    kinds = find_node_kinds(problem, query)
    if choose_engine(bare, kinds).engine != PATTERN:
        return None
    return GreedySearch(bare, kinds, trees=_make_trees(demand, bare, kinds))


def _has_trees(demand: Demand) -> bool:
    """True if each rule that spans pods makes a block of a tree."""
    if find_without_tree(demand):
        return False
    for rules in demand.gang_rules:
        named = {(rule.key, kind) for rule in rules.together for kind in rule.kinds}
        # In a group of one, a pod needs the label alone.
        if any((key, kind) not in named for key, own in rules.placed for kind in own):
            return False
    return True


def _make_trees(
    demand: Demand, bare: Demand, kinds: Iterable[NodeKind]
) -> list[tuple[Instance, ...]]:
    """Make the blocks of all gangs, of member kinds without rules that span pods."""
    labels = range(len(demand.query.labels))
    domains = {n: len({kind.shape.domains[n] for kind in kinds}) for n in labels}
    number_of = [0] * len(demand.member_kinds)
    for members, bare_members in zip(demand.cells_of, bare.cells_of, strict=True):
        for cells, (one,) in zip(members, bare_members, strict=True):
            for cell in cells:
                number_of[cell.kind] = one.kind
    made = make_blocks(demand, number_of, domains)
    return [instances for _, instances in made]


def _samples(demand: Demand) -> list[ExpectedPart]:
    """Expect a pod of each kind."""
    samples = dict[int, MemberPart]()
    for gang, members in zip(demand.gangs, demand.cells_of, strict=True):
        for member, (cell,) in zip(gang.members, members, strict=True):
            samples.setdefault(cell.kind, member)
    return [
        ExpectedPart(
            member=member,
            weight=1,
            size=min(demand.member_kinds[kind].asked * DEVICE, MAX_SIZE),
        )
        for kind, member in sorted(samples.items())
    ]
