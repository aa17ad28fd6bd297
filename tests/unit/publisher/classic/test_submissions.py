"""As what pods with claims of classic DRA are asked for, and what is in their way."""

from __future__ import annotations

from contracts.messages import SubmitGang
from contracts.names import ALLOCATE, IMMEDIATE, TOPOLOGY
from publisher.classic.objects import V1ALPHA2
from publisher.classic.submissions import NotAskedYet, submit_claim, submit_pods
from publisher.gangs.view import GroupKey, group_of_claim
from tests.builders.classic import (
    ClassicWorld,
    classic_claim,
    classic_pod,
    context,
    lone,
    old_claim,
    resource_class,
)
from tests.builders.values import NAMESPACE

GANG = GroupKey(NAMESPACE, "train")
RACK = '[{"key": "rack"}]'


def gang_of_two(rules: str, *, held: bool = False) -> ClassicWorld:
    """Two pods of a gang, one of which may have its devices."""
    status = {"allocation": {"controller": "ours.example.com"}} if held else {}
    pods = (
        classic_pod(
            name, {"d": name}, gang="train", size=2, annotations={TOPOLOGY: rules}
        )
        for name in ("p0", "p1")
    )
    return ClassicWorld(
        *pods,
        classic_claim("p0", status=status),
        classic_claim("p1"),
        context("p0", ["a"]),
        context("p1", ["a"]),
    )


def test_rules_of_the_pods_are_those_of_the_gang() -> None:
    """As where pods wait at our gate."""
    made = submit_pods(gang_of_two(RACK).look(GANG))
    assert isinstance(made, SubmitGang)
    assert [rule.key for rule in made.gang.spec.topology] == ["rack"]


def test_rules_that_cannot_be_read_are_told() -> None:
    """They are never taken for less."""
    refused = submit_pods(gang_of_two("[{}").look(GANG))
    assert isinstance(refused, NotAskedYet)
    assert refused.reason == "TopologyInvalid"
    assert refused.is_told


def test_rules_bind_pods_that_have_their_devices_too() -> None:
    """The others would have to be near them, which is not asked for yet."""
    refused = submit_pods(gang_of_two(RACK, held=True).look(GANG))
    assert isinstance(refused, NotAskedYet)
    assert refused.reason == "PartPlaced"
    made = submit_pods(gang_of_two("[]", held=True).look(GANG))
    assert isinstance(made, SubmitGang)


def test_a_claim_that_v1_cannot_say_is_told() -> None:
    """With its field, whether a pod waits for it or nobody does."""
    raw = old_claim("claim")
    reference = {"apiGroup": "cats.example.com", "kind": "Cat", "name": "tom"}
    raw["spec"]["parametersRef"] = reference
    pod, asked = classic_pod("pod", {"d": "claim"}), context("pod", ["a"])
    world = ClassicWorld(resource_class(), raw, pod, asked, version=V1ALPHA2)
    look = world.look(lone("pod"))
    refused = submit_pods(look)
    assert isinstance(refused, NotAskedYet)
    assert refused.reason == "ClaimInvalid"
    assert "spec.parametersRef" in refused.message
    claim = world.view.claim(f"{NAMESPACE}/claim")
    assert claim is not None
    assert isinstance(submit_claim(look, claim), NotAskedYet)


def test_a_claim_alone_takes_no_room_for_a_pod() -> None:
    """It is no pod; nodes are full when their pods are."""
    raw = classic_claim("now", labels={ALLOCATE: IMMEDIATE})
    look = ClassicWorld(raw).look(group_of_claim(f"{NAMESPACE}/now"))
    assert look.claim is not None
    made = submit_claim(look, look.claim)
    assert isinstance(made, SubmitGang)
    (member,) = made.gang.spec.members
    assert str(member.node.resources["pods"]) == "0"
    assert member.claims[0].claim_name == "now"
