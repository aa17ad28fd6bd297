"""Pods that need claims decided, whoever makes them.

Real pods that are not bound yet, and a pod for each replica of a workload. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from contracts.claim import DeviceClass, ResourceClaim
from contracts.gang import MemberClaim, MemberNode
from contracts.ids import object_key
from contracts.kubernetes.decode import KubernetesObject
from contracts.meta import ObjectMeta
from contracts.pods.members import MemberPod, list_extended_resources, read_member_pod
from contracts.workload import Pod, PodSpec, Workload


def find_pods(
    objects: Iterable[KubernetesObject], claims: Mapping[str, ResourceClaim]
) -> Iterator[MemberPod]:
    """Find all pods that need something decided: real ones and replicas.

    `claims` are those without an allocation, by `namespace/name`.
    """
    values = list(objects)
    extended = list_extended_resources(v for v in values if isinstance(v, DeviceClass))
    for value in values:
        match value:
            case Pod() if not value.spec.node_name:
                templates = [(value.metadata, value.spec)]
            case Workload():
                templates = list(_make_replicas(value))
            case _:
                continue
        for metadata, spec in templates:
            pod = read_member_pod(metadata, spec, _read_claims(metadata, spec, claims))
            if pod.claims or extended & pod.node.resources.keys():
                yield pod


def _make_replicas(workload: Workload) -> Iterator[tuple[ObjectMeta, PodSpec]]:
    for replicated in workload.templates:
        role = f"-{replicated.name}" if replicated.name else ""
        for index in range(replicated.count):
            metadata = structs.replace(
                replicated.template.metadata,
                name=f"{workload.metadata.name}{role}-{index}",
                namespace=workload.metadata.namespace,
                uid="",
            )
            yield metadata, replicated.template.spec


def _read_claims(
    metadata: ObjectMeta, spec: PodSpec, claims: Mapping[str, ResourceClaim]
) -> Iterator[MemberClaim]:
    for claim in spec.resource_claims:
        if claim.resource_claim_template_name:
            template = claim.resource_claim_template_name
            yield MemberClaim(name=claim.name, template_name=template)
        elif claim.resource_claim_name:
            name = claim.resource_claim_name
            claim_object = claims.get(object_key(metadata.namespace, name))
            yield MemberClaim(
                name=claim.name,
                claim_name=name,
                spec=claim_object.spec if claim_object is not None else None,
            )


def allow_any_node(pod: MemberPod) -> MemberPod:
    """Let a pod go anywhere, as where no Node says what nodes are."""
    node = MemberNode(resources=pod.node.resources)
    return structs.replace(pod, node=node, refusal=None)
