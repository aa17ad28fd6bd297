"""The pods of an input: real ones, and those that its workloads will make.

Each as the cluster would have it: with a uid, in a namespace, its claims named. What
the API server would not take is told apart, and so is what nobody asks us about. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid5

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.ids import object_key
from contracts.kubernetes.decode import KubernetesObject
from contracts.meta import ObjectMeta
from contracts.names import GANG_UID, GATE
from contracts.pods.gang_owners import GangOwner, read_gang_owner
from contracts.pods.marks import list_unknown_gates
from contracts.pods.membership import OwnerKey
from contracts.validate.pods import check_pod_spec
from contracts.workload import Container, Pod, PodSpec, Workload
from moorings.plan.extended_resources import asks_for_devices
from moorings.plan.known_kinds import is_one_unless_said
from moorings.plan.objects import PlanObject
from moorings.plan.replicas import UUIDS, find_makers, make_replicas, uid_of_maker

DEFAULT_NAMESPACE = "default"


def key_of(metadata: ObjectMeta) -> str:
    """Name an object by `namespace/name`, as the cluster would have it."""
    return object_key(metadata.namespace or DEFAULT_NAMESPACE, metadata.name)


class PlannedPod(Struct, frozen=True, kw_only=True):
    """A pod, and where in the input it comes from."""

    pod: Pod
    place: int
    """Number of the object that it is, or is made by."""
    uid: str = ""
    """That it has in the cluster; empty: it is not there yet."""


class RefusedPod(Struct, frozen=True, kw_only=True):
    """Pods that the API server would not take, and why."""

    pod: Pod
    name: str
    """Of the object that says so."""
    reason: Reason


def read_pods(
    entries: list[PlanObject], *, any_node: bool, any_volume: bool
) -> tuple[list[PlannedPod], list[RefusedPod]]:
    """Read the pods of objects.

    `any_node`: nobody has said what nodes are; `any_volume`: nor what volumes are.
    """

    def complete(pod: Pod) -> Pod:
        return _complete_pod(pod, any_node=any_node, any_volume=any_volume)

    values = [entry.decoded.value for entry in entries]
    real = [value for value in values if isinstance(value, Pod)]
    workloads = [value for value in values if isinstance(value, Workload)]
    makers = {id(workload) for workload in find_makers(workloads, real)}
    pods: list[PlannedPod] = []
    refused: list[RefusedPod] = []
    for place, (entry, value) in enumerate(zip(entries, values, strict=True)):
        if isinstance(value, Pod):
            reason = find_fault(value.spec, value.metadata.name)
            if reason is not None:
                name = value.metadata.name
                refused.append(RefusedPod(pod=value, name=name, reason=reason))
                continue
            pod = complete(value)
            pods.append(PlannedPod(pod=pod, place=place, uid=value.metadata.uid))
        elif isinstance(value, Workload) and id(value) in makers:
            owner = read_owner(entry)
            found = list(_find_template_faults(value))
            found += _find_uncounted(value, entry, owner)
            refused += found
            pods += (
                PlannedPod(pod=complete(pod), place=place)
                for pod in (() if found else make_replicas(value, entry.raw, owner))
            )
    return pods, refused


def read_owner(entry: PlanObject) -> GangOwner | None:
    """Read how many pods an object says that a gang has; None: it says nothing.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    value = entry.decoded.value
    owner = read_gang_owner(entry.raw) if isinstance(value, Workload) else None
    if owner is None:
        return None
    namespace = owner.key.namespace or DEFAULT_NAMESPACE
    return structs.replace(
        owner,
        key=OwnerKey(owner.key.kind, namespace, owner.key.name),
        uid=uid_of_maker(value.kind, value.metadata),  # type: ignore[union-attr]  # a Workload
    )


def find_fault(spec: PodSpec, subject: str, path: str = "spec") -> Reason | None:
    """Return why the API server would refuse a pod, or no gate would ever open.

    None: neither is so.
    """
    for violation in check_pod_spec(spec, path):
        return Reason(
            rule=Rule.INVALID,
            subject=subject,
            field=violation.field,
            message=violation.reason,
        )
    for number, message in list_unknown_gates(spec):
        field = f"{path}.schedulingGates[{number}]"
        return Reason(rule=Rule.INVALID, subject=subject, field=field, message=message)
    return None


