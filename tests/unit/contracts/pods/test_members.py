"""Pods become members: alone, together with those that share claims, or counted."""

from __future__ import annotations

from typing import Any

from contracts.gang import MemberClaim
from contracts.pod_terms import HostPort, TopologySpreadConstraint
from contracts.pods.members import (
    MemberPod,
    group_connected,
    member_of,
    read_member_pod,
    with_labels_of,
)
from contracts.pods.node_affinity import REQUIRED
from contracts.validate import validate
from contracts.workload import Container, ContainerPort, PodSpec
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


def test_joining_is_transitive_whatever_the_order() -> None:
    """Groups stand in the order of their first members."""
    marks = {1: "ab", 2: "c", 3: "d", 4: "bc", 5: "e", 6: "", 7: ""}
    for order in (list(marks), list(reversed(marks)), [2, 1, 5, 4, 6, 3, 7]):
        groups = group_connected(order, lambda number: marks[number])
        assert sorted(map(sorted, groups)) == [[1, 2, 4], [3], [5], [6], [7]]
        assert [group[0] for group in groups] == [
            number for number in order if number in {group[0] for group in groups}
        ]


def test_a_claim_that_a_pod_names_twice_is_one() -> None:
    """It has the first of its names."""
    asked = asking("a", shared("x"), own("own"), shared("x", "other"), shared("y", "z"))
    member = member_of("pod", asked)
    assert [(claim.name, claim.claim_name) for claim in member.claims] == [
        ("gpus", "x"),
        ("own", None),
        ("z", "y"),
    ]
    assert not list(validate(gang(member)))


def test_what_cannot_be_decided_is_named() -> None:
    """By pod and by field."""
    elsewhere = near(term(namespaceSelector={"matchLabels": {"team": "a"}}))
    reason = asking("a", affinity=elsewhere).refusal
    assert reason is not None
    field = f"spec.affinity.podAffinity.{REQUIRED}[0].namespaceSelector"
    assert (reason.subject, reason.field) == ("a", field)


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
    labels = [{"app": "x", "index": "0", "own": ""}, {"app": "x", "index": "1"}]
    node = with_labels_of(asking("a").node, labels)
    assert node.labels == {"app": "x"}
    assert node.varying_labels == ("index", "own")
