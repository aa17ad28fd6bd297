"""Gang by gang, node by node, as kube-scheduler would on its own."""

from __future__ import annotations

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from moorings.upstream import search
from moorings.upstream.allocate import allocate_upstream
from solver.decision import Decision, GangDecision, Status
from tests.builders import (
    DRIVER,
    counter_set,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.neighbours import apart, caring, running, term, zoned
from tests.builders.patterns import nodes_of_sizes
from tests.builders.problems import observe_core, problem_of, snapshot_of

UID = "00000000-0000-4000-8000-{:012}"


def gang_of(number: int, count: int = 1, devices: int = 1) -> Gang:
    """Make a gang of equal pods; those with lower numbers come first."""
    pod = member(member_claim(request(count=devices)), count=count)
    return gang(pod, name=f"g{number}", uid=UID.format(number))


def decide(sizes: tuple[int, ...], *gangs: Gang) -> Decision:
    """Decide on nodes `n0`, `n1`, ... of these sizes."""
    return allocate_upstream(problem_of(snapshot_of(nodes_of_sizes(*sizes), gangs)))


def nodes_of(decision: GangDecision) -> list[str]:
    """List the nodes of a gang's pods."""
    return [str(allocated.node) for allocated in decision.members]


def test_a_pod_goes_to_the_first_node_that_serves_it() -> None:
    """By name, whatever is left over there."""
    decision = decide((1, 4, 2), gang_of(0, devices=2), gang_of(1))
    first, second = decision.gangs
    assert (nodes_of(first), nodes_of(second)) == (["n1"], ["n0"])
    assert decision.status is Status.FEASIBLE


def test_pods_have_no_device_in_common() -> None:
    """What one took is in use for the next, of this gang and of others."""
    decision = decide((2, 2), gang_of(0, count=3), gang_of(1))
    devices_taken = [
        (allocated.node, result.device)
        for decided in decision.gangs
        for allocated in decided.members
        for claim in allocated.claims
        for result in claim.allocation.devices.results
    ]
    assert len(set(devices_taken)) == len(devices_taken) == 4


def test_a_gang_that_does_not_fit_leaves_nothing_behind() -> None:
    """Its pods give back what they took, and the next one has it."""
    decision = decide((2,), gang_of(0, count=3), gang_of(1, count=2))
    refused, served = decision.gangs
    assert [reason.rule for reason in refused.reasons] == [Rule.NO_CANDIDATE]
    assert not refused.failed
    assert nodes_of(served) == ["n0", "n0"]


def test_a_gang_has_the_pods_that_fit_if_they_are_enough() -> None:
    """In order, as many as find a node."""
    for least, placed in ((2, 3), (4, 0)):
        pods = member(member_claim(), count=5, min_count=least)
        (found,) = allocate_upstream(
            problem_of(snapshot_of(nodes_of_sizes(1, 2), [gang(pods)]))
        ).gangs
        assert [pod.index for pod in found.members] == list(range(placed))


def test_a_node_takes_no_more_pods_than_its_resources_allow() -> None:
    """Devices alone do not make room."""
    pods = member(resources={"cpu": 2}, count=3)
    nodes = nodes_of_sizes(4, 4)
    snapshot = snapshot_of(nodes, [gang(pods)])
    snapshot = observe_core(
        snapshot, *(node(name, allocatable={"cpu": 5, "pods": 9}) for name in nodes)
    )
    (decided,) = allocate_upstream(problem_of(snapshot)).gangs
    assert nodes_of(decided) == ["n0", "n0", "n1"]


def test_counters_and_shares_are_used_up_pod_by_pod() -> None:
    """A card of 10 bears one part of 6, and two shares of 4 fit into 10."""
    parts = devices(2, consumes={"card": {"memory": 6}})
    of_parts = [pool(*parts, name="n", counters=[counter_set("card", memory=10)])]
    asked = [gang_of(0), gang_of(1)]
    first, second = allocate_upstream(
        problem_of(snapshot_of({"n": of_parts}, asked))
    ).gangs
    assert (first.verdict, second.verdict) == ("allocated", "none")
    shared = device(allow_multiple_allocations=True, capacity={"memory": 10})
    claim = member_claim(request(capacity={"memory": 4}))
    sharing = [gang(member(claim), name=f"g{i}", uid=UID.format(i)) for i in range(3)]
    decision = allocate_upstream(
        problem_of(snapshot_of({"n": [pool(shared, name="n")]}, sharing))
    )
    assert [decided.verdict for decided in decision.gangs] == [
        "allocated",
        "allocated",
        "none",
    ]


def test_an_error_ends_the_attempt_and_says_so() -> None:
    """Even where a later node would serve the pod."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    nodes = {
        "a": [pool(device("bad"), name="a")],
        "b": [pool(device("good", attributes={"model": "x"}), name="b")],
    }
    asking = gang(member(member_claim(request(select=[chosen]))))
    (decided,) = allocate_upstream(problem_of(snapshot_of(nodes, [asking]))).gangs
    assert decided.verdict == "error"
    assert [reason.rule for reason in decided.reasons] == [Rule.INVALID]
    assert "no such key: model" in decided.reasons[0].message


def test_who_is_out_of_time_or_steps_has_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Out of time is an error of the attempt; out of steps is not proven."""
    problem = problem_of(snapshot_of(nodes_of_sizes(3), [gang_of(0, devices=3)]))
    (late,) = allocate_upstream(problem, lambda: True).gangs
    assert (late.failed, late.reasons[0].rule) == (True, Rule.NOT_PROVEN)
    monkeypatch.setattr(search, "STEPS", 2)
    decision = allocate_upstream(problem)
    assert decision.status is Status.NOT_PROVEN
    assert not decision.gangs[0].failed


def test_pods_with_rules_about_each_other_are_refused() -> None:
    """Those that run still keep their nodes for themselves."""
    asks = caring(2, affinity=apart(term()))
    (refused,) = allocate_upstream(problem_of(zoned("a", "a", gangs=[asks]))).gangs
    assert refused.reasons[0].rule is Rule.NOT_MODELLED
    jealous = running("n0", app="y", affinity=apart(term()))
    snapshot = zoned("a", "a", gangs=[caring(1)], running=[jealous])
    (found,) = allocate_upstream(problem_of(snapshot)).gangs
    assert nodes_of(found) == ["n1"]
