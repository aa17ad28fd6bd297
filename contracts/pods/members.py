"""Pods as members of gangs: what each asks for, which of them are one, which are equal.

`moorings plan` and the publisher both read pods here, so that a plan foretells what a
cluster does. What this version cannot decide is refused by name. What claims ask for,
and whether they still need to be decided, the caller looks up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from contracts import names
from contracts.allocation import Reason, Rule
from contracts.claim import DeviceClass
from contracts.errors import DecodeError
from contracts.gang import Member, MemberClaim, MemberNode
from contracts.meta import ObjectMeta
from contracts.pods.node_affinity import list_required_pods
from contracts.pods.node_resources import PODS, sum_requests
from contracts.pods.pod_rules import list_host_ports, list_unknown_namespaces
from contracts.quantity import Quantity
from contracts.workload import PodSpec

T = TypeVar("T")
_LABEL = 63
"""Characters of a DNS label, which names of claims are."""


class MemberPod(Struct, frozen=True, kw_only=True):
    """A pod, as what it asks for."""

    namespace: str
    name: str
    uid: str
    gang: str
    """Of the gang label; empty: it has none."""
    priority: int
    claims: tuple[MemberClaim, ...]
    node: MemberNode
    refusal: Reason | None = None
    """Why it cannot be decided."""

    @property
    def shared_claims(self) -> frozenset[str]:
        """The named claims, which other pods may use as well."""
        return frozenset(claim.claim_name for claim in self.claims if claim.claim_name)


def read_member_pod(
    metadata: ObjectMeta, spec: PodSpec, claims: Iterable[MemberClaim]
) -> MemberPod:
    """Read what a pod asks for besides its claims; those are as the caller found them.

    A claim that other pods may use has a `claim_name`, one of the pod alone has none.
    """
    return MemberPod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        gang=metadata.labels.get(names.GANG, ""),
        priority=spec.priority or 0,
        claims=tuple(claims),
        node=MemberNode(
            resources=sum_requests(spec),
            node_selector=spec.node_selector,
            tolerations=spec.tolerations,
            affinity=spec.affinity,
            labels=metadata.labels,
            host_ports=list_host_ports(spec),
            topology_spread_constraints=tuple(
                constraint
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable != "ScheduleAnyway"
            ),
        ),
        refusal=_refuse(metadata.name, spec),
    )


def list_extended_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Name the resources of containers that a class serves (KEP-5004)."""
    resources = set()
    for device_class in classes:
        resources.add(
            f"deviceclass.resource.kubernetes.io/{device_class.metadata.name}"
        )
        if device_class.spec.extended_resource_name:
            resources.add(device_class.spec.extended_resource_name)
    return frozenset(resources)


def group_connected(
    members: Iterable[T], keys_of: Callable[[T], Iterable[Hashable]]
) -> list[list[T]]:
    """Group what has a key in common, directly or by way of others.

    Groups are in the order of their first members. Nearly linear where groups seldom
    turn out to be one.
    """
    groups: dict[int, list[T]] = {}
    group_by_key: dict[Hashable, int] = {}
    for number, member in enumerate(members):
        keys = list(keys_of(member))
        # The groups that this member connects become the first of them.
        connected = sorted({group_by_key[key] for key in keys if key in group_by_key})
        target = connected[0] if connected else number
        group = groups.setdefault(target, [])
        for other in connected[1:]:
            moved = groups.pop(other)
            group_by_key.update(
                (key, target) for each in moved for key in keys_of(each)
            )
            group += moved
        group.append(member)
        group_by_key.update((key, target) for key in keys)
    return list(groups.values())


def group_by_shared_claims(pods: Iterable[MemberPod]) -> list[list[MemberPod]]:
    """Group pods of one namespace that share claims: each group is one member.

    They must be on one node, so they are decided as one.
    """
    return group_connected(pods, lambda pod: pod.shared_claims)


