"""The judge refuses a shared claim that is not one, or not in reach of all its pods."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from solver.allocate import allocate
from solver.decision import Decision
from solver.judge.rules import judge
from tests.builders import device, request
from tests.builders.broken import rules_broken
from tests.builders.models import DRAWN_UID
from tests.builders.sharing import channels_of, fabric, shared_channel, workers


def with_last_pod(decision: Decision, **changed: Any) -> Decision:
    (gang,) = decision.gangs
    *others, last = gang.members
    pod = structs.replace(last, **changed)
    return structs.replace(
        decision, gangs=(structs.replace(gang, members=(*others, pod)),)
    )


def test_pods_on_several_nodes_share_one_allocation() -> None:
    """It is used once, however many have it."""
    problem = fabric("aaa", workers(3))
    decision = allocate(problem)
    assert judge(problem, decision) == ()
    pods = decision.gangs[0].members
    assert len({pod.node for pod in pods}) == 3
    assert all(pod.claims[1] == pods[0].claims[1] for pod in pods)


def test_pods_that_say_different_things_are_refused() -> None:
    """A claim has one allocation."""
    problem = fabric("aa", workers(2))
    decision = allocate(problem)
    gpu, channel = decision.gangs[0].members[-1].claims
    other = structs.replace(channel.allocation, node_selector=None)
    claims = (gpu, structs.replace(channel, allocation=other))
    broken = with_last_pod(decision, claims=claims)
    assert "sharedClaimIsOne: " in "\n".join(judge(problem, broken))


def test_a_pod_out_of_reach_is_refused() -> None:
    """The channel of a rack is for nodes of that rack."""
    problem = fabric("ab", workers(2), gpus=2)
    decision = allocate(problem)
    (used,) = {pod.node for pod in decision.gangs[0].members}
    broken = with_last_pod(decision, node="n1" if used == "n0" else "n0")
    said = "\n".join(judge(problem, broken))
    assert "sharedClaimReached: " in said


def test_what_is_written_must_select_the_nodes_of_all() -> None:
    """kube-scheduler reads the allocation's node selector, and nothing else."""
    both, alone = (
        fabric("ab", workers(2), channels=[channels_of("a", **reach)])
        for reach in ({"all_nodes": True}, {})
    )
    assert "sharedClaimReached" in rules_broken((alone, allocate(both)))


def test_a_shared_claim_is_a_claim_like_any_other() -> None:
    """Its devices are counted, and exclusive."""
    two = shared_channel(asked=request("channel", device_class="channels", count=2))
    one = fabric("aa", workers(2, shared_channel()))
    asked = fabric("aa", workers(2, two))
    assert "requestsFilled" in rules_broken((asked, allocate(one)))


def test_a_claim_is_one_gang_s() -> None:
    """Whether it got the same devices twice, or two devices."""
    own = [shared_channel(claim=name) for name in ("one", "two")]
    channels = [channels_of("a", device("channel-0"), device("channel-1"))]
    gangs = [
        workers(1, claim, name=name, uid=DRAWN_UID.format(number))
        for number, (name, claim) in enumerate(zip("ab", own, strict=True))
    ]
    problem = fabric("aa", *gangs, channels=channels)
    decision = allocate(problem)
    assert judge(problem, decision) == ()
    first, second = problem.gangs
    (pod,) = second.members
    (claim,) = pod.claims
    named = structs.replace(claim, claim_name="one")
    same = structs.replace(pod, claims=(named,))
    twice = structs.replace(second, members=(same,))
    violations = judge(problem.with_gangs((first, twice)), decision)
    assert any(said.startswith("claimGivenOnce: one is ") for said in violations)
