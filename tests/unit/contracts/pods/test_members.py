"""Pods become members: alone, together with those that share claims, or counted."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason
from contracts.gang import MemberClaim
from contracts.pod_terms import HostPort, TopologySpreadConstraint
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
)
from tests.builders import claim_spec, gang, pod, request
from tests.builders.neighbours import near, term

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
            [
                asking("a"),
                asking("b", topology_spread_constraints=(TopologySpreadConstraint(),)),
            ],
        ),
        ("spec.nodeSelector", [asking("a"), asking("b", node_selector={"zone": "1"})]),
        (
            f"spec.affinity.podAntiAffinity.{REQUIRED}",
            [
                asking("a"),
                asking("b", affinity={"podAntiAffinity": {REQUIRED: [{}]}}),
            ],
        ),
        (
            f"spec.affinity.podAffinity.{REQUIRED}[0].namespaceSelector",
            [
                asking(
                    "a",
                    affinity=near(
                        term(namespaceSelector={"matchLabels": {"team": "a"}})
                    ),
                )
            ],
        ),
    ],
)
def test_what_cannot_be_decided_is_named(field: str, pods: list[MemberPod]) -> None:
    """By pod and by field."""
    reason = refusal_of(pods)
    assert isinstance(reason, Reason)
    assert (reason.subject, reason.field) == (pods[-1].name, field)


def test_a_member_says_what_others_may_ask_about_its_pods() -> None:
    """Labels, ports of the node, and how they are to be spread."""
    ports = (ContainerPort(container_port=80, host_port=80),)
    spec = PodSpec(
        containers=(Container(name="c", ports=ports),),
        topology_spread_constraints=(
            TopologySpreadConstraint(when_unsatisfiable="ScheduleAnyway"),
            TopologySpreadConstraint(when_unsatisfiable="DoNotSchedule"),
        ),
    )
    read = read_member_pod(pod(labels={"app": "x"}).metadata, spec, ())
    assert read.refusal is None
    assert read.node.labels == {"app": "x"}
    assert read.node.host_ports == (HostPort(port=80),)
    assert len(read.node.topology_spread_constraints) == 1


def test_a_member_of_many_pods_has_the_labels_that_all_have() -> None:
    """The others are named, so that nobody takes them for absent."""
    first = asking("a", shared("x"), labels={"app": "x", "index": "0", "own": ""})
    second = asking("b", shared("x"), labels={"app": "x", "index": "1"})
    node = member_of("both", [first, second]).node
    assert node.labels == {"app": "x"}
    assert node.varying_labels == ("index", "own")
