"""Pods as members of gangs: what each asks for, which of them are one, which are equal.

`moorings plan` and the publisher both read pods here, so that a plan foretells what a
cluster does. What a pod asks of other pods or of ports is not decided by this version:
such pods are refused by name. What claims ask for, and whether they still need to be
decided, the caller looks up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from contracts import names
from contracts.allocation import Reason, Rule
from contracts.claim import DeviceClass
from contracts.codec import encode
from contracts.errors import DecodeError
from contracts.gang import Member, MemberClaim, MemberNode
from contracts.meta import ObjectMeta
from contracts.pods.node_affinity import required_pods
from contracts.pods.node_resources import PODS, requested
from contracts.quantity import Quantity
from contracts.workload import Container, PodSpec

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
    refused: Reason | None = None
    """Why it cannot be decided."""

    @property
    def shared(self) -> frozenset[str]:
        """The named claims, which other pods may use as well."""
        return frozenset(c.claim_name for c in self.claims if c.claim_name)


def member_pod(
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
            resources=requested(spec),
            node_selector=spec.node_selector,
            tolerations=spec.tolerations,
            affinity=spec.affinity,
        ),
        refused=_refusal(metadata.name, spec),
    )


def extended_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Name the resources of containers that a class serves (KEP-5004)."""
    names = set()
    for item in classes:
        names.add(f"deviceclass.resource.kubernetes.io/{item.metadata.name}")
        if item.spec.extended_resource_name:
            names.add(item.spec.extended_resource_name)
    return frozenset(names)


def joined(
    items: Iterable[T], marks: Callable[[T], Iterable[Hashable]]
) -> list[list[T]]:
    """Put together what has a mark in common, directly or by way of others.

    Groups are in the order of their first items. Nearly linear where groups seldom
    turn out to be one.
    """
    groups: dict[int, list[T]] = {}
    homes: dict[Hashable, int] = {}
    for number, item in enumerate(items):
        own = list(marks(item))
        met = sorted({homes[mark] for mark in own if mark in homes})
        home = met[0] if met else number
        group = groups.setdefault(home, [])
        for other in met[1:]:
            moved = groups.pop(other)
            homes.update((mark, home) for each in moved for mark in marks(each))
            group += moved
        group.append(item)
        homes.update((mark, home) for mark in own)
    return list(groups.values())


def sharing(pods: Iterable[MemberPod]) -> list[list[MemberPod]]:
    """Put pods of one namespace that share claims together: each group is one member.

    They must be on one node, so they are one to whoever decides.
    """
    return joined(pods, lambda pod: pod.shared)


def member_of(name: str, pods: Sequence[MemberPod]) -> Member:
    """Make a member of one pod, or of pods that share claims."""
    claims = tuple(
        structs.replace(claim, name=own) for own, (_, claim) in claims_of(pods).items()
    )
    return Member(name=name, claims=claims, node=_node_of(pods))


def claims_of(pods: Sequence[MemberPod]) -> dict[str, tuple[MemberPod, MemberClaim]]:
    """Name the claims of a member, shared ones once: whose each is, and its own name.

    Of a shared claim it is the first pod that has it.
    """
    found: dict[str, tuple[MemberPod, MemberClaim]] = {}
    seen: set[str] = set()
    for pod in pods:
        for claim in pod.claims:
            if claim.claim_name in seen:
                continue
            if claim.claim_name is not None:
                seen.add(claim.claim_name)
            name, again = claim.name, 0
            while name in found:
                again += 1
                name = f"{claim.name[: _LABEL - 5]}-{again}"
            found[name] = (pod, claim)
    return found


def likeness(pods: Sequence[MemberPod]) -> bytes:
    """Give what is the same exactly for equal members, whatever their pods are called.

    Such members can be one `Member` with a count, unless they name claims.
    """
    return encode(member_of("", pods))


def refusal_of(pods: Sequence[MemberPod]) -> Reason | None:
    """Say why the pods of one member cannot be decided; None: they can."""
    for pod in pods:
        if pod.refused is not None:
            return pod.refused
    first = pods[0].node
    for pod in pods[1:]:
        for field, mine, theirs in (
            ("spec.nodeSelector", first.node_selector, pod.node.node_selector),
            ("spec.tolerations", first.tolerations, pod.node.tolerations),
            ("spec.affinity", first.affinity, pod.node.affinity),
        ):
            if mine != theirs:
                message = f"differs from that of {pods[0].name}, which shares a claim"
                return _not_modelled(pod.name, field, message)
    return None


def _node_of(pods: Sequence[MemberPod]) -> MemberNode:
    """Say what the pods of a member ask of their node together."""
    if len(pods) == 1:
        return pods[0].node
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.node.resources.items():
            total[name] = total.get(name, 0) + amount.nano
    resources = {name: Quantity.of_nano(nano) for name, nano in sorted(total.items())}
    resources[PODS] = Quantity.of(len(pods))
    return structs.replace(pods[0].node, resources=resources)


def _refusal(name: str, spec: PodSpec) -> Reason | None:
    """Name what only other pods and their places could decide."""
    spread = spec.topology_spread_constraints
    if any(item.when_unsatisfiable != "ScheduleAnyway" for item in spread):
        return _not_modelled(name, "spec.topologySpreadConstraints")
    near = _near(spec)
    if near:
        return _not_modelled(name, f"spec.affinity.{near}")
    running = [item for item in spec.init_containers if item.restart_policy == "Always"]
    if any(_takes_port(item, spec) for item in (*spec.containers, *running)):
        return _not_modelled(name, "spec.containers[].ports[].hostPort")
    return None


def _near(spec: PodSpec) -> str:
    """Name what the affinity requires of other pods; empty: nothing."""
    try:
        return next(iter(required_pods(spec.affinity)), "")
    except DecodeError:
        return ""  # told when nodes are asked for


def _takes_port(container: Container, spec: PodSpec) -> bool:
    return any(
        port.host_port > 0 or (spec.host_network and port.container_port > 0)
        for port in container.ports
    )


def _not_modelled(subject: str, field: str, message: str = "") -> Reason:
    text = message or "this version cannot decide it yet"
    return Reason(rule=Rule.NOT_MODELLED, subject=subject, field=field, message=text)
