"""The ResourceClaims of pods, as kube-controller-manager has made or will make them.

A generated claim is named in its pod's status; where that is not written yet the claim
is found by its owner and annotation, and where there is no claim yet it is made from
its template. Pure.

Source: k8s.io/kubernetes/pkg/controller/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.codec import convert
from contracts.ids import object_key
from contracts.meta import ObjectMeta, OwnerReference
from contracts.shapes import read
from contracts.workload import Pod, PodResourceClaim, PodResourceClaimStatus
from moorings.plan.made_objects import DRAWN
from moorings.plan.pods import DEFAULT_NAMESPACE
from publisher.gangs.view import claim_keys

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: which claim of its pod it is."""


class GroupClaim(Struct, frozen=True, kw_only=True):
    """A claim that a PodGroup has for all of its pods (KEP-5729)."""

    namespace: str
    group: str
    claim: str
    """Its name in the PodGroup, and in its pods."""
    template: str


def list_group_claims(raw: Mapping[str, Any]) -> Iterator[GroupClaim]:
    """Go through the claims that a PodGroup's template will make; others have none."""
    group = str(raw.get("apiVersion", "")).partition("/")[0]
    if (group, raw.get("kind")) != ("scheduling.k8s.io", "PodGroup"):
        return
    meta = read(raw.get("metadata") or {}, ObjectMeta, "PodGroup", [])
    claims = (raw.get("spec") or {}).get("resourceClaims") or []
    for claim in convert(claims, list[PodResourceClaim], f"PodGroup {meta.name}"):
        if claim.resource_claim_template_name:
            yield GroupClaim(
                namespace=meta.namespace or DEFAULT_NAMESPACE,
                group=meta.name,
                claim=claim.name,
                template=claim.resource_claim_template_name,
            )


class PodClaims:
    """All claims of an input, and those that its pods will have."""

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
        group_claims: Container[GroupClaim] = (),
    ) -> None:
        """`group_claims` are those that PodGroups have for all of their pods."""
        self._group_claims = group_claims
        self.by_key = {
            object_key(claim.metadata.namespace, claim.metadata.name): claim
            for claim in claims
        }
        """By `namespace/name`; those that are made as well."""
        self.made: set[str] = set()
        """Keys of claims that are not in the input."""
        self._templates = {
            object_key(template.metadata.namespace, template.metadata.name): template
            for template in templates
        }
        self._generated = {
            (owner.uid, claim.metadata.annotations.get(POD_CLAIM, "")): claim
            for claim in self.by_key.values()
            if (owner := owner_of(claim)) is not None
        }

    def complete(self, pod: Pod) -> Pod:
        """Return a pod whose status names every claim that it has or will have."""
        known = {status.name for status in pod.status.resource_claim_statuses}
        statuses = list(pod.status.resource_claim_statuses)
        for claim in pod.spec.resource_claims:
            if claim.resource_claim_template_name and claim.name not in known:
                name = self._find_or_make(pod, claim)
                if name:
                    statuses.append(
                        PodResourceClaimStatus(
                            name=claim.name, resource_claim_name=name
                        )
                    )
        if len(statuses) == len(known):
            return pod
        status = structs.replace(pod.status, resource_claim_statuses=tuple(statuses))
        return structs.replace(pod, status=status)

    def find_unknown(self, pod: Pod) -> Reason | None:
        """Name what a complete pod refers to and the input does not have."""
        namespace = pod.metadata.namespace
        known = {status.name for status in pod.status.resource_claim_statuses}
        for claim in pod.spec.resource_claims:
            subject = f"{pod.metadata.name}/{claim.name}"
            name = claim.resource_claim_name
            if name and object_key(namespace, name) not in self.by_key:
                key = object_key(namespace, name)
                return _make_unknown(Rule.UNKNOWN_CLAIM, subject, key)
            template = claim.resource_claim_template_name
            if template and claim.name not in known:
                key = object_key(namespace, template)
                return _make_unknown(Rule.UNKNOWN_TEMPLATE, subject, key)
        return None

    def list_unknown_requests(self, pod: Pod) -> Iterator[str]:
        """Name the requests that containers refer to and that their claim lacks."""
        keys = claim_keys(pod)
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            for reference in container.resources.claims:
                claim = self.by_key.get(keys.get(reference.name, ""))
                if reference.request and claim is not None:
                    names = {each.name for each in claim.spec.devices.requests}
                    if reference.request not in names:
                        yield (
                            f"pod {pod.metadata.name}: container {container.name} "
                            f"gets no device from claim {reference.name}, which has no "
                            f"request {reference.request!r}"
                        )

    def _find_or_make(self, pod: Pod, claim: PodResourceClaim) -> str:
        meta = pod.metadata
        template_name = claim.resource_claim_template_name or ""
        group = pod.spec.scheduling_group
        group_claim = GroupClaim(
            namespace=meta.namespace,
            group="" if group is None else group.pod_group_name or "",
            claim=claim.name,
            template=template_name,
        )
        if group_claim in self._group_claims:
            return self._make_for_group(group_claim)
        generated = self._generated.get((meta.uid, claim.name))
        if generated is not None:
            return generated.metadata.name
        template = self._templates.get(object_key(meta.namespace, template_name))
        if template is None:
            return ""
        name = f"{meta.name}-{claim.name}-{DRAWN}"
        while (key := object_key(meta.namespace, name)) in self.by_key:
            name = f"{name}-{DRAWN}"
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True
        )
        self._make_claim(key, template, claim.name, owner)
        return name

    def _make_for_group(self, wanted: GroupClaim) -> str:
        """Make the claim that all pods of a PodGroup share, once."""
        key = object_key(wanted.namespace, wanted.template)
        template = self._templates.get(key)
        if template is None:
            return ""
        name = f"{wanted.group}-{wanted.claim}-{DRAWN}"
        key = object_key(wanted.namespace, name)
        if key not in self.by_key:
            owner = OwnerReference(
                api_version="scheduling.k8s.io/v1beta1",
                kind="PodGroup",
                name=wanted.group,
                uid=f"PodGroup/{wanted.group}",
                controller=True,
            )
            self._make_claim(key, template, wanted.claim, owner)
        return name

    def _make_claim(
        self,
        key: str,
        template: ResourceClaimTemplate,
        claim: str,
        owner: OwnerReference,
    ) -> None:
        namespace, _, name = key.partition("/")
        metadata = structs.replace(
            template.spec.metadata,
            name=name,
            namespace=namespace,
            annotations={**template.spec.metadata.annotations, POD_CLAIM: claim},
            owner_references=(owner,),
        )
        self.by_key[key] = ResourceClaim(metadata=metadata, spec=template.spec.spec)
        self.made.add(key)


def owner_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was generated for; None: it was not."""
    owners = claim.metadata.owner_references
    return next((o for o in owners if o.controller and o.kind == "Pod"), None)


def _make_unknown(rule: Rule, subject: str, key: str) -> Reason:
    """Say that an object is not there: its manifest may be, and not be readable."""
    namespace, _, name = key.partition("/")
    message = f"{name!r} of namespace {namespace} was not read"
    return Reason(rule=rule, subject=subject, message=message)
