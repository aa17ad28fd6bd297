"""Pods that need claims decided, whoever makes them, and what they ask of nodes.

Real pods that are not bound yet, and a pod for each replica of a workload. What a pod
asks of other pods or of ports is not decided by this version: such pods are refused by
name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.claim import DeviceClass, ResourceClaim
from contracts.gang import GANG_LABEL, MemberClaim, MemberNode
from contracts.ids import object_key
from contracts.kubernetes import KubernetesObject
from contracts.meta import ObjectMeta
from contracts.node_resources import PODS, requested
from contracts.quantity import Quantity
from contracts.workload import Container, Pod, PodSpec, Workload

MEMBER_LABEL = "moorings.dev/member"


class PodWork(Struct, frozen=True, kw_only=True):
    """A pod that needs claims decided, whoever makes it."""

    namespace: str
    name: str
    uid: str
    gang: str
    """Of the gang label; empty: a gang of its own."""
    member: str
    priority: int
    claims: tuple[MemberClaim, ...]
    node: MemberNode
    refused: Reason | None = None
    """Why it cannot be decided."""

    @property
    def shared(self) -> frozenset[str]:
        """The named claims, which other pods may use as well."""
        return frozenset(c.claim_name for c in self.claims if c.claim_name)


def pods_of(
    objects: Iterable[KubernetesObject], claims: Mapping[str, ResourceClaim]
) -> Iterator[PodWork]:
    """Go through all pods that need something decided: real ones and replicas.

    `claims` are those without an allocation, by `namespace/name`.
    """
    found = list(objects)
    names = _extended_resources(v for v in found if isinstance(v, DeviceClass))
    for value in found:
        match value:
            case Pod() if not value.spec.node_name:
                name = value.metadata.name
                made = _pod(value.metadata, value.spec, claims, name, names)
                if made is not None:
                    yield made
            case Workload():
                yield from _replicas(value, claims, names)
            case _:
                continue


def _replicas(
    workload: Workload, claims: Mapping[str, ResourceClaim], names: frozenset[str]
) -> Iterator[PodWork]:
    for replicated in workload.templates:
        role = f"-{replicated.name}" if replicated.name else ""
        meta = replicated.template.metadata
        for index in range(replicated.count):
            name = f"{workload.metadata.name}{role}-{index}"
            own = structs.replace(meta, namespace=workload.metadata.namespace, uid="")
            made = _pod(own, replicated.template.spec, claims, name, names)
            if made is not None:
                yield made


def _pod(
    meta: ObjectMeta,
    spec: PodSpec,
    claims: Mapping[str, ResourceClaim],
    name: str,
    extended: frozenset[str],
) -> PodWork | None:
    wanted: list[MemberClaim] = []
    for claim in spec.resource_claims:
        if claim.resource_claim_template_name:
            template = claim.resource_claim_template_name
            wanted.append(MemberClaim(name=claim.name, template_name=template))
        elif claim.resource_claim_name:
            known = claims.get(object_key(meta.namespace, claim.resource_claim_name))
            wanted.append(
                MemberClaim(
                    name=claim.name,
                    claim_name=claim.resource_claim_name,
                    spec=known.spec if known is not None else None,
                )
            )
    resources = requested(spec)
    if not wanted and not extended & resources.keys():
        return None
    return PodWork(
        namespace=meta.namespace,
        name=name,
        uid=meta.uid,
        gang=meta.labels.get(GANG_LABEL, ""),
        member=meta.labels.get(MEMBER_LABEL, "pod"),
        priority=spec.priority or 0,
        claims=tuple(wanted),
        node=MemberNode(
            resources=resources,
            node_selector=spec.node_selector,
            tolerations=spec.tolerations,
            affinity=spec.affinity,
        ),
        refused=_refusal(name, spec),
    )


def _extended_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Name the resources of containers that a class serves (KEP-5004)."""
    names = set()
    for item in classes:
        names.add(f"deviceclass.resource.kubernetes.io/{item.metadata.name}")
        if item.spec.extended_resource_name:
            names.add(item.spec.extended_resource_name)
    return frozenset(names)


def _refusal(name: str, spec: PodSpec) -> Reason | None:
    """Name what only other pods and their places could decide."""
    spread = spec.topology_spread_constraints
    if any(item.when_unsatisfiable != "ScheduleAnyway" for item in spread):
        return _not_modelled(name, "spec.topologySpreadConstraints")
    running = [item for item in spec.init_containers if item.restart_policy == "Always"]
    if any(_takes_port(item, spec) for item in (*spec.containers, *running)):
        return _not_modelled(name, "spec.containers[].ports[].hostPort")
    return None


def _takes_port(container: Container, spec: PodSpec) -> bool:
    return any(
        port.host_port > 0 or (spec.host_network and port.container_port > 0)
        for port in container.ports
    )


def _not_modelled(subject: str, field: str, message: str = "") -> Reason:
    text = message or "this version cannot decide it yet"
    return Reason(rule=Rule.NOT_MODELLED, subject=subject, field=field, message=text)


def anywhere(pod: PodWork) -> PodWork:
    """Let a pod go anywhere, as where no Node says what nodes are."""
    node = MemberNode(resources=pod.node.resources)
    return structs.replace(pod, node=node, refused=None)


def node_of(pods: Sequence[PodWork]) -> MemberNode:
    """Say what pods that share a claim, and so a node, ask of it together."""
    if len(pods) == 1:
        return pods[0].node
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.node.resources.items():
            total[name] = total.get(name, 0) + amount.nano
    resources = {name: Quantity.of_nano(nano) for name, nano in sorted(total.items())}
    resources[PODS] = Quantity.of(len(pods))
    return structs.replace(pods[0].node, resources=resources)


def refusal_of(pods: Sequence[PodWork]) -> Reason | None:
    """Say why pods that share a claim cannot be decided; None: they can."""
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
