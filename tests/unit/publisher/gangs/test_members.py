"""Equal pods become one member, pods that share a claim one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim
from contracts.device import NodeSelector
from contracts.messages import Place
from contracts.meta import OwnerReference
from contracts.pods.node_affinity import read_required_nodes
from contracts.workload import Pod, PodResourceClaimStatus, PodStatus
from publisher.gangs.members import GroupedPods, group_pods
from publisher.gangs.records import uids_of_places
from tests import builders
from tests.builders.neighbours import apart, near, term
from tests.builders.plans import context_of, view_of
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.storage import volume, volume_claim, volume_of
from tests.builders.values import NAMESPACE

TWO = builders.claim_spec(builders.request(count=2))


def grouped(pods: Iterable[Pod], *claims: ResourceClaim) -> GroupedPods:
    """Group pods that can be decided; all claims are ours."""
    got = group_pods(tuple(pods), context_of(view_of(claims=claims)))
    assert isinstance(got, GroupedPods)
    return got


def shape(got: GroupedPods) -> dict[str, int]:
    """Count the places of each member."""
    return {member.name: member.count for member in got.members}


def names(places: Iterable[Place]) -> list[list[str]]:
    """Name the pods of each place."""
    return [[pod.name for pod in place.pods] for place in places]


def test_equal_pods_are_one_member_with_a_place_each() -> None:
    """In the order of the pods, each with its own claim."""
    pods = [waiting_pod(name, templates=["gpus"]) for name in ("a", "b")]
    got = grouped(pods, real_claim("a-gpus"), real_claim("b-gpus"))
    assert shape(got) == {"pod": 2}
    assert names(got.places["pod"]) == [["a"], ["b"]]
    assert [place.claims for place in got.places["pod"]] == [("a-gpus",), ("b-gpus",)]
    assert uids_of_places(got.places) == {"uid-a", "uid-b"}


def test_another_kind_of_pods_under_one_label_has_a_number() -> None:
    """Members have names of their own."""
    pods = [waiting_pod(name, member="w", templates=["gpus"]) for name in ("a", "b")]
    got = grouped(pods, real_claim("a-gpus"), real_claim("b-gpus", spec=TWO))
    assert shape(got) == {"w": 1, "w-2": 1}


def test_a_claim_of_several_pods_is_named() -> None:
    """They are places of their own, whose claim is one; one pod's need no name."""
    pods = [
        waiting_pod(name, shared={"gpus": "c", "own": f"own-{name}"}) for name in "ab"
    ]
    got = grouped(pods, *map(real_claim, ("c", "own-a", "own-b")))
    assert shape(got) == {"pod": 2}
    assert names(got.places["pod"]) == [["a"], ["b"]]
    assert [place.claims for place in got.places["pod"]] == [
        ("c", "own-a"),
        ("c", "own-b"),
    ]
    (member,) = got.members
    assert [claim.claim_name for claim in member.claims] == ["c", None]


def test_pods_that_share_another_claim_are_another_member() -> None:
    """What a member names, all its pods share."""
    pods = [waiting_pod(f"{c}{n}", shared={"gpus": c}) for c in "cd" for n in range(2)]
    got = grouped(pods, real_claim("c"), real_claim("d"))
    assert shape(got) == {"pod": 2, "pod-2": 2}


def test_pods_of_a_pod_group_share_the_claim_that_was_made_for_it() -> None:
    """Though each names a template: their status names one claim (KEP-5729)."""
    group = OwnerReference(kind="PodGroup", name="pg", uid="u")
    made = real_claim("c")
    claim = replace(made, metadata=replace(made.metadata, owner_references=(group,)))
    status = PodResourceClaimStatus(name="gpus", resource_claim_name="c")
    pods = [
        replace(pod, status=PodStatus(resource_claim_statuses=(status,)))
        for pod in (waiting_pod(name, templates=["gpus"]) for name in ("a", "b"))
    ]
    got = grouped(pods, claim)
    assert names(got.places["pod"]) == [["a"], ["b"]]
    assert [place.claims for place in got.places["pod"]] == [("c",), ("c",)]
    assert got.members[0].claims[0].claim_name == "c"


def test_an_allocated_claim_asks_for_nothing_but_binds_its_pod() -> None:
    """The pod goes to where its devices are."""
    pod = waiting_pod("a", templates=["gpus"], shared={"nic": "c"})
    held = real_claim("c", allocated=builders.allocation(node="node-7"))
    (member,) = grouped([pod], real_claim("a-gpus"), held).members
    assert [claim.name for claim in member.claims] == ["gpus"]
    assert member.node.node_name == "node-7"


