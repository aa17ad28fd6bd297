"""The ways to place a pod on a node are those that trying every device finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from contracts.claim import DeviceRequest, DeviceSubRequest
from contracts.device import Device
from solver.cel.evaluator import SelectorEvaluator
from solver.engines.choose import PATTERN, choose_engine
from solver.engines.pattern.states import placing
from solver.engines.pattern.states.graph import number_attributes
from solver.engines.pattern.states.placing import StateReduction, list_placements
from solver.engines.pattern.states.pruning import collect_device_demands
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeShape
from solver.problem.problem import Problem
from tests.builders import (
    NODE,
    counter_set,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.draw.crowds import of_type as selecting
from tests.draw.crowds import world
from tests.draw.drawn import drawn
from tests.lab.soak import sized
from tests.oracles.brute_placements import (
    TooManyWaysError,
    Use,
    every_way,
    fingerprint,
    left_of,
)

PROBLEMS = sized(400, 10_000)
AT_ONCE = 100
HALF = {"card": {"eighths": 4}}
STATES = 4
"""States that are gone on from, of those that a first pod leaves."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


def reduction_of(demand: Demand, *, keeps_all: bool) -> StateReduction:
    """Return what of a batch decides which states are one, as the graph does."""
    kinds = enumerate(demand.query.requests)
    return StateReduction(
        attributes=number_attributes(demand),
        demands=collect_device_demands(demand.member_kinds),
        whole_kinds=sum(1 << k for k, kind in kinds if kind.all_devices),
        keeps_all=keeps_all,
    )


def compare(
    member: MemberKind, shape: NodeShape, reduction: StateReduction
) -> list[NodeShape]:
    """Compare the ways on a state with all there are; gives what these leave.

    Every way is a true one, too: its uses leave what it says, at the rank it says.
    """
    state = reduction.apply(shape).shape
    best: dict[str, int] = {}
    raw: dict[NodeShape, None] = {}
    for rank, after in every_way(member, shape):
        name = fingerprint(reduction.apply(after).shape, reduction.attributes)
        best[name] = min(rank, best.get(name, rank))
        raw[after] = None
    found: dict[str, int] = {}
    for way in list_placements(member, state, reduction).placements:
        name = fingerprint(way.after, reduction.attributes)
        found[name] = min(way.rank, found.get(name, way.rank))
        left = left_of(member, state, uses_of(way.uses, state))
        assert left is not None
        assert fingerprint(reduction.apply(left).shape, reduction.attributes) == name
        asks = {(member.asks[a].request, member.asks[a].rank) for a, _ in way.uses}
        assert asks <= set(enumerate(way.alternatives))
        assert sum(way.alternatives) == way.rank
    assert found == best
    note(member, state, found)
    return list(raw)


def uses_of(uses: tuple[placing.Use, ...], state: NodeShape) -> list[Use]:
    """Choose devices for uses of groups: the next of those that nobody shares."""
    taken: Counter[int] = Counter()
    found = []
    for a, group in uses:
        shared = state.groups[group].is_shareable
        found.append(Use(a, (group, 0 if shared else taken[group])))
        taken[group] += 1
    return found


def note(member: MemberKind, state: NodeShape, found: dict[str, int]) -> None:
    """Count what this was about."""
    SEEN["some" if found else "none"] += 1
    if not found:
        return
    SEEN.update(
        {
            "several ways": len(found) > 1,
            "match": any(not c.distinct for c in member.constraints),
            "distinct": any(c.distinct for c in member.constraints),
            "alternatives": any(ask.rank for ask in member.asks),
            "ranks": any(found.values()),
            "all": any(ask.all_devices for ask in member.asks),
            "claims": len(member.claims) > 1,
            "counters": any(group.traits.draws for group in state.groups),
            "groups": any(group.traits.groups for group in state.groups),
            "shares": any(group.is_shareable for group in state.groups),
            "lists": any(len(v) > 1 for g in state.groups for v in g.values),
        }
    )


