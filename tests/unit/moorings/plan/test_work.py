"""Which gangs a plan makes of the objects that it is given."""

from __future__ import annotations

from typing import Any

from contracts.codec import to_builtins
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from contracts.names import GANG
from moorings.plan.work import PlanObject, PlanWork, apply_state, prepare_work
from tests import builders


def read(raw: dict[str, Any]) -> PlanObject:
    return PlanObject(source="x", raw=raw, decoded=decode_object(raw))


def entries(*values: WritableObject) -> list[PlanObject]:
    """Objects as a plan reads them."""
    return [read(to_builtins(to_kubernetes(value))) for value in values]


def members(work: PlanWork) -> dict[str, list[str]]:
    """The names of members by the names of gangs, both in order."""
    return {
        gang.metadata.name: [member.name for member in gang.spec.members]
        for gang in work.gangs
    }


def pod(name: str, claim: str, **labels: str) -> PlanObject:
    """A real pod that uses a claim by name."""
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": builders.NAMESPACE,
            "uid": name,
            "labels": labels,
        },
        "spec": {
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        },
    }
    return read(raw)


def test_a_claim_that_no_pod_names_is_a_gang() -> None:
    claims = entries(builders.claim(name="alone"), builders.claim(name="named"))
    work = prepare_work([*claims, pod("user", "named")])
    assert members(work) == {"user": ["user"], "alone": ["claim"]}


def test_pods_that_share_a_claim_are_one_member() -> None:
    """They must be on one node."""
    claims = entries(builders.claim(name="shared"))
    work = prepare_work([*claims, pod("a", "shared"), pod("b", "shared")])
    assert members(work) == {"a": ["a"]}
    (consumers,) = work.consumers.values()
    assert [consumer.name for consumer in consumers] == ["a", "b"]


def test_pods_of_one_label_are_members_of_one_gang() -> None:
    claims = entries(builders.claim(name="one"), builders.claim(name="two"))
    train = {GANG: "train"}
    work = prepare_work([*claims, pod("a", "one", **train), pod("b", "two", **train)])
    assert members(work) == {"train": ["a", "b"]}


def test_allocated_claims_ask_for_nothing() -> None:
    held = builders.claim(name="held", allocated=builders.allocation())
    assert prepare_work(entries(held)).gangs == ()


def test_with_a_node_all_claims_are_decided_together() -> None:
    """As kube-scheduler would for one pod, and the node need not be described."""
    claims = entries(builders.claim(name="a"), builders.claim(name="b"))
    (gang,) = prepare_work(claims, node="node-7").gangs
    (member,) = gang.spec.members
    assert [claim.claim_name for claim in member.claims] == ["a", "b"]
    assert member.node.node_name == "node-7"


def test_two_slices_of_one_name_stay_two() -> None:
    """Files of two clusters may name them alike; the API server would not."""
    one = builders.resource_slice(*builders.devices(1), name="s", pool="one")
    two = builders.resource_slice(*builders.devices(1), name="s", pool="two")
    assert len(apply_state(entries(one, two)).inventory.slices) == 2
