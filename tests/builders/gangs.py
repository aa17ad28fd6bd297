"""Who uses devices, and where: nodes, pods and gangs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from contracts.claim import DeviceConstraint, DeviceRequest
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import FullyQualifiedName
from contracts.meta import ObjectMeta
from contracts.workload import (
    Container,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from tests.builders.claims import claim_spec
from tests.builders.values import NAMESPACE, NODE, UID, Amount, quantities


def node(
    name: str = NODE,
    *,
    labels: Mapping[str, str] | None = None,
    ready: bool | None = True,
    allocatable: Mapping[str, Amount] | None = None,
    features: Sequence[str] = (),
    **spec: Any,
) -> Node:
    """Make a ready node with 64 CPUs, 512Gi and 110 pods."""
    amounts = allocatable or {"cpu": 64, "memory": "512Gi", "pods": 110}
    condition = NodeCondition(type="Ready", status="True" if ready else "False")
    return Node(
        metadata=ObjectMeta(
            name=name, labels={"kubernetes.io/hostname": name, **(labels or {})}
        ),
        spec=NodeSpec(**spec),
        status=NodeStatus(
            allocatable=quantities(amounts),
            conditions=() if ready is None else (condition,),
            declared_features=tuple(features),
        ),
    )


def pod(
    name: str = "pod-1",
    *,
    claims: Mapping[str, str] | None = None,
    templates: Mapping[str, str] | None = None,
    requests: Mapping[str, Amount] | None = None,
    namespace: str = NAMESPACE,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    phase: str = "Pending",
    **spec: Any,
) -> Pod:
    """Make a pod of one container with claims by name or by template."""
    by_name = [
        PodResourceClaim(name=key, resource_claim_name=value)
        for key, value in (claims or {}).items()
    ]
    by_template = [
        PodResourceClaim(name=key, resource_claim_template_name=value)
        for key, value in (templates or {}).items()
    ]
    needs = ResourceRequirements(requests=quantities(requests or {}))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
        ),
        spec=PodSpec(
            containers=(Container(name="main", resources=needs),),
            resource_claims=(*by_name, *by_template),
            **spec,
        ),
        status=PodStatus(phase=phase),
    )


def member_claim(
    *requests: DeviceRequest,
    name: str = "gpus",
    constraints: Sequence[DeviceConstraint] = (),
    template: str | None = None,
    claim: str | None = None,
) -> MemberClaim:
    """Make a claim of a member: written out, unless a template or a claim is named."""
    by_name = (template or claim) and not (requests or constraints)
    return MemberClaim(
        name=name,
        spec=None if by_name else claim_spec(*requests, constraints=constraints),
        template_name=template,
        claim_name=claim,
    )


def member(
    *claims: MemberClaim,
    name: str = "worker",
    count: int = 1,
    min_count: int | None = None,
    resources: Mapping[str, Amount] | None = None,
    **node: Any,
) -> Member:
    """Make so many equal pods, with one claim of one device unless some are given."""
    return Member(
        name=name,
        count=count,
        min_count=min_count,
        claims=claims or (member_claim(),),
        node=MemberNode(resources=quantities(resources or {}), **node),
    )


def gang_constraint(
    match: str | None = None,
    *requests: str,
    distinct: str | None = None,
    scope: str = "Gang",
) -> GangConstraint:
    """Make a constraint across claims: on the rail unless it is said."""
    if match is None and distinct is None:
        match = "net.example.com/rail"
    return GangConstraint(
        match_attribute=None if match is None else FullyQualifiedName(match),
        distinct_attribute=None if distinct is None else FullyQualifiedName(distinct),
        requests=requests,
        scope=scope,
    )


def topology_rule(
    key: str = "topology.kubernetes.io/rack",
    *members: str,
    mode: str = "Required",
    group_size: int | Literal["Even"] | None = None,
    max_per_domain: int | None = None,
) -> GangTopology:
    """Make a rule that all pods, or those of some members, share a domain."""
    return GangTopology(
        key=key,
        members=members,
        mode=mode,
        group_size=group_size,
        max_per_domain=max_per_domain,
    )


def gang(
    *members: Member,
    name: str = "train",
    namespace: str = NAMESPACE,
    uid: str = UID,
    **spec: Any,
) -> Gang:
    """Make a gang of one pod with one device unless members are given."""
    return Gang(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
        spec=GangSpec(members=members or (member(),), **spec),
    )
