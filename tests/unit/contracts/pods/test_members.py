"""Pods become members: alone, together with those that share claims, or counted."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason
from contracts.gang import MemberClaim
from contracts.pods.members import (
    MemberPod,
    group_by_shared_claims,
    group_connected,
    member_of,
    name_claims,
    read_member_pod,
    refusal_of,
)
from contracts.pods.node_affinity import REQUIRED
from contracts.pods.node_resources import PODS
from contracts.validate import validate
from contracts.workload import (
    Container,
    ContainerPort,
    PodSpec,
    TopologySpreadConstraint,
)
from tests.builders import claim_spec, gang, pod, request

SPEC = claim_spec(request())


def own(name: str = "gpus") -> MemberClaim:
    return MemberClaim(name=name, spec=SPEC)


def shared(claim: str, name: str = "gpus") -> MemberClaim:
    return MemberClaim(name=name, claim_name=claim, spec=SPEC)


def asking(name: str, *claims: MemberClaim, **spec: Any) -> MemberPod:
    value = pod(name, requests={"cpu": 2}, **spec)
    return read_member_pod(value.metadata, value.spec, claims)


def names(groups: list[list[MemberPod]]) -> list[list[str]]:
    return [[item.name for item in group] for group in groups]


def test_pods_that_share_by_way_of_others_are_one_member() -> None:
    """The one that binds them may come last."""
    pods = [
        asking("a", shared("x")),
        asking("b", own()),
        asking("c", shared("y")),
        asking("d", shared("y", "one"), shared("x", "two")),
        asking("e", shared("y")),
    ]
    assert names(group_by_shared_claims(pods)) == [["a", "c", "d", "e"], ["b"]]


def test_joining_is_transitive_whatever_the_order() -> None:
    """Groups stand in the order of their first members."""
    marks = {1: "ab", 2: "c", 3: "d", 4: "bc", 5: "e", 6: "", 7: ""}
    for order in (list(marks), list(reversed(marks)), [2, 1, 5, 4, 6, 3, 7]):
        groups = group_connected(order, lambda number: marks[number])
        assert sorted(map(sorted, groups)) == [[1, 2, 4], [3], [5], [6], [7]]
        assert [group[0] for group in groups] == [
            number for number in order if number in {group[0] for group in groups}
        ]


def test_a_member_of_many_pods_asks_for_all_of_them() -> None:
    """Each claim once and by a name of its own, which leads back to its pod."""
    long = "n" * 63
    first = asking("a", shared("x"), own("gpus-1"), own(long))
    second = asking("b", own("gpus"), shared("x", "other"), own(long))
    member = member_of("both", [first, second])
    found = name_claims([first, second])
    assert [item.name for item in member.claims] == list(found)
    assert [(item.name, claim.name) for item, claim in found.values()] == [
        ("a", "gpus"),
        ("a", "gpus-1"),
        ("a", long),
        ("b", "gpus"),
        ("b", long),
    ]
    assert member.claims[0].claim_name == "x"
    amounts = {name: amount.text for name, amount in member.node.resources.items()}
    assert amounts == {"cpu": "4", PODS: "2"}
    assert not list(validate(gang(member)))


@pytest.mark.parametrize(
    ("field", "pods"),
    [
        (
            "spec.topologySpreadConstraints",
            [asking("a", topology_spread_constraints=(TopologySpreadConstraint(),))],
        ),
        ("spec.nodeSelector", [asking("a"), asking("b", node_selector={"zone": "1"})]),
        (
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            [asking("a", affinity={"podAntiAffinity": {REQUIRED: [{}]}})],
        ),
    ],
)
def test_what_cannot_be_decided_is_named(field: str, pods: list[MemberPod]) -> None:
    """By pod and by field."""
    reason = refusal_of(pods)
    assert isinstance(reason, Reason)
    assert (reason.subject, reason.field) == (pods[-1].name, field)


def test_ports_of_the_node_are_not_decided() -> None:
    """Of containers, init containers and sidecars."""
    ports = (ContainerPort(container_port=80, host_port=80),)
    sidecar = Container(name="c", ports=ports, restart_policy="Always")
    for spec in (PodSpec(containers=(sidecar,)), PodSpec(init_containers=(sidecar,))):
        assert read_member_pod(pod().metadata, spec, ()).refusal is not None
