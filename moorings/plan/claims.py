"""The ResourceClaims of pods, as kube-controller-manager has made or will make them.

A generated claim is named in its pod's status; where that is not written yet the claim
is found by its owner and annotation, and where there is no claim yet it is made from
its template. Pure.

Source: k8s.io/kubernetes/pkg/controller/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.ids import object_key
from contracts.meta import OwnerReference
from contracts.workload import Pod, PodResourceClaim, PodResourceClaimStatus
from moorings.plan.replicas import DRAWN

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: which claim of its pod it is."""


class PodClaims:
    """All claims of an input, and those that its pods will have."""

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
    ) -> None:
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
                return _unknown(Rule.UNKNOWN_CLAIM, subject, name)
            template = claim.resource_claim_template_name
            if template and claim.name not in known:
                return _unknown(Rule.UNKNOWN_TEMPLATE, subject, template)
        return None

    def _find_or_make(self, pod: Pod, claim: PodResourceClaim) -> str:
        meta = pod.metadata
        generated = self._generated.get((meta.uid, claim.name))
        if generated is not None:
            return generated.metadata.name
        template_name = claim.resource_claim_template_name or ""
        template = self._templates.get(object_key(meta.namespace, template_name))
        if template is None:
            return ""
        name = f"{meta.name}-{claim.name}-{DRAWN}"
        while (key := object_key(meta.namespace, name)) in self.by_key:
            name = f"{name}-{DRAWN}"
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True
        )
        metadata = structs.replace(
            template.spec.metadata,
            name=name,
            namespace=meta.namespace,
            annotations={**template.spec.metadata.annotations, POD_CLAIM: claim.name},
            owner_references=(owner,),
        )
        self.by_key[key] = ResourceClaim(metadata=metadata, spec=template.spec.spec)
        self.made.add(key)
        return name


def owner_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was generated for; None: it was not."""
    owners = claim.metadata.owner_references
    return next((o for o in owners if o.controller and o.kind == "Pod"), None)


def _unknown(rule: Rule, subject: str, name: str) -> Reason:
    return Reason(rule=rule, subject=subject, message=f"{name!r} does not exist")