def test_a_pod_that_comes_later_goes_where_its_claim_is_reached() -> None:
    """A claim of a fabric is for the nodes that its allocation selects."""
    reach = builders.node_selector(rack="r1")
    held = replace(builders.allocation(), node_selector=reach)
    pod = waiting_pod("a", templates=["gpus"], shared={"channel": "c"})
    claims = (real_claim("a-gpus"), real_claim("c", allocated=held))
    (member,) = grouped([pod], *claims).members
    assert [claim.name for claim in member.claims] == ["gpus"]
    assert not member.node.node_name
    assert read_required_nodes(member.node.affinity) == reach


def test_claims_on_two_nodes_cannot_be_one_pod() -> None:
    """It is said which nodes, and of which pod."""
    pod = waiting_pod("a", shared={"one": "c", "two": "d"})
    claims = (
        real_claim(name, allocated=builders.allocation(node=node))
        for name, node in (("c", "node-1"), ("d", "node-2"))
    )
    got = group_pods([pod], context_of(view_of(claims=claims)))
    assert isinstance(got, Reason)
    assert (got.rule, got.subject) == (Rule.NODE_SELECTION, "a")
    assert got.message.endswith("node-1, node-2")


def test_claims_of_others_are_not_asked_for() -> None:
    """kube-scheduler decides them."""
    pod = waiting_pod("a", templates=["gpus"])
    view = view_of(claims=[real_claim("a-gpus")])
    got = group_pods([pod], replace(context_of(view), owns=lambda _: False), "solo")
    assert isinstance(got, GroupedPods)
    assert got.members[0].claims == ()
    assert shape(got) == {"solo": 1}


def test_pods_whose_volumes_are_elsewhere_are_members_of_their_own() -> None:
    """Each can only go where its volume is."""
    pods = [waiting_pod(name, volumes=(volume_of(name),)) for name in ("a", "b")]
    view = view_of(pods)
    for name in ("a", "b"):
        claim = volume_claim(name, bound_to=f"pv-{name}")
        view.volumes.apply_claim(f"{NAMESPACE}/{name}", claim)
        view.volumes.apply_volume(f"pv-{name}", volume(f"pv-{name}", nodes=[name]))
    got = group_pods(pods, context_of(view))
    assert isinstance(got, GroupedPods)
    required = [
        read_required_nodes(member.node.affinity) or NodeSelector()
        for member in got.members
    ]
    values = [one.node_selector_terms[0].match_expressions[0] for one in required]
    assert [one.values for one in values] == [("a",), ("b",)]


def test_labels_part_pods_only_where_pods_of_the_gang_choose_by_them() -> None:
    """Others are said as far as all pods have them, and which differ."""
    labels = [{"app": "x", "index": "0"}, {"app": "x", "index": "1"}]
    asks = near(term(labelSelector={"matchLabels": {"index": "0"}}))
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({}, {"pod": 2}),
        (asks, {"pod": 1, "pod-2": 1}),
    ]
    for affinity, expected in cases:
        made = [waiting_pod(name, affinity=affinity) for name in ("a", "b")]
        pods = [
            replace(pod, metadata=replace(pod.metadata, labels=own))
            for pod, own in zip(made, labels, strict=True)
        ]
        got = grouped(pods)
        assert shape(got) == expected
        node = got.members[0].node
        if affinity:
            assert (node.labels, node.varying_labels) == (labels[0], ())
        else:
            assert (node.labels, node.varying_labels) == ({"app": "x"}, ("index",))


def test_a_pod_whose_gate_is_open_is_a_pod_of_its_node_to_all_rules() -> None:
    """What it asks of others and is to them counts there, and not twice."""
    asks: dict[str, Any] = {"affinity": apart(term()), "host_network": True}
    pods = [waiting_pod("a", **asks), waiting_pod("b", opened_by="g", **asks)]
    labelled = [
        replace(pod, metadata=replace(pod.metadata, labels={"app": "x"}))
        for pod in pods
    ]
    waiting, opened = (member.node for member in grouped(labelled).members)
    assert (waiting.labels, set(waiting.affinity)) == (
        {"app": "x"},
        {"podAntiAffinity"},
    )
    assert (opened.resources, opened.affinity, opened.host_ports) == ({}, {}, ())
