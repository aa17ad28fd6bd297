"""What claims and pods use of ResourceQuotas, by the names that `spec.hard` has.

Counted as the API server does when it creates them: of alternatives the most of each
class, of all devices as many as a claim can hold. Pure.

Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core, resource_claims.go and pods.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from contracts.allocation import MAX_DEVICES
from contracts.claim import (
    IMPLICIT_RESOURCE,
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from contracts.counts import counted
from contracts.features import Features
from contracts.kubernetes.decode import KubernetesObject
from contracts.kubernetes.defaults import default_claim_spec
from contracts.pods.node_resources import sum_requests
from contracts.quantity import NANO, Quantity
from contracts.workload import Pod
from moorings.plan.claims import owner_of
from moorings.plan.extended_resources import is_extended
from moorings.plan.pods import DEFAULT_NAMESPACE
from publisher.gangs.view import is_over
from solver.problem.gangs import ClaimPart

Usage = Counter[str]
"""Whole units by name."""
CLAIMS = "count/resourceclaims.resource.k8s.io"
PODS = "pods"
ALL_PODS = "count/pods"
"""Those that have ended, too."""
OF_CLASS = ".deviceclass.resource.k8s.io/devices"
REQUESTS = "requests."
_EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of the claim that kube-scheduler makes for extended resources."""


def is_counted(name: str) -> bool:
    """True if a plan counts what a quota limits under this name."""
    if name in (CLAIMS, PODS, ALL_PODS) or name.endswith(OF_CLASS):
        return True
    return name.startswith(REQUESTS) and is_extended(name.removeprefix(REQUESTS))


def count_limited(name: str, count: int) -> str:
    """Write so much of what is limited: `8 of gpu.example.com are`, `1 pod is`."""
    noun = "ResourceClaim" if name == CLAIMS else "pod"
    if name in (CLAIMS, PODS, ALL_PODS):
        return counted(count, f"{noun} is", f"{noun}s are")
    of = f"of {name.removesuffix(OF_CLASS)}"
    return counted(count, f"{of} is", f"{of} are")


class ClaimUsage:
    """Counts what claims use where these classes and features are."""

    def __init__(self, values: Iterable[KubernetesObject], features: Features) -> None:
        self._resources = {
            value.metadata.name: value.spec.extended_resource_name
            for value in values
            if isinstance(value, DeviceClass)
        }
        self._has_extended = features.extended_resource

    def count_part(self, claim: ClaimPart) -> Usage:
        """Count what a claim of a gang uses."""
        return self._count(
            [
                (each.device_class, MAX_DEVICES if each.all_devices else each.count)
                for each in request.alternatives
            ]
            for request in claim.requests
        )

    def count_stored(self, claim: ResourceClaim) -> Usage:
        """Count what a claim of the cluster uses."""
        return self._count(
            [
                (each.device_class_name, _count_most(each))
                for each in request.first_available or filter(None, [request.exactly])
            ]
            for request in default_claim_spec(claim.spec).devices.requests
        )

    def _count(self, requests: Iterable[list[tuple[str, int]]]) -> Usage:
        by_class = Usage()
        for choices in requests:
            most = Usage()
            for name, count in choices:
                most[name] = max(most[name], count)
            by_class += most
        used = Usage({CLAIMS: 1})
        for name, count in by_class.items():
            used[f"{name}{OF_CLASS}"] = count
            if self._has_extended:
                used[f"{REQUESTS}{IMPLICIT_RESOURCE}{name}"] += count
                resource = self._resources.get(name)
                if resource:
                    used[f"{REQUESTS}{resource}"] = count
        return used


def _count_most(asked: ExactDeviceRequest | DeviceSubRequest) -> int:
    return MAX_DEVICES if asked.allocation_mode == "All" else asked.count


def count_extended(resources: Mapping[str, Quantity]) -> Usage:
    """Count what a pod uses by its extended resources."""
    return Usage(
        {
            f"{REQUESTS}{name}": -(-amount.nano // NANO)
            for name, amount in resources.items()
            if is_extended(name)
        }
    )


def without_pods_own(of_claim: Usage, of_pod: Usage) -> Usage:
    """Return what a claim for a pod's extended resources uses beyond that pod."""
    return of_claim - of_pod


def is_stored(value: Pod | ResourceClaim) -> bool:
    """True if a cluster has an object already."""
    meta = value.metadata
    is_held = isinstance(value, ResourceClaim) and value.allocation is not None
    return bool(meta.uid or meta.resource_version or is_held)


def count_all_stored(
    values: Iterable[KubernetesObject], claims: ClaimUsage
) -> dict[str, Usage]:
    """Count what the pods and claims of the cluster use, by namespace."""
    stored = [
        value
        for value in values
        if isinstance(value, Pod | ResourceClaim) and is_stored(value)
    ]
    pods = {each.metadata.uid: each for each in stored if isinstance(each, Pod)}
    used: dict[str, Usage] = {}
    for namespace, usage in _list_stored(stored, pods, claims):
        used.setdefault(namespace, Usage()).update(usage)
    return used


def _list_stored(
    stored: Iterable[Pod | ResourceClaim],
    pods: Mapping[str, Pod],
    claims: ClaimUsage,
) -> Iterator[tuple[str, Usage]]:
    for value in stored:
        namespace = value.metadata.namespace or DEFAULT_NAMESPACE
        if isinstance(value, Pod):
            usage = Usage({ALL_PODS: 1})
            if not is_over(value):
                usage += Usage({PODS: 1}) + count_extended(sum_requests(value.spec))
        else:
            usage = claims.count_stored(value)
            owner = owner_of(value)
            pod = None if owner is None else pods.get(owner.uid)
            is_extra = value.metadata.annotations.get(_EXTENDED_CLAIM) == "true"
            if is_extra and pod is not None:
                of_pod = count_extended(sum_requests(pod.spec))
                usage = without_pods_own(usage, of_pod)
        yield namespace, usage