def check(problem: Problem, draw: random.Random, context: str) -> None:
    """Compare on each node for each pod, then for another pod after it."""
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    if not demand.gangs or choose_engine(demand, kinds).engine != PATTERN:
        SEEN["skipped"] += 1
        return
    reduction = reduction_of(demand, keeps_all=draw.random() < 0.3)
    for kind in kinds:
        shape = structs.replace(
            kind.shape, free=(), all_free=kind.shape.all_free & reduction.whole_kinds
        )
        for pod in demand.member_kinds:
            try:
                left = compare(pod, shape, reduction)
                for state in draw.sample(left, min(STATES, len(left))):
                    compare(draw.choice(demand.member_kinds), state, reduction)
            except (TooManyWaysError, PatternLimitError):
                SEEN["not tried"] += 1
            except AssertionError as error:
                error.add_note(f"{context}, node {kind.nodes[0].name}")
                raise


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_ways_are_those_of_brute_force(
    first: int, evaluator: SelectorEvaluator
) -> None:
    """They leave the same, at the same ranks; on fresh nodes and on used ones."""
    for seed in range(first, first + AT_ONCE):
        draw = random.Random(f"placements {seed}")
        problem, _ = drawn(seed, evaluator, nodes=1)
        check(problem, draw, f"seed {seed}")
        if seed % 4 == 0:
            small = world(seed, nodes=(1, 1), gangs=(1, 3)).problem
            check(small, draw, f"crowd {seed}")


def of_type(name: str, rank: int = 0) -> DeviceSubRequest:
    """Ask for a device of a type, as an alternative of its own name."""
    return sub_request(f"{name}-{rank}", select=selecting(name))


def typed(name: str, **fields: Any) -> Device:
    return device(name, attributes={"type": name.partition("-")[0]}, **fields)


VF: dict[str, Any] = {
    "capacity": {"gbps": 4},
    "allow_multiple_allocations": True,
    "consumes": {"card": {"eighths": 5}},
}
CASES: dict[str, tuple[tuple[Device, ...], tuple[DeviceRequest, ...]]] = {
    "a shared device draws once": (
        (typed("vf-0", **VF), typed("vf-1", **VF), typed("half", consumes=HALF)),
        (
            request("one", select=selecting("vf"), capacity={"gbps": 2}),
            request("two", select=selecting("vf"), capacity={"gbps": 1}),
        ),
    ),
    "the best ranks of two orders": (
        (typed("a"), typed("b"), typed("c")),
        (
            request("one", first_available=[of_type("a"), of_type("c", 1)]),
            request(
                "two", first_available=[of_type("a"), of_type("b", 1), of_type("c", 2)]
            ),
        ),
    ),
    "all are had together or not at all": (
        (typed("a-0"), typed("a-1"), typed("b", consumes=HALF)),
        (
            request("some", select=selecting("b")),
            request("all", select=selecting("a"), mode="All"),
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rare_ways_are_those_of_brute_force(case: str) -> None:
    """What is seldom drawn: on a fresh node and on used ones."""
    devices, asked = CASES[case]
    made = pool(*devices, counters=[counter_set("card", eighths=9)])
    asking = gang(member(member_claim(*asked)))
    problem = problem_of(snapshot_of({NODE: [made]}, [asking]))
    before = SEEN["some"]
    check(problem, random.Random(case), case)
    assert SEEN["some"] > before


def test_every_rule_was_met() -> None:
    """The law above is about all rules, and about yes and no."""
    rules = "match distinct alternatives ranks all claims counters groups shares lists"
    rare = [rule for rule in rules.split() if SEEN[rule] < PROBLEMS // 60]
    assert not rare, (rare, SEEN)
    assert SEEN["several ways"] > SEEN["some"] // 5, SEEN
    assert SEEN["none"] > SEEN["some"] // 10, SEEN
    assert SEEN["not tried"] < SEEN["some"] // 10, SEEN
