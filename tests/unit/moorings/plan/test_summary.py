"""A large Plan in a few lines."""

from __future__ import annotations

from contracts.allocation import AllocationResult, DeviceAllocationResult, Reason, Rule
from moorings.plan.plan import ClaimPlan, GangPlan, Plan
from moorings.plan.summary import MOST_CLAIMS, group_reasons, is_large, summarize
from tests import builders

FULL = Reason(rule=Rule.JOINT, message="all are taken")
TOLD = str(FULL)


def gang(name: str, *reasons: Reason, namespace: str = "a") -> GangPlan:
    verdict = "none" if reasons else "allocated"
    return GangPlan(
        namespace=namespace, name=name, uid=name, verdict=verdict, reasons=reasons
    )


def claim(
    of: str, index: int, *, node: str | None = None, devices: int = 0
) -> ClaimPlan:
    """Make a claim of a pod, allocated where there is a node."""
    results = (builders.result("d"),) * devices
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ClaimPlan(
        namespace="a",
        name=f"{of}-{index}",
        uid="u",
        gang=of,
        member="worker",
        index=index,
        claim="c",
        node=node,
        verdict="none" if node is None else "allocated",
        allocation=None if node is None else allocation,
    )


def test_a_reason_of_many_gangs_is_said_once_with_their_number() -> None:
    gangs = [gang(f"g{number}", FULL) for number in range(8)]
    assert list(group_reasons(gangs)) == [
        f"8 gangs (g0, g1, g2, g3, g4 and 3 more): {TOLD}"
    ]


def test_reasons_that_differ_are_each_said_in_order() -> None:
    other = Reason(rule=Rule.JOINT, message="others")
    gangs = [gang("x", FULL, other), gang("in"), gang("y", FULL, FULL)]
    assert list(group_reasons(gangs)) == [f"2 gangs (x, y): {TOLD}", f"x: {other}"]


def test_gangs_of_one_name_are_told_apart_by_their_namespaces() -> None:
    gangs = [gang("x", FULL), gang("x", FULL, namespace="b")]
    assert list(group_reasons(gangs)) == [f"2 gangs (a/x, b/x): {TOLD}"]
    assert list(group_reasons(gangs[1:])) == [f"x: {TOLD}"]


def test_among_several_namespaces_a_gang_is_named_with_its_own() -> None:
    gangs = [gang("x", FULL), gang("x", namespace="b")]
    assert list(group_reasons(gangs)) == [f"a/x: {TOLD}"]


def test_counts_are_by_verdict() -> None:
    plan = Plan(
        status="Optimal",
        gangs=(gang("in"), gang("out", FULL), gang("more")),
        claims=(
            claim("in", 0, node="a", devices=2),
            claim("in", 0, node="a", devices=1),
            claim("in", 1, node="b", devices=1),
            claim("out", 0),
        ),
    )
    assert list(summarize(plan)) == [
        ("allocated", 2, 2, 3, 4, 2),
        ("none", 1, 1, 1, 0, 0),
    ]


def test_only_what_cannot_be_read_one_by_one_is_large() -> None:
    def make(count: int) -> Plan:
        return Plan(status="Optimal", claims=tuple(claim("g", i) for i in range(count)))

    assert not is_large(make(MOST_CLAIMS))
    assert is_large(make(MOST_CLAIMS + 1))
