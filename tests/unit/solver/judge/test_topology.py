"""The judge refuses what breaks a rule of a whole gang, one rule at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec import structs

from contracts.gang_rules import EVEN, GangConstraint, GangTopology
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from solver.allocate import allocate
from solver.decision import Decision, TierValue
from solver.judge.rules import judge
from solver.problem.growth.standing import HeldPart, StandingPart
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import (
    DRIVER,
    device,
    devices,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    topology_rule,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of

RACK, RAIL, SLOT = "example.com/rack", "example.com/rail", "example.com/slot"
BY_RAIL = f"attribute:{RAIL}"


@dataclass(frozen=True)
class Broken:
    """A rule, and what the judge says of an answer that was made without it."""

    rule: GangConstraint | GangTopology
    says: str


def answered() -> tuple[Problem, Decision]:
    """Place two pods `a` on n0 of rack r0 and one `b` on n1, which has no rack.

    On n0 a pod has rails 0 and 1, in two claims; on n1 rail 1 and a device without.
    """
    rails: dict[str, tuple[int | None, ...]] = {"n0": (0, 1, 0, 1), "n1": (1, None)}
    pools = {
        name: [
            pool(
                *(
                    device(
                        f"d{number}",
                        attributes={"slot": number}
                        if rail is None
                        else {RAIL: rail, SLOT: rail},
                    )
                    for number, rail in enumerate(listed)
                ),
                name=name,
            )
        ]
        for name, listed in rails.items()
    }
    claims = (member_claim(name="c"), member_claim(name="e"))
    asked = gang(
        member(*claims, name="a", count=2, node_name="n0"),
        member(*claims, name="b", node_name="n1"),
    )
    snapshot = observe_core(
        snapshot_of(pools, [asked]), node("n0", labels={RACK: "r0"}), node("n1")
    )
    problem = problem_of(snapshot)
    decision = allocate(problem)
    assert all(found.members for found in decision.gangs)
    return problem, decision


def with_rule(problem: Problem, rule: GangConstraint | GangTopology) -> Problem:
    """Ask the same with one rule more."""
    (asked,) = problem.gangs
    if isinstance(rule, GangConstraint):
        return problem.with_gangs((structs.replace(asked, constraints=(rule,)),))
    return problem.with_gangs((structs.replace(asked, topology=(rule,)),))


@pytest.mark.parametrize(
    "broken",
    [
        Broken(gang_constraint(RAIL), "gangAttributePresent: train has a device"),
        Broken(gang_constraint(RAIL, "a"), "gangAttributesMatch: train has no value"),
        Broken(
            gang_constraint(RAIL, "a", scope="Member"), "gangAttributesMatch: train/a "
        ),
        Broken(
            gang_constraint(RAIL, "b", scope="Pod"),
            "gangAttributePresent: train/b/0 has a device",
        ),
        Broken(
            gang_constraint(None, "a", "b/c", distinct=RAIL),
            "gangAttributesDistinct: train repeats a value",
        ),
        Broken(
            gang_constraint(None, "a", distinct=SLOT, scope="Member"),
            "gangAttributesDistinct: train/a repeats a value",
        ),
        Broken(topology_rule(RACK), "podHasDomain: train/b/0 has no example.com/rack"),
        Broken(topology_rule(RACK), "podsTogether: train is in several domains"),
        Broken(
            topology_rule("kubernetes.io/hostname"),
            "podsTogether: train is in several domains",
        ),
        Broken(
            topology_rule(RACK, max_per_domain=1),
            "domainNotCrowded: train has 2 pods in example.com/rack=r0",
        ),
        Broken(
            topology_rule(RACK, "b", group_size=EVEN),
            "podHasDomain: train/b/0 has no example.com/rack",
        ),
        Broken(topology_rule(BY_RAIL, "a"), "podHasDomain: train/a/0 has no"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_refused(broken: Broken) -> None:
    """By the name of the rule, and no other rule is broken."""
    problem, decision = answered()
    assert judge(problem, decision) == ()
    found = judge(with_rule(problem, broken.rule), decision)
    assert any(text.startswith(broken.says) for text in found), found


@pytest.mark.parametrize(
    ("racks", "says"),
    [
        ("aab", ("podsEven: train/worker is uneven over example.com/rack",)),
        ("aabb", ()),
        ("abc", ()),
    ],
)
def test_uneven_parts_are_refused(racks: str, says: tuple[str, ...]) -> None:
    pools = {
        name: [pool(*devices(racks.count(name)), name=name)] for name in set(racks)
    }
    asked = gang(member(count=len(racks)))
    nodes = [node(name, labels={RACK: name}) for name in pools]
    problem = problem_of(observe_core(snapshot_of(pools, [asked]), *nodes))
    problem.parameters = structs.replace(
        problem.parameters, last_tier=Tier.ALTERNATIVES
    )
    decision = allocate(problem)
    even = with_rule(problem, topology_rule(RACK, group_size=EVEN))
    assert judge(problem, decision) == ()
    assert judge(even, decision) == says


def test_each_domain_of_even_parts_costs_but_the_first() -> None:
    pools = {name: [pool(*devices(2), name=name)] for name in "abc"}
    rule = topology_rule(RACK, group_size=EVEN)
    asked = gang(member(count=4), topology=(rule,))
    nodes = [node(name, labels={RACK: name}) for name in pools]
    problem = problem_of(observe_core(snapshot_of(pools, [asked]), *nodes))
    decision = allocate(problem)
    tiers = {tier.tier: tier for tier in decision.objective}
    cost = tiers[Tier.TOPOLOGY]
    assert (cost.value, cost.bound) == (1, 1)
    objective = tuple(
        structs.replace(tier, value=0, bound=0) if tier is cost else tier
        for tier in decision.objective
    )
    found = judge(problem, structs.replace(decision, objective=objective))
    assert found == ("valueIsTrue: preferences cost 1, not [0]",)


HOST = "kubernetes.io/hostname"


def beside(
    problem: Problem, number: int, index: int, node: str, device: str
) -> Problem:
    """Ask the same of a gang that has one pod already, of member `a` or `b`."""
    (asked,) = problem.gangs
    name = DeviceID(DriverName(DRIVER), PoolName("n0"), DeviceName(device))
    held = HeldPart(claim="c", request="gpu", device=name)
    pod = StandingPart(
        member="ab"[number], index=index, node=NodeName(node), devices=(held,)
    )
    return problem.with_gangs((structs.replace(asked, standing=(pod,)),))


@pytest.mark.parametrize(
    ("rule", "pod", "says"),
    [
        (topology_rule(HOST, "a"), (0, 2, "n1", "d0"), "podsTogether: train is in"),
        (topology_rule(HOST, "a"), (0, 2, "n0", "d0"), ""),
        (
            topology_rule(HOST, "a", max_per_domain=2),
            (0, 2, "n0", "d0"),
            "domainNotCrowded: train has 3 pods in kubernetes.io/hostname=n0",
        ),
        (topology_rule(HOST, "a", max_per_domain=2), (0, 2, "n1", "d0"), ""),
        (
            topology_rule(HOST, "b", group_size=2),
            (1, 1, "n0", "d0"),
            "groupTogether: that of train/b/1 is in several",
        ),
        (topology_rule(HOST, "b", group_size=2), (1, 2, "n0", "d0"), ""),
        (
            gang_constraint(RAIL, "b/c"),
            (1, 1, "n0", "d0"),
            "gangAttributesMatch: train has no value",
        ),
        (gang_constraint(RAIL, "b/c"), (1, 1, "n0", "d1"), ""),
        (gang_constraint(RAIL, "b/c", scope="Pod"), (1, 1, "n0", "d0"), ""),
        (
            gang_constraint(None, "b/c", distinct=RAIL, scope="Member"),
            (1, 1, "n0", "d1"),
            "gangAttributesDistinct: train/b repeats",
        ),
        (gang_constraint(None, "b/c", distinct=RAIL), (1, 1, "n0", "d0"), ""),
        (
            gang_constraint(RAIL, "b/c"),
            (1, 1, "n0", "gone"),
            "gangAttributePresent: train has a device",
        ),
    ],
)
def test_rules_hold_beside_pods_that_have_their_place(
    rule: GangConstraint | GangTopology, pod: tuple[int, int, str, str], says: str
) -> None:
    """Over their devices and nodes and those of the new ones together."""
    problem, decision = answered()
    found = judge(with_rule(beside(problem, *pod), rule), decision)
    assert [text[: len(says)] for text in found] == ([says] if says else [])


def test_a_group_in_two_domains_is_refused() -> None:
    """Pods 0 and 1 of a member are a group of two; each on a node of its own."""
    pools = {name: [pool(name=name)] for name in ("n0", "n1", "n2")}
    snapshot = observe_core(
        snapshot_of(pools, [gang(member(count=3))]),
        *(node(f"n{number}", labels={RACK: f"r{number}"}) for number in range(3)),
    )
    problem = problem_of(snapshot)
    decision = allocate(problem)

    of_two = with_rule(problem, topology_rule(RACK, group_size=2))
    of_one = with_rule(problem, topology_rule(RACK, group_size=1))
    assert judge(of_two, decision) == (
        "groupTogether: that of train/worker/0 is in several of example.com/rack",
    )
    assert judge(of_one, decision) == ()


@pytest.mark.parametrize(
    "rule",
    [
        gang_constraint(RAIL, "a/c", "b/c", scope="Pod"),
        gang_constraint(RAIL, "a/c/gpu/none"),
        gang_constraint(None, "b/c", distinct=RAIL),
        topology_rule(RACK, "a"),
        topology_rule(RACK, "a", max_per_domain=2, group_size=2),
        topology_rule(BY_RAIL, "b"),
        topology_rule("kubernetes.io/hostname", max_per_domain=2),
    ],
)
def test_a_rule_that_holds_is_no_reason(rule: GangConstraint | GangTopology) -> None:
    """The same answer, and rules that it happens to keep."""
    problem, decision = answered()
    assert judge(with_rule(problem, rule), decision) == ()


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        (topology_rule(RACK, mode="Preferred"), 1),
        (topology_rule(RACK, "a", mode="Preferred"), 0),
        (topology_rule(BY_RAIL, mode="Preferred"), 2),
        (topology_rule(BY_RAIL, mode="Preferred", group_size=2), 1),
        (topology_rule(RACK, mode="Preferred", max_per_domain=1), 1),
        (topology_rule(BY_RAIL, mode="Preferred", group_size=2, max_per_domain=1), 1),
    ],
)
def test_what_preferences_cost_is_counted_again(rule: GangTopology, cost: int) -> None:
    """Any other value of the tier is refused; so is none."""
    problem, decision = answered()
    asked = with_rule(problem, rule)

    def saying(value: int) -> Decision:
        tier = TierValue(tier=Tier.TOPOLOGY, value=value, bound=None)
        return structs.replace(decision, objective=(*decision.objective, tier))

    assert judge(asked, saying(cost)) == ()
    for lie in (saying(cost + 1), saying(cost - 1), decision):
        (text,) = judge(asked, lie)
        assert text.startswith(f"valueIsTrue: preferences cost {cost}")