def _find_template_faults(workload: Workload) -> Iterator[RefusedPod]:
    for replicated in workload.templates:
        name = workload.metadata.name
        subject = f"{name}/{replicated.name}".rstrip("/")
        path = f"{replicated.path}.spec"
        spec = replicated.template.spec
        reason = find_fault(spec, subject, path)
        if reason is not None:
            metadata = structs.replace(
                workload.metadata, labels=replicated.template.metadata.labels
            )
            pod = Pod(metadata=metadata, spec=spec)
            yield RefusedPod(pod=pod, name=name, reason=reason)


def _find_uncounted(
    workload: Workload, entry: PlanObject, owner: GangOwner | None
) -> Iterator[RefusedPod]:
    """Find workloads with requests but an unknown number of pods."""
    if owner is not None or is_one_unless_said(entry.raw):
        return
    for replicated in workload.templates:
        spec = replicated.template.spec
        if replicated.is_counted:
            continue
        if has_gate(spec) or asks_for_devices(spec):
            meta = workload.metadata
            reason = Reason(
                rule=Rule.NOT_MODELLED,
                subject=f"{meta.name}/{replicated.name}".rstrip("/"),
                field="replicas",
                message=f"cannot tell how many pods a {workload.kind} of "
                f"{workload.api_version} makes: there is no replicas, parallelism "
                "or completions beside its template",
            )
            metadata = structs.replace(meta, labels=replicated.template.metadata.labels)
            pod = Pod(metadata=metadata, spec=spec)
            yield RefusedPod(pod=pod, name=meta.name, reason=reason)


def _complete_pod(pod: Pod, *, any_node: bool, any_volume: bool) -> Pod:
    meta, spec = pod.metadata, pod.spec
    namespace = meta.namespace or DEFAULT_NAMESPACE
    uid = meta.uid or str(uuid5(UUIDS, f"pod/{namespace}/{meta.name}"))
    if any_node and GANG_UID not in meta.annotations:
        spec = allow_any_node(spec)
    if spec.volumes:
        # The claims of ephemeral volumes are made for pods that are there.
        kept = (v for v in spec.volumes if meta.uid or v.ephemeral is None)
        volumes = () if any_node or any_volume else tuple(kept)
        spec = structs.replace(spec, volumes=volumes)
    metadata = structs.replace(meta, namespace=namespace, uid=uid)
    return structs.replace(pod, metadata=metadata, spec=spec)


def allow_any_node(spec: PodSpec) -> PodSpec:
    """Let a pod go anywhere, as where no Node says what nodes are."""
    return structs.replace(
        spec,
        node_selector={},
        affinity={},
        tolerations=(),
        topology_spread_constraints=(),
        host_network=False,
        containers=tuple(map(_without_ports, spec.containers)),
        init_containers=tuple(map(_without_ports, spec.init_containers)),
    )


def _without_ports(container: Container) -> Container:
    return structs.replace(container, ports=()) if container.ports else container


def has_gate(spec: PodSpec) -> bool:
    """True if a pod or pod template has our gate."""
    return any(gate.name == GATE for gate in spec.scheduling_gates)


def list_specs(value: KubernetesObject) -> Iterator[PodSpec]:
    """Go through the pods, or patterns for pods, that an object is or has."""
    yield from (spec for _, _, spec in list_patterns(value))


def list_patterns(
    value: KubernetesObject,
) -> Iterator[tuple[str, ObjectMeta, PodSpec]]:
    """Go through them likewise: the field of the spec, metadata, and the spec."""
    if isinstance(value, Pod):
        yield "spec", value.metadata, value.spec
    elif isinstance(value, Workload):
        for replicated in value.templates:
            template = replicated.template
            yield f"{replicated.path}.spec", template.metadata, template.spec
