"""A gang that its own rules keep out reads which domain comes nearest."""

from __future__ import annotations

import pytest

from contracts.allocation import Reason, Rule
from contracts.gang import Gang
from contracts.gang_rules import EVEN
from solver.allocate import allocate
from tests.builders import (
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of
from tests.builders.sharing import fabric, workers

RACK, RAIL = "rack", "a.b/rail"


def reason_of(asked: Gang) -> Reason:
    """Ask on four nodes of two devices, rail 0 and 1: three in r0, one in r1."""
    content = [device(f"d{rail}", attributes={RAIL: rail}) for rail in (0, 1)]
    names = [f"n{number}" for number in range(4)]
    snapshot = snapshot_of(
        {name: [pool(*content, name=name)] for name in names}, [asked]
    )
    racks = {name: "r1" if name == "n3" else "r0" for name in names}
    nodes = [node(name, labels={RACK: racks[name]}) for name in names]
    (decided,) = allocate(problem_of(observe_core(snapshot, *nodes))).gangs
    (reason,) = decided.reasons
    return reason


@pytest.mark.parametrize(
    ("asked", "rule", "message"),
    [
        (
            gang(member(count=7), topology=(topology_rule(RACK),)),
            Rule.GANG_TOPOLOGY,
            (
                "its 7 pods must be in one domain of rack; r0 has room for 6 of 7 "
                "pods, r1 for 2"
            ),
        ),
        (
            gang(member(count=8), topology=(topology_rule(RACK, group_size=4),)),
            Rule.GANG_TOPOLOGY,
            (
                "each of its 2 groups of 4 must be in one domain of rack; r0 has room "
                "for 1 of 2 groups of 4, r1 for 0"
            ),
        ),
        (
            gang(member(count=8), topology=(topology_rule(RACK, group_size=EVEN),)),
            Rule.GANG_TOPOLOGY,
            (
                "its 8 pods must be in equal parts, each in its own domain of rack; "
                "at best there is room for 1 of 2 parts of 4; r0 has "
                "room for 6 of 8 pods, r1 for 2"
            ),
        ),
        (
            gang(member(count=5), topology=(topology_rule(RACK, max_per_domain=2),)),
            Rule.GANG_TOPOLOGY,
            (
                "at most 2 of its 5 pods may be in one domain of rack; r0 has room "
                "for 2 of 5 pods, r1 for 2"
            ),
        ),
        (
            gang(member(), topology=(topology_rule("no.such/label"),)),
            Rule.GANG_TOPOLOGY,
            "none of 4 nodes has the label no.such/label, so there is no domain",
        ),
        (
            gang(member(count=5), constraints=(gang_constraint(RAIL),)),
            Rule.CONSTRAINT,
            (
                "devices of its 5 pods must have one value of a.b/rail; 0 has room "
                "for 4 of 5 pods, 1 for 4"
            ),
        ),
        (
            gang(member(count=3), constraints=(gang_constraint(distinct=RAIL),)),
            Rule.CONSTRAINT,
            (
                "its 3 devices must all differ in a.b/rail; the devices that it "
                "may use have 2 values"
            ),
        ),
        (
            gang(member(count=5), topology=(topology_rule(f"attribute:{RAIL}"),)),
            Rule.GANG_TOPOLOGY,
            (
                "its 5 pods must be in one domain of attribute:a.b/rail; 0 has room "
                "for 4 of 5 pods, 1 for 4"
            ),
        ),
    ],
)
def test_the_nearest_domain_is_named(asked: Gang, rule: Rule, message: str) -> None:
    """With how many of the gang it has room for."""
    reason = reason_of(asked)
    assert (reason.rule, reason.message) == (rule, message)


def test_a_label_that_no_node_has_is_told_before_what_is_taken() -> None:
    """No device that is freed would help; a rule that is preferred keeps nobody out."""
    asked = gang(member(count=9), topology=(topology_rule("no.such/label"),))
    assert reason_of(asked).rule is Rule.GANG_TOPOLOGY
    preferred = topology_rule("no.such/label", mode="Preferred")
    assert (
        reason_of(gang(member(count=9), topology=(preferred,))).rule
        is not Rule.GANG_TOPOLOGY
    )


def test_nodes_that_see_too_little_of_a_shared_claim_are_counted() -> None:
    """Pool by pool, or node by node where devices are local."""
    problem = fabric("aab", workers(3))
    (reason,) = allocate(problem).gangs[0].reasons
    assert (reason.rule, reason.subject) == (Rule.JOINT, "claim channel")
    assert reason.message == (
        "its 3 pods must be on nodes that see the same devices; pool fabric-a has room "
        "for 2 of 3 pods, pool fabric-b for 1"
    )


@pytest.mark.parametrize(
    ("rails", "found"),
    [
        (("4567", "012367"), "2 of 3 (6, 7)"),
        (("667", "0667"), ""),
        (("6689", "0667"), "2 of 3 (6)"),
    ],
)
def test_values_in_common_are_counted(rails: tuple[str, str], found: str) -> None:
    """A value counts as often as each pod may have devices with it."""
    pools = {
        f"n{n}": [
            pool(
                *(
                    device(f"d{i}", attributes={RAIL: int(rail)})
                    for i, rail in enumerate(of_node)
                ),
                name=f"n{n}",
            )
        ]
        for n, of_node in enumerate(rails)
    }
    requests = [request(f"r{n}") for n in range(3)]
    asked = gang(
        member(member_claim(*requests, name="c"), name="w", count=2),
        constraints=tuple(gang_constraint(RAIL, f"w/c/r{n}") for n in range(3)),
    )
    (decided,) = allocate(problem_of(snapshot_of(pools, [asked]))).gangs
    said = [reason.message for reason in decided.reasons]
    wants = (
        "3 constraints each need a value of a.b/rail that its 2 pods can have in "
        "common; there is one for at most "
    )
    assert said == ([wants + found] if found else [])
