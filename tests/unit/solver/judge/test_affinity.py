"""The judge knows who may be beside whom."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.gang import Gang
from contracts.pod_terms import HostPort
from contracts.workload import Pod
from solver.allocate import allocate
from solver.judge.rules import judge
from solver.snapshot.snapshot import Snapshot
from tests.builders import gang, member, pod
from tests.builders.broken import rules_broken
from tests.builders.neighbours import ZONE, apart, caring, near, spread, term, zoned
from tests.builders.problems import problem_of

BOTH = ("a", "b")


def placed(rules: Snapshot, nodes: tuple[str, ...]) -> set[str]:
    """Judge pods on these nodes, gang by gang, by the rules of a snapshot."""
    problem = problem_of(rules)
    free = problem_of(_without_rules(rules, nodes))
    decision = allocate(free)
    assert [str(pod.node) for g in decision.gangs for pod in g.members] == list(nodes)
    return rules_broken((problem, decision))


def _without_rules(snapshot: Snapshot, nodes: tuple[str, ...]) -> Snapshot:
    """Ask the same of pinned pods without rules, so that they go where they should."""
    left = list(nodes)
    waiting = snapshot.waiting
    for record in snapshot.waiting.values():
        submission = record.submission
        assert submission is not None
        members = tuple(
            replace(m, node=replace(member().node, node_name=left.pop(0)))
            for m in submission.gang.spec.members
        )
        spec = replace(submission.gang.spec, members=members)
        changed = replace(submission, gang=replace(submission.gang, spec=spec))
        waiting = waiting.with_item(record.key, replace(record, submission=changed))
    return replace(snapshot, waiting=waiting)


def running(node: str, **more: Any) -> Pod:
    """Make a pod that runs."""
    return pod("r", labels={"app": "x"}, node_name=node, phase="Running", **more)


def pods(*asks: dict[str, Any]) -> Gang:
    """Make a gang with a member of one pod for each of these."""
    members = (
        member(name=f"m{i}", **{"labels": {"app": "x"}, **each})
        for i, each in enumerate(asks)
    )
    return gang(*members)


PORT = {"host_ports": (HostPort(port=80),)}
ONE_ADDRESS = {"host_ports": (HostPort(port=80, ip="10.0.0.1"),)}
APART: dict[str, Any] = {"affinity": apart(term(ZONE))}
NEAR = {"affinity": near(term(ZONE))}
OTHER = {"affinity": near(term(ZONE, app="y")), "labels": {"app": "z"}}
EVEN = {"topology_spread_constraints": (spread(),)}
FEW = {"topology_spread_constraints": (spread(min_domains=2),)}


Case = tuple[list[dict[str, Any]], list[Pod], tuple[str, ...]]
"""What pods ask, who runs, and the nodes that the pods are on."""
KEEPS_ITS_ZONE = running("n0", affinity=apart(term(ZONE)))
NEEDED = {"labels": {"app": "y"}}
BROKEN: dict[str, Case] = {
    "portsFree": ([PORT, PORT], [], ("n0", "n0")),
    "portsFree: one address of all": ([PORT, ONE_ADDRESS], [], ("n0", "n0")),
    "podsApart": ([APART, {}], [], ("n0", "n0")),
    "podsApart: the other way": ([{}, APART], [], ("n0", "n0")),
    "podsApart: from one that runs": ([APART], [running("n0")], ("n0",)),
    "podsApart: kept away by one that runs": ([{}], [KEEPS_ITS_ZONE], ("n0",)),
    "podsNear": ([NEAR, NEAR], [], ("n0", "n1")),
    "podsNear: one runs elsewhere": ([NEAR], [running("n0")], ("n1",)),
    "podsNear: the other is elsewhere": ([OTHER, NEEDED], [], ("n0", "n1")),
    "podsNear: there is no other": ([OTHER], [], ("n0",)),
    "podsSpread": ([EVEN, EVEN], [], ("n0", "n0")),
    "podsSpread: one runs": ([EVEN], [running("n0")], ("n0",)),
    "podsSpread: by the pin": ([FEW] * 4, [], ("n0", "n0", "n1", "n1")),
}
KEPT: list[Case] = [
    ([PORT, PORT], [], ("n0", "n1")),
    ([APART, APART], [], ("n0", "n1")),
    ([{}], [KEEPS_ITS_ZONE], ("n1",)),
    ([NEAR, NEAR], [], ("n1", "n1")),
    ([NEAR], [running("n0")], ("n0",)),
    ([OTHER, NEEDED], [], ("n0", "n0")),
    ([EVEN, EVEN], [], ("n0", "n1")),
]


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """Pods that may not be where they are are refused by that rule alone."""
    asks, there, nodes = BROKEN[rule]
    snapshot = zoned(*BOTH, gangs=[pods(*asks)], running=there)
    assert placed(snapshot, nodes) == {rule.partition(":")[0]}


@pytest.mark.parametrize(("asks", "there", "nodes"), KEPT)
def test_who_keeps_the_rules_is_right(
    asks: list[dict[str, Any]], there: list[Pod], nodes: tuple[str, ...]
) -> None:
    """The same pods elsewhere."""
    assert placed(zoned(*BOTH, gangs=[pods(*asks)], running=there), nodes) == set()


def test_pods_that_wait_for_each_other_are_wrong_even_together() -> None:
    """Neither is let in first."""
    one = {"labels": {"app": "x"}, "affinity": near(term(ZONE, app="y"))}
    two = {"labels": {"app": "y"}, "affinity": near(term(ZONE, app="x"))}
    snapshot = zoned(*BOTH, gangs=[pods(one, two)])
    assert placed(snapshot, ("n0", "n0")) == {"podsNear"}


def test_an_answer_without_rules_is_not_looked_at_twice() -> None:
    """And one that keeps them is right."""
    problem = problem_of(zoned(*BOTH, gangs=[caring(2, **APART)]))
    assert judge(problem, allocate(problem)) == ()
