"""From Kubernetes objects to what is believed and what is to be decided.

Pods are members. Pods of one gang label are decided together, pods that share an
unallocated claim are one member, any other pod is a gang of one; each replica of a
workload counts as a pod. A claim that no pod names is a gang of one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar
from uuid import NAMESPACE_DNS, uuid5

from msgspec import Struct, structs

from contracts.claim import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import ClusterName, GangUID, NodeName, object_key
from contracts.kubernetes import Decoded
from contracts.messages import ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from contracts.workload import Container, Node, Pod, PodSpec, Workload
from solver.snapshot.snapshot import Snapshot, apply

T = TypeVar("T")
CLUSTER = ClusterName("plan")
GANG_LABEL = "moorings.dev/gang"
MEMBER_LABEL = "moorings.dev/member"
_UUIDS = uuid5(NAMESPACE_DNS, "plan.moorings.dev")


class PlanObject(Struct, frozen=True, kw_only=True):
    """An object of the input, and where it came from."""

    source: str
    raw: dict[str, object]
    decoded: Decoded


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

    @property
    def shared(self) -> frozenset[str]:
        """The named claims, which other pods may use as well."""
        return frozenset(c.claim_name for c in self.claims if c.claim_name)


class Work(Struct, frozen=True, kw_only=True):
    """What is believed, and the gangs to decide in the order of the input."""

    snapshot: Snapshot
    gangs: tuple[Gang, ...]
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]]
    """Real pods with a uid that use a named claim, by `namespace/name`."""


def work_of(objects: Iterable[PlanObject], node: str | None = None) -> Work:
    """Sort objects into beliefs and work; with `node`, only that node may serve."""
    found = list(objects)
    snapshot = believed(found)
    waiting = [item for item in _of(found, ResourceClaim) if not _is_allocated(item)]
    claims = {
        object_key(item.metadata.namespace, item.metadata.name): item
        for item in waiting
    }
    pods = list(_pods(found, claims))
    if node is not None:
        if all(item.name != node for item in _of(found, Node)):
            snapshot = apply(snapshot, _node_observed(node))
        gangs = [_gang_of_claims("plan", waiting, node)]
    else:
        gangs = [*_of(found, Gang), *_gangs_of(pods), *_lone(claims, pods)]
    consumers: dict[str, tuple[ResourceClaimConsumerReference, ...]] = {}
    for pod in pods:
        for name in pod.shared if pod.uid else ():
            key = object_key(pod.namespace, name)
            consumer = ResourceClaimConsumerReference(
                resource="pods", name=pod.name, uid=pod.uid
            )
            consumers[key] = (*consumers.get(key, ()), consumer)
    named = tuple(_with_uid(gang, index) for index, gang in enumerate(gangs))
    for age, gang in enumerate(named, start=1):
        uid = GangUID(gang.metadata.uid)
        message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang)
        snapshot = apply(snapshot, message, sequence=age)
    return Work(snapshot=snapshot, gangs=named, consumers=consumers)


def _of(objects: Iterable[PlanObject], kind: type[T]) -> Iterator[T]:
    for item in objects:
        if isinstance(item.decoded.value, kind):
            yield item.decoded.value


def _node_observed(name: str) -> ObjectObserved:
    """Make a node up of which only the name is known."""
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)


def believed(objects: Iterable[PlanObject]) -> Snapshot:
    """Believe all state; two objects of one name are two objects."""
    snapshot, used = Snapshot(), dict[str, int]()
    for item in objects:
        value, kind = item.decoded.value, item.decoded.kind
        if not isinstance(
            value,
            ResourceSlice
            | Node
            | DeviceClass
            | DeviceTaintRule
            | ResourceClaimTemplate
            | ResourceClaim,
        ):
            continue
        key = value.metadata.name
        if isinstance(value, ResourceClaimTemplate | ResourceClaim):
            key = object_key(value.metadata.namespace, key)
        used[f"{kind}/{key}"] = count = used.get(f"{kind}/{key}", 0) + 1
        if count > 1 and isinstance(value, ResourceSlice | ResourceClaim):
            key = f"{key}#{count}"
        message = ObjectObserved(
            cluster=CLUSTER, kind=kind, key=key, object=dict(item.raw)
        )
        snapshot = apply(snapshot, message)
    return snapshot


def _is_allocated(claim: ResourceClaim) -> bool:
    return claim.status is not None and claim.status.allocation is not None


def _pods(
    objects: Iterable[PlanObject], claims: dict[str, ResourceClaim]
) -> Iterator[PodWork]:
    """Go through all pods that need something decided: real ones, then replicas."""
    found = list(objects)
    fit = any(True for _ in _of(found, Node))
    names = _extended_resources(_of(found, DeviceClass))
    for item in found:
        match item.decoded.value:
            case Pod() as pod if pod.spec.node_name is None:
                made = _pod(pod.metadata, pod.spec, claims, pod.metadata.name, names)
                if made is not None:
                    yield made if fit else _without_fit(made, names)
            case Workload() as workload:
                for made in _replicas(workload, claims, names):
                    yield made if fit else _without_fit(made, names)
            case _:
                continue


def _replicas(
    workload: Workload, claims: dict[str, ResourceClaim], names: frozenset[str]
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
    claims: dict[str, ResourceClaim],
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
    resources = _requested(spec)
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
    )


def _requested(spec: PodSpec) -> dict[str, Quantity]:
    """Add up what the containers of a pod need at once, at most.

    Init containers run one after the other before the rest, sidecars along with all
    that follows.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        asked = _asked_by(container)
        if container.restart_policy == "Always":
            _add(running, asked)
        else:
            for name, amount in asked.items():
                peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
    for container in spec.containers:
        _add(running, _asked_by(container))
    names = running.keys() | peak.keys()
    return {
        name: Quantity.of_nano(max(running.get(name, 0), peak.get(name, 0)))
        for name in sorted(names)
    }


