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
from contracts.claim import IMPLICIT_RESOURCE, DeviceClass
from contracts.errors import DecodeError
from contracts.gang import Member, MemberClaim, MemberNode
from contracts.meta import ObjectMeta
from contracts.pods.node_features import list_needed_features
from contracts.pods.node_resources import sum_requests
from contracts.pods.pod_rules import list_host_ports, list_unknown_namespaces
from contracts.workload import PodSpec

T = TypeVar("T")


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
            features=list_needed_features(spec),
            topology_spread_constraints=tuple(
                constraint
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable != "ScheduleAnyway"
            ),
        ),
        refusal=_find_refusal(metadata.name, spec),
    )


def list_extended_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Name the resources of containers that a class serves (KEP-5004)."""
    resources = set()
    for device_class in classes:
        resources.add(f"{IMPLICIT_RESOURCE}{device_class.metadata.name}")
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


def member_of(name: str, pod: MemberPod) -> Member:
    """Make a member of one pod; a claim that it names twice is one."""
    claims, seen = list[MemberClaim](), set[str]()
    for claim in pod.claims:
        if claim.claim_name is None or claim.claim_name not in seen:
            claims.append(claim)
            seen.update(filter(None, [claim.claim_name]))
    return Member(name=name, claims=tuple(claims), node=pod.node)


def with_labels_of(node: MemberNode, labels: Sequence[Mapping[str, str]]) -> MemberNode:
    """Return the member's node requirements with the labels of all its pods."""
    keys = {key for of_pod in labels for key in of_pod}
    common = set(labels[0].items()).intersection(*(one.items() for one in labels[1:]))
    return structs.replace(
        node,
        labels=dict(sorted(common)),
        varying_labels=tuple(sorted(keys - {key for key, _ in common})),
    )


def _find_refusal(name: str, spec: PodSpec) -> Reason | None:
    """Return what this version cannot decide of a pod; None: nothing."""
    try:
        paths = list_unknown_namespaces(spec.affinity)
    except DecodeError:
        return None  # validation refuses it, with the field
    for path in paths:
        message = "labels of namespaces are unknown"
        return _not_modelled(name, f"spec.{path}.namespaceSelector", message)
    return None


def _not_modelled(subject: str, field: str, message: str = "") -> Reason:
    text = message or "this version cannot decide it yet"
    return Reason(rule=Rule.NOT_MODELLED, subject=subject, field=field, message=text)