def member_of(name: str, pods: Sequence[MemberPod]) -> Member:
    """Make a member of one pod, or of pods that share claims."""
    claims = tuple(
        structs.replace(claim, name=name)
        for name, (_, claim) in name_claims(pods).items()
    )
    return Member(name=name, claims=claims, node=_node_of(pods))


def name_claims(pods: Sequence[MemberPod]) -> dict[str, tuple[MemberPod, MemberClaim]]:
    """Name the claims of a member, shared ones once: whose each is, and its own name.

    Of a shared claim it is the first pod that has it.
    """
    claims_by_name: dict[str, tuple[MemberPod, MemberClaim]] = {}
    shared: set[str] = set()
    for pod in pods:
        for claim in pod.claims:
            if claim.claim_name in shared:
                continue
            if claim.claim_name is not None:
                shared.add(claim.claim_name)
            name, number = claim.name, 0
            while name in claims_by_name:
                number += 1
                name = f"{claim.name[: _LABEL - 5]}-{number}"
            claims_by_name[name] = (pod, claim)
    return claims_by_name


def refusal_of(pods: Sequence[MemberPod]) -> Reason | None:
    """Return why the pods of one member cannot be decided; None: they can."""
    for pod in pods:
        if pod.refusal is not None:
            return pod.refusal
    first = pods[0].node
    for pod in pods if len(pods) > 1 else ():
        field = _find_pod_rule(pod.node)
        if field:
            return _not_modelled(pod.name, field, "of pods that share a claim")
    for pod in pods[1:]:
        for field, of_first, of_pod in (
            ("spec.nodeSelector", first.node_selector, pod.node.node_selector),
            ("spec.tolerations", first.tolerations, pod.node.tolerations),
            ("spec.affinity", first.affinity, pod.node.affinity),
        ):
            if of_first != of_pod:
                message = f"differs from that of {pods[0].name}, which shares a claim"
                return _not_modelled(pod.name, field, message)
    return None


def _node_of(pods: Sequence[MemberPod]) -> MemberNode:
    """Add up what the pods of a member ask of their node together."""
    if len(pods) == 1:
        return pods[0].node
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.node.resources.items():
            total[name] = total.get(name, 0) + amount.nano
    resources = {name: Quantity.of_nano(nano) for name, nano in sorted(total.items())}
    resources[PODS] = Quantity.of(len(pods))
    node = with_labels_of(pods[0].node, [pod.node.labels for pod in pods])
    return structs.replace(node, resources=resources)


def with_labels_of(node: MemberNode, labels: Sequence[Mapping[str, str]]) -> MemberNode:
    """Say of a member the labels that all its pods have, and in which they differ."""
    keys = {key for of_pod in labels for key in of_pod}
    common = set(labels[0].items()).intersection(*(one.items() for one in labels[1:]))
    return structs.replace(
        node,
        labels=dict(sorted(common)),
        varying_labels=tuple(sorted(keys - {key for key, _ in common})),
    )


def _refuse(name: str, spec: PodSpec) -> Reason | None:
    """Return what this version cannot decide of a pod; None: nothing."""
    try:
        paths = list_unknown_namespaces(spec.affinity)
    except DecodeError:
        return None  # validation refuses it, with the field
    for path in paths:
        message = "labels of namespaces are not known"
        return _not_modelled(name, f"spec.{path}.namespaceSelector", message)
    return None


def _find_pod_rule(node: MemberNode) -> str:
    """Return the field by which a pod asks something of others; empty: it does not."""
    if node.host_ports:
        return "spec.containers[].ports[].hostPort"
    if node.topology_spread_constraints:
        return "spec.topologySpreadConstraints"
    try:
        return next(
            (f"spec.affinity.{p}" for p in list_required_pods(node.affinity)), ""
        )
    except DecodeError:
        return ""  # validation refuses it, with the field


def _not_modelled(subject: str, field: str, message: str = "") -> Reason:
    text = message or "this version cannot decide it yet"
    return Reason(rule=Rule.NOT_MODELLED, subject=subject, field=field, message=text)
