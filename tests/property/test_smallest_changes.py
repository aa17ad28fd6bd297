"""A change that is offered lets the gang in, and no part of it can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

import pytest
from msgspec import structs

from contracts.features import Features
from contracts.ids import GangKey
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.problem import Problem
from solver.problem.quota.quotas import keep_quotas
from solver.timeline.altered import with_ended, with_gang, with_nodes, with_pods
from solver.timeline.asking import answer_all
from solver.timeline.candidates import may_end
from solver.timeline.changes import ChangeSearch, SmallestChange
from solver.timeline.holdings import Holding, read_holding
from solver.timeline.quota_raises import Raises, list_raises, with_raises
from solver.timeline.terms import without_term
from tests.draw.quota_trees import FLAVORS, draw_gangs, draw_nodes, run, world
from tests.draw.victim_worlds import (
    NOW_S,
    VictimWorld,
    draw_counted,
    draw_ruled,
    draw_shared,
)
from tests.lab.soak import sized
from tests.oracles.brute_queues import BruteQueues, Node, Wanted

SLICES = 2


def find(drawn: VictimWorld, problem: Problem) -> list[SmallestChange]:
    held = hold(drawn)
    legal = [c for c in drawn.candidates if may_end(c.record, drawn.waits)]
    search = ChangeSearch(problem, drawn.waits.key, legal, held, NOW_S)
    found = (answer_all(asking, allocate) for asking in search.searches())
    return [change for changes in found for change in changes]


def hold(drawn: VictimWorld) -> dict[GangKey, Holding]:
    snapshot = drawn.world.snapshot
    return {c.record.key: read_holding(snapshot, c.record) for c in drawn.candidates}


def apply(drawn: VictimWorld, problem: Problem, change: SmallestChange) -> Problem:
    """Change a Problem so, by what the change says alone."""
    (gang,) = problem.gangs
    held, used = hold(drawn), dict[str, int]()
    for holding in held.values():
        for name, amount in holding.amounts.get(change.like, {}).items():
            used[name] = used.get(name, 0) + amount
    problem = with_ended(problem, [held[key] for key in change.end])
    if change.nodes:
        problem = with_nodes(problem, change.like, change.nodes, used)
    if change.without:
        gang = without_term(gang, change.without) or gang
    return with_gang(problem, with_pods(gang, change.pods))


def less_of(change: SmallestChange, asked: dict[str, int]) -> Iterator[SmallestChange]:
    """Leave a part of a change out, each in turn."""
    for ended in combinations(change.end, max(len(change.end) - 1, 0)):
        if change.end:
            yield structs.replace(change, end=ended)
    if change.nodes:
        yield structs.replace(change, nodes=change.nodes - 1)
    for name, count in change.pods.items():
        if count < asked[name]:
            yield structs.replace(change, pods={name: count + 1})


@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("draw", [draw_counted, draw_ruled, draw_shared])
def test_no_part_can_be_left_out(draw: Callable[[int], VictimWorld], part: int) -> None:
    helped = 0
    for seed in range(part, sized(40, 500), SLICES):
        drawn = draw(seed)
        asker = drawn.world.asker(drawn.waits)
        problem = asker.question(drawn.world.snapshot, drawn.waits)
        if not allocate(problem).gangs[0].reasons:
            continue
        asked = {member.name: member.count for member in problem.gangs[0].members}
        for change in find(drawn, problem):
            answer = allocate(apply(drawn, problem, change)).gangs[0]
            assert change.helps == (not answer.reasons), (seed, change)
            for less in less_of(change, asked) if change.helps else ():
                without = allocate(apply(drawn, problem, less)).gangs[0]
                assert without.reasons, (seed, change, less)
            helped += change.helps
    assert helped


def lets_in(
    queues: BruteQueues, nodes: list[Node], gang: Wanted, raises: Raises
) -> bool:
    """True if quota lets a gang in once some is larger, by the plain reference."""
    larger = BruteQueues([raise_node(node, raises) for node in nodes], FLAVORS)
    larger.used = queues.used
    return bool(larger.fit(gang))


def raise_node(node: Node, raises: Raises) -> Node:
    quotas = dict(node.quotas)
    for each in raises:
        if (each.is_cohort, each.name) == (node.is_cohort, node.name):
            where = each.flavor, each.resource
            own, borrowing, lending = quotas[where]
            if each.is_limit:
                borrowing = each.amount
            else:
                own = each.amount
            quotas[where] = own, borrowing, lending
    return structs.replace(node, quotas=quotas)


def one_less(raises: Raises, number: int) -> Raises:
    less = structs.replace(raises[number], amount=raises[number].amount - 1)
    return (*raises[:number], less, *raises[number + 1 :])


def test_a_unit_of_quota_less_is_not_enough() -> None:
    """Of each ClusterQueue's own, and of what it or a cohort of it may borrow."""
    seen = set[tuple[bool, bool]]()
    for seed in range(sized(150, 2_000)):
        random = Random(seed)
        nodes = draw_nodes(random, limited=0.9)
        gangs = draw_gangs(random, nodes)
        queues = BruteQueues(nodes, FLAVORS)
        queues.order(gangs)
        _, snapshot = run(world(nodes, gangs), 1)
        records = {r.submission_sequence: r for r in snapshot.waiting.values()}
        for gang in gangs:
            if gang.age not in records:
                continue
            asked = resolve_gangs(snapshot, [records[gang.age]], Features())
            found = list_raises(snapshot, asked[0])
            assert found, seed
            for raises in found:
                (kept,) = keep_quotas(with_raises(snapshot, raises), asked).gangs
                assert not kept.refused, (seed, raises)
                assert lets_in(queues, nodes, gang, raises), (seed, raises)
                for number, each in enumerate(raises):
                    less = one_less(raises, number)
                    assert not lets_in(queues, nodes, gang, less), (seed, raises, each)
                    seen.add((each.is_cohort, each.is_limit))
    assert seen == {(False, False), (False, True), (True, True)}