def _asked_by(container: Container) -> dict[str, int]:
    resources = {**container.resources.limits, **container.resources.requests}
    return {name: amount.nano for name, amount in resources.items()}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _extended_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Name the resources of containers that a class serves (KEP-5004)."""
    names = set()
    for item in classes:
        names.add(f"deviceclass.resource.kubernetes.io/{item.metadata.name}")
        if item.spec.extended_resource_name:
            names.add(item.spec.extended_resource_name)
    return frozenset(names)


def _without_fit(pod: PodWork, extended: frozenset[str]) -> PodWork:
    """Drop what nodes would have to fit where no Node says what it has."""
    resources = {k: v for k, v in pod.node.resources.items() if k in extended}
    return structs.replace(pod, node=MemberNode(resources=resources))


def _gangs_of(pods: list[PodWork]) -> Iterator[Gang]:
    """Group pods: by gang label, else by the claims they share, else alone."""
    groups: list[list[PodWork]] = []
    for pod in pods:
        home = next((group for group in groups if _belongs(pod, group)), None)
        if home is None:
            groups.append([pod])
        else:
            home.append(pod)
    for group in groups:
        first = group[0]
        yield Gang(
            metadata=ObjectMeta(
                name=first.gang or first.name, namespace=first.namespace
            ),
            spec=GangSpec(
                priority=max(pod.priority for pod in group), members=_members(group)
            ),
        )


def _belongs(pod: PodWork, group: list[PodWork]) -> bool:
    for other in group:
        if pod.namespace != other.namespace:
            continue
        if pod.gang and pod.gang == other.gang:
            return True
        if pod.shared & other.shared:
            return True
    return False


def _members(group: list[PodWork]) -> tuple[Member, ...]:
    """Make a member of each pod; pods that share a claim are one."""
    merged: list[list[PodWork]] = []
    for pod in group:
        home = next((m for m in merged if any(pod.shared & o.shared for o in m)), None)
        if home is None:
            merged.append([pod])
        else:
            home.append(pod)
    return tuple(
        Member(name=_label(pods[0].name), claims=_claims_of(pods), node=pods[0].node)
        for pods in merged
    )


def _label(name: str) -> str:
    """Make a name one DNS label."""
    return name.replace(".", "-")[:63].strip("-") or "pod"


def _claims_of(pods: list[PodWork]) -> tuple[MemberClaim, ...]:
    found: dict[str, MemberClaim] = {}
    for index, pod in enumerate(pods):
        for claim in pod.claims:
            key = claim.claim_name or f"{index}/{claim.name}"
            if key in found:
                continue
            taken = {item.name for item in found.values()}
            name = claim.name if claim.name not in taken else f"{claim.name}-{index}"
            found[key] = structs.replace(claim, name=name)
    return tuple(found.values())


def _lone(claims: dict[str, ResourceClaim], pods: list[PodWork]) -> Iterator[Gang]:
    """Make a gang of each claim that no pod names."""
    named = {object_key(pod.namespace, name) for pod in pods for name in pod.shared}
    for key, claim in claims.items():
        if key not in named:
            yield _gang_of_claims(claim.metadata.name, [claim])


def _gang_of_claims(name: str, claims: list[ResourceClaim], node: str = "") -> Gang:
    members = tuple(
        MemberClaim(
            name=_label(claim.metadata.name) if len(claims) == 1 else f"claim-{index}",
            claim_name=claim.metadata.name,
            spec=claim.spec,
        )
        for index, claim in enumerate(claims)
    )
    namespace = claims[0].metadata.namespace if claims else ""
    return Gang(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=GangSpec(
            members=(
                Member(
                    name="claim",
                    claims=members,
                    node=MemberNode(node_name=NodeName(node)),
                ),
            )
        ),
    )


def _with_uid(gang: Gang, index: int) -> Gang:
    uid = gang.metadata.uid or str(
        uuid5(_UUIDS, f"{index}/{gang.metadata.namespace}/{gang.metadata.name}")
    )
    return structs.replace(gang, metadata=structs.replace(gang.metadata, uid=uid))
