"""Claims of pods, as kube-controller-manager has made or will make them."""

from __future__ import annotations

from msgspec import structs

from contracts.allocation import Rule
from contracts.meta import OwnerReference
from contracts.workload import (
    Container,
    ContainerResourceClaim,
    Pod,
    PodSchedulingGroup,
    ResourceRequirements,
)
from moorings.plan.claims import POD_CLAIM, PodClaims, list_group_claims
from publisher.gangs.view import claim_keys
from tests import builders
from tests.builders.pods import waiting_pod

TEMPLATE = builders.claim_template(builders.request(count=2), name="gpus-template")


def fresh(name: str = "a") -> Pod:
    """Make a pod whose claim is from a template, and not in its status yet."""
    pod = waiting_pod(name, templates=["gpus"])
    status = structs.replace(pod.status, resource_claim_statuses=())
    return structs.replace(pod, status=status)


def test_a_claim_is_made_from_its_template_for_the_pod_alone() -> None:
    claims = PodClaims([], [TEMPLATE])
    one, two = claims.complete(fresh("a")), claims.complete(fresh("b"))
    assert claim_keys(one) == {"gpus": "team-a/a-gpus-xxxxx"}
    assert claim_keys(two) == {"gpus": "team-a/b-gpus-xxxxx"}
    made = claims.by_key["team-a/a-gpus-xxxxx"]
    assert made.spec == TEMPLATE.spec.spec
    assert made.metadata.annotations[POD_CLAIM] == "gpus"
    assert made.metadata.owner_references[0].uid == "uid-a"
    assert claims.made == {"team-a/a-gpus-xxxxx", "team-a/b-gpus-xxxxx"}


def test_names_that_would_be_one_stay_two() -> None:
    """Pod `a` with claim `b-c`, and pod `a-b` with claim `c`."""
    claims = PodClaims([builders.claim(name="a-gpus-xxxxx")], [TEMPLATE])
    assert claim_keys(claims.complete(fresh())) == {"gpus": "team-a/a-gpus-xxxxx-xxxxx"}


def test_a_claim_that_is_there_is_found_by_owner_and_annotation() -> None:
    """Of this very pod: one of another uid belongs to a pod that is gone."""
    claim = builders.claim(name="a-gpus-7f2c")
    for uid, name in (("uid-a", "a-gpus-7f2c"), ("uid-old", "a-gpus-xxxxx")):
        owner = OwnerReference(kind="Pod", name="a", uid=uid, controller=True)
        metadata = structs.replace(
            claim.metadata, owner_references=(owner,), annotations={POD_CLAIM: "gpus"}
        )
        claims = PodClaims([structs.replace(claim, metadata=metadata)], [TEMPLATE])
        assert claim_keys(claims.complete(fresh())) == {"gpus": f"team-a/{name}"}


def test_a_complete_pod_stays_as_it_is() -> None:
    pod = waiting_pod("a", templates=["gpus"])
    assert PodClaims([], []).complete(pod) is pod


def test_what_is_not_there_is_named() -> None:
    claims = PodClaims([], [])
    reason = claims.find_unknown(claims.complete(fresh()))
    assert reason is not None
    assert (reason.rule, reason.subject) == (Rule.UNKNOWN_TEMPLATE, "a/gpus")
    named = waiting_pod("a", shared={"gpus": "gone"})
    reason = claims.find_unknown(named)
    assert reason is not None
    assert (
        str(reason)
        == "UnknownResourceClaim (a/gpus): 'gone' of namespace team-a was not read"
    )
    known = PodClaims([builders.claim(name="gone")], [])
    assert known.find_unknown(named) is None


def test_pods_of_a_pod_group_share_the_claim_that_it_has_for_them() -> None:
    """Of the same name and template; its other claims are each pod's own."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team-a"},
        "spec": {
            "resourceClaims": [
                {"name": "gpus", "resourceClaimTemplateName": "gpus-template"},
                {"name": "named", "resourceClaimName": "c"},
            ]
        },
    }
    wanted = set(list_group_claims(group))
    claims = PodClaims([], [TEMPLATE], wanted)
    pods = []
    for name in ("a", "b"):
        pod = fresh(name)
        scheduling_group = PodSchedulingGroup(pod_group_name="g")
        spec = structs.replace(pod.spec, scheduling_group=scheduling_group)
        pods.append(claims.complete(structs.replace(pod, spec=spec)))
    assert [claim_keys(pod) for pod in pods] == [{"gpus": "team-a/g-gpus-xxxxx"}] * 2
    assert claims.by_key["team-a/g-gpus-xxxxx"].spec == TEMPLATE.spec.spec
    assert claim_keys(claims.complete(fresh("c"))) == {"gpus": "team-a/c-gpus-xxxxx"}
    other = {**group, "apiVersion": "scheduling.x-k8s.io/v1alpha1"}
    assert list(list_group_claims(other)) == []


def test_a_request_that_a_claim_does_not_have_is_told() -> None:
    pod = waiting_pod("a", shared={"gpus": "c"})
    references = tuple(
        ContainerResourceClaim(name="gpus", request=name) for name in ("gpu", "nic", "")
    )
    container = Container(
        name="main", resources=ResourceRequirements(claims=references)
    )
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))
    (text,) = PodClaims([builders.claim(name="c")], []).list_unknown_requests(pod)
    assert text.startswith(
        "pod a: container main gets no device from claim gpus, which"
    )
