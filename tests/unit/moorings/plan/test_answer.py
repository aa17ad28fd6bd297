"""The answer names every claim of the input, in its order: what it gets, or why not."""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from contracts.codec import to_builtins
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from moorings.plan.answer import SolvedWork, _find_error_scope, make_plan
from moorings.plan.objects import PlanObject
from moorings.plan.plan import Plan
from moorings.plan.work import prepare_work
from solver.allocate import allocate
from tests import builders
from tests.builders.problems import problem_of

WORLD: tuple[WritableObject, ...] = (
    builders.device_class(builders.DEVICE_CLASS, "true"),
    builders.resource_slice(*builders.devices(2)),
)


def answer(*values: WritableObject) -> Plan:
    """Decide these objects beside two devices, and write the answer down."""
    entries = []
    for value in (*WORLD, *values):
        raw = to_builtins(to_kubernetes(value))
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    work = prepare_work(entries)
    problem = problem_of(work.snapshot)
    decision = allocate(problem)
    solved = SolvedWork(work=work, problem=problem, decision=decision)
    return make_plan([solved], evaluations=5, seconds=(0.1, 0.2))


def test_claims_come_in_the_order_of_the_input() -> None:
    """With their own names, and the node of their devices."""
    names = ("b", "a")
    plan = answer(*(builders.claim(name=name, uid=f"u-{name}") for name in names))
    assert [(claim.name, claim.uid) for claim in plan.claims] == [
        ("b", "u-b"),
        ("a", "u-a"),
    ]
    assert {claim.verdict for claim in plan.claims} == {"allocated"}
    assert {claim.node for claim in plan.claims} == {builders.NODE}


def test_a_claim_that_gets_nothing_says_why() -> None:
    """It has no node and no allocation."""
    (claim,) = answer(builders.claim(builders.request(count=3))).claims
    assert claim.verdict != "allocated"
    assert (claim.node, claim.allocation) == (None, None)
    assert claim.reasons


def test_a_gang_that_gets_nothing_names_each_of_its_claims() -> None:
    """By gang, member, index and claim, as they would be made."""
    plan = answer(builders.gang(builders.member(count=3)))
    assert [claim.name for claim in plan.claims] == [
        f"train-worker-{index}-gpus" for index in range(3)
    ]
    (gang,) = plan.gangs
    assert (gang.name, gang.members) == ("train", ())


def test_statistics_are_of_the_input() -> None:
    """Devices and nodes that are there, whoever gets them."""
    stats = answer(builders.claim()).stats
    assert stats is not None
    assert (stats.devices, stats.nodes) == (2, 1)
    assert (stats.selector_evaluations, stats.total_seconds) == (5, 0.2)


def test_an_error_reaches_as_far_as_it_says() -> None:
    """An attempt that was broken off says nothing of node or cluster."""
    scopes = [
        _find_error_scope(Reason(rule=Rule.WITHDRAWN, facts=facts))
        for facts in ({}, {"nodeOnly": 1}, {"aborted": 1, "nodeOnly": 1})
    ]
    assert scopes == ["cluster", "node", "aborted"]
