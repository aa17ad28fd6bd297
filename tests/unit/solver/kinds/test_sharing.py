"""Shared claims as engines decide them: a member of their own, or pods put together."""

from __future__ import annotations

from contracts.gang import Gang
from contracts.ids import NodeName
from solver.allocate import allocate
from solver.kinds.sharing import SharedClaimLayouts
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gangs import GangPart, SeparatedClaim
from tests.builders import gang, member, member_claim, request, topology_rule
from tests.builders.sharing import RACK, fabric, shared_channel, workers

GPU = member_claim(request("gpu", device_class="gpus"), name="gpu")
LOCAL = shared_channel(claim="local", asked=request("gpu", device_class="gpus"))


def decided(item: Gang) -> GangPart:
    return SharedClaimLayouts(fabric("aa", item, gpus=4)).problem.gangs[0]


def test_a_claim_of_the_fabric_becomes_a_member() -> None:
    """It asks nothing else of its node; its pods have what is their own."""
    part = decided(workers(3))
    pods, claim = part.members
    assert [c.name for c in pods.claims] == ["gpu"]
    assert (claim.count, claim.resources) == (1, {"pods": 0})
    assert part.separated == (SeparatedClaim(1, ((0, "channel"),)),)


def test_pods_with_a_local_claim_are_one() -> None:
    """They can be on one node alone, so their needs add up."""
    part = decided(workers(3, GPU, LOCAL))
    (pod,) = part.members
    assert (pod.count, pod.resources["pods"]) == (1, 3)
    assert [c.claim_name for c in pod.claims] == ["", "local", "", ""]
    assert not part.separated


def test_what_rules_tell_apart_is_never_put_together() -> None:
    """Gangs with topology, and pods that differ in their nodes."""
    ruled = workers(2, GPU, LOCAL, topology=(topology_rule(RACK),))
    here, there = (
        member(GPU, LOCAL, name=name, node_selector={RACK: "a"} if name == "x" else {})
        for name in "xy"
    )
    assert len(decided(ruled).separated) == len(decided(gang(here, there)).separated)
    assert len(decided(ruled).separated) == 1


def test_each_pod_gets_back_its_own_and_what_it_shares() -> None:
    """By request, claim after claim."""
    problem = fabric("aa", workers(2, GPU, LOCAL), gpus=4)
    shared = SharedClaimLayouts(problem)
    ids = [
        result.device_id
        for pod in allocate(problem).gangs[0].members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    ]
    assert len(ids) == 4
    assert len(set(ids)) == 3
    one = PodPlacement(NodeName("n0"), ((ids[0],), (ids[1],), (ids[2],)), (0, 0, 0))
    joined = shared.join(problem.gangs[0], GangPlacement(0, ((one,),)))
    assert [pod.devices for pod in joined.members[0]] == [
        ((ids[0],), (ids[1],)),
        ((ids[2],), (ids[1],)),
    ]


def test_a_gang_that_shares_nothing_stays_as_it_is() -> None:
    """Also one whose only pod names its claim."""
    problem = fabric("aa", workers(1))
    assert SharedClaimLayouts(problem).problem is problem
