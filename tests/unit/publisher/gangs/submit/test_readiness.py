"""Pods are submitted once their claims are free, with the rules that they ask for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.messages import PodRef
from contracts.meta import OwnerReference
from contracts.names import CONSTRAINTS, TOPOLOGY
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import KUEUE, OwnerKey
from contracts.workload import Pod, PodSchedulingGate
from publisher.gangs.claims import (
    MOST_RESERVED,
    devices_of,
    is_prepared,
    is_reserved,
    is_same_allocation,
    list_consumers,
    list_missing,
    reserved_uids,
)
from publisher.gangs.running.growth_rules import keep_rules
from publisher.gangs.submit.readiness import NotReady, find_contention, find_missing
from publisher.gangs.submit.rules import find_rules
from tests import builders
from tests.builders import gang_constraint, member, member_claim, topology_rule
from tests.builders.plans import context_about, view_of
from tests.builders.pods import real_claim, uid_of, waiting_pod
from tests.builders.storage import volume_of

HELD = builders.allocation()


def missing(pod: Pod, *claims: ResourceClaim) -> str:
    """Say what claim a pod still lacks; empty: none."""
    got = find_missing([pod], view_of([pod], claims))
    return "" if got is None else got.message


def contention(pod: Pod, claim: ResourceClaim, *others: Pod, owned: bool = True) -> str:
    """Name why a pod cannot ask for a claim now; empty: it can."""
    view = view_of([pod, *others], [claim])
    got = find_contention(
        [pod], replace(context_about(view, pod), owns=lambda _: owned)
    )
    return "" if got is None else got.reason


def user(name: str, gang: str = "", **fields: Any) -> Pod:
    """Make a pod that uses the claim `c`."""
    return waiting_pod(name, gang=gang, shared={"gpus": "c"}, **fields)


def test_a_claim_that_is_missing_is_named() -> None:
    """As its author calls it, whether it is to be generated or not."""
    pod = waiting_pod("a", templates=["gpus"])
    assert missing(pod) == "pod a: no ResourceClaim gpus (generated) yet"
    assert missing(user("a")) == "pod a: no ResourceClaim c yet"
    assert missing(pod, real_claim("a-gpus")) == ""


def test_a_claim_on_its_way_out_is_not_there() -> None:
    """Another of its name may come."""
    leaving = real_claim("c", deleting=True)
    assert missing(user("a"), leaving) == "pod a: ResourceClaim c is being deleted"


def test_a_claim_that_a_pod_does_not_need_is_not_waited_for() -> None:
    """Kubernetes says so by a status without a name."""
    pod = waiting_pod("a", templates=["gpus"])
    statuses = tuple(
        replace(status, resource_claim_name=None)
        for status in pod.status.resource_claim_statuses
    )
    status = replace(pod.status, resource_claim_statuses=statuses)
    assert missing(replace(pod, status=status)) == ""


def test_one_gang_at_a_time_asks_for_a_free_claim() -> None:
    """The first by name; a pod without a gate goes before all."""
    claim = real_claim("c")
    assert contention(user("b", "beta"), claim, user("a", "alpha")) == "ClaimShared"
    assert contention(user("a", "alpha"), claim, user("b", "beta")) == ""
    first = user("z", "zeta", opened_by="uid-zeta")
    assert contention(user("a", "alpha"), claim, first) == "ClaimShared"
    assert contention(user("a", "alpha"), claim, first, owned=False) == ""


def test_who_is_over_or_runs_asks_for_nothing() -> None:
    """Only pods that still wait are rivals."""
    claim, pod = real_claim("c"), user("b", "beta")
    assert contention(pod, claim, user("a", "alpha", phase="Failed")) == ""
    running = user("a", "alpha", opened_by="uid-alpha", node="node-1")
    assert contention(pod, claim, running) == ""


def test_what_was_given_up_is_waited_for() -> None:
    """The claim still holds devices, for nobody that runs."""
    left = real_claim("c", allocated=HELD, reserved=["a"])
    assert contention(user("a"), left) == "ClaimsHeld"
    other = real_claim("c", allocated=HELD, reserved=["b"])
    assert contention(user("a"), other, user("b", "beta")) == "ClaimShared"


def test_a_claim_has_so_many_users_at_most() -> None:
    """The API server takes no more reservations."""
    names = [f"p{number}" for number in range(MOST_RESERVED)]
    full = real_claim("c", allocated=HELD, reserved=names)
    assert contention(user("a"), full) == "TooManyUsers"
    room = real_claim("c", allocated=HELD, reserved=names[1:])
    assert contention(user("a"), room) == ""


def test_a_volume_that_is_missing_is_named() -> None:
    """kube-scheduler would not look at any node for the pod."""
    pod = waiting_pod("a", volumes=(volume_of("data"),))
    assert missing(pod) == "pod a: no PersistentVolumeClaim data yet"


def test_a_pod_that_kueue_holds_back_asks_for_nothing() -> None:
    """Quota first: what it would get nobody else could use."""
    pod = waiting_pod("a", templates=["gpus"])
    gates = (*pod.spec.scheduling_gates, PodSchedulingGate(name=f"{KUEUE}admission"))
    held = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    assert missing(held, real_claim("a-gpus")) == (
        "pod a: Kueue has not admitted it yet"
    )


def test_a_claim_without_a_status_is_reserved_for_nobody() -> None:
    """Else it is for those whom its status names."""
    fresh = replace(real_claim(), status=None)
    assert reserved_uids(fresh) == frozenset()
    assert reserved_uids(real_claim(reserved=["a", "b"])) == {uid_of("a"), uid_of("b")}


def test_a_finalizer_alone_is_not_ours() -> None:
    """kube-scheduler sets the same one; the annotation says that we did."""
    ours = real_claim()
    assert is_prepared(ours)
    theirs = replace(ours, metadata=replace(ours.metadata, annotations={}))
    assert not is_prepared(theirs)
    begun = replace(ours, metadata=replace(ours.metadata, finalizers=()))
    assert not is_prepared(begun)


def test_allocations_are_the_same_whatever_the_server_made_of_them() -> None:
    """Order and the fields of features do not count; who has which device does."""
    one, two = builders.result("gpu-0"), builders.result("gpu-1")
    both = builders.allocation(one, two)
    dropped = builders.allocation(two, replace(one, share_id="x"), node=None)
    assert is_same_allocation(both, dropped)
    assert not is_same_allocation(both, builders.allocation(one))
    other = builders.allocation(one, replace(two, request="nic"))
    assert not is_same_allocation(both, other)


def test_devices_are_listed_with_the_request_they_are_for() -> None:
    """In a fixed order, so that lists can be compared."""
    held = builders.allocation(builders.result("b"), builders.result("a"))
    names = [(request, device) for request, _, _, device in devices_of(held)]
    assert names == [("gpu", "a"), ("gpu", "b")]


GROUP = OwnerReference(
    api_version="scheduling.k8s.io/v1beta1", kind="PodGroup", name="pg", uid="uid-pg"
)


def test_a_claim_of_a_pod_group_is_reserved_for_the_group() -> None:
    """Once, however many pods use it; kube-scheduler strips other reservations."""
    pods = [PodRef(name=name, uid=uid_of(name)) for name in ("a", "b")]
    own = real_claim()
    assert [user.name for user in list_consumers(own, pods)] == ["a", "b"]
    shared = replace(own, metadata=replace(own.metadata, owner_references=(GROUP,)))
    (user,) = list_consumers(shared, pods)
    assert (user.api_group, user.resource) == ("scheduling.k8s.io", "podgroups")
    assert (user.name, user.uid) == ("pg", "uid-pg")
    assert list_missing(shared, pods) == [user]
    status = ResourceClaimStatus(reserved_for=(user,))
    held = replace(shared, status=status)
    assert list_missing(held, pods) == []
    assert reserved_uids(held) == frozenset()
    assert is_reserved(held)


MEMBERS = (member(member_claim(name="gpu")), member(name="driver"))


def rules_of(**annotations: str) -> DeclaredRules | NotReady:
    names = {"constraints": CONSTRAINTS, "topology": TOPOLOGY}
    said = {names[key]: text for key, text in annotations.items()}
    return find_rules([waiting_pod("a", annotations=said)], None, None, MEMBERS)


def test_annotations_say_what_a_gang_object_would() -> None:
    found = rules_of(
        constraints='[{"matchAttribute": "a.io/x", "requests": ["worker/gpu"]}]',
        topology='[{"key": "rack", "members": ["worker"]}]',
    )
    assert found == DeclaredRules(
        constraints=(gang_constraint("a.io/x", "worker/gpu"),),
        topology=(topology_rule("rack", "worker"),),
    )


def test_a_gang_object_wins_over_annotations() -> None:
    gang = builders.gang(*MEMBERS, topology=(topology_rule("zone"),))
    pods = [waiting_pod("a", annotations={TOPOLOGY: '[{"key": "rack"}]'})]
    found = find_rules(pods, gang, None, MEMBERS)
    assert found == DeclaredRules(topology=(topology_rule("zone"),))


@pytest.mark.parametrize(
    ("annotations", "reason", "words"),
    [
        ({"topology": '[{"key": "a b"}]'}, "TopologyInvalid", "[0].key"),
        (
            {"topology": '[{"key": "rack", "members": ["pod"]}]'},
            "TopologyInvalid",
            '[0].members[0]: Invalid value: "pod": there is no member pod',
        ),
        (
            {"topology": '[{"key": "rack", "mode": "Maybe"}]'},
            "TopologyInvalid",
            "supported values",
        ),
        (
            {"constraints": '[{"matchAttribute": "a.io/x", "requests": ["w/gpu"]}]'},
            "ConstraintsInvalid",
            "there is no member w",
        ),
        ({"constraints": '[{"scope": "Pod"}]'}, "ConstraintsInvalid", "[0]"),
        ({"constraints": "?"}, "ConstraintsInvalid", "malformed"),
    ],
)
def test_a_rule_that_nobody_can_keep_is_named(
    annotations: dict[str, str], reason: str, words: str
) -> None:
    """The annotation, its field and what is wrong, before anything is submitted."""
    told = rules_of(**annotations)
    assert isinstance(told, NotReady)
    assert told.reason == reason
    assert "annotation moorings.dev/" in told.message
    assert words in told.message


def test_pods_that_replace_others_are_not_asked_about_the_members_that_run() -> None:
    """What names only others is left out; what names both is about these alone."""
    rules = DeclaredRules(
        constraints=(
            gang_constraint("a.io/x", "driver"),
            gang_constraint("a.io/y", "driver", "worker/gpu"),
            gang_constraint("a.io/z"),
        ),
        topology=(topology_rule("rack", "driver"), topology_rule("zone", "worker")),
    )
    assert keep_rules(rules, MEMBERS[:1]) == DeclaredRules(
        constraints=(
            gang_constraint("a.io/y", "worker/gpu"),
            gang_constraint("a.io/z"),
        ),
        topology=(topology_rule("zone", "worker"),),
    )


def test_of_a_part_of_a_gang_no_member_is_missed() -> None:
    """The others run."""
    said = {TOPOLOGY: '[{"key": "rack", "members": ["driver"]}]'}
    found = find_rules([waiting_pod("a", annotations=said)], None, None, None)
    assert found == DeclaredRules(topology=(topology_rule("rack", "driver"),))


def test_what_made_the_pods_may_ask_for_a_domain_too() -> None:
    """A PodGroup of Kubernetes; what the pods say themselves holds beside it."""
    group = GangOwner(
        key=OwnerKey("PodGroup", "team-a", "g"),
        uid="u",
        topology=(topology_rule("zone"),),
    )
    said = {TOPOLOGY: '[{"key": "rack"}]'}
    pods = [waiting_pod("a", annotations=said)]
    assert find_rules(pods, None, group, MEMBERS) == DeclaredRules(
        topology=(topology_rule("rack"), topology_rule("zone"))
    )
