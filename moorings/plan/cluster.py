"""The cluster of an input as the publisher would see it: a View, and what is left out.

Pods without our gate are kube-scheduler's in a cluster. They are answered as if they
had it, unless others of their gang have it: then the gang waits for them as it would
there. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid5

from msgspec import Struct, structs

from contracts.allocation import Reason
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.ids import object_key
from contracts.names import GATE
from contracts.pods.members import list_extended_resources
from contracts.pods.membership import WorkloadAPI
from contracts.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from contracts.workload import Node, PodSchedulingGate
from moorings.plan.asking import WaitingGang, find_bound_without
from moorings.plan.claims import PodClaims, list_group_claims, owner_of
from moorings.plan.extended_resources import asks_for_devices
from moorings.plan.made_objects import make_all
from moorings.plan.notes import (
    note_apart,
    note_gates,
    note_missed,
    note_plain,
    note_schedulers,
    note_suspended,
    note_volumes,
)
from moorings.plan.objects import PlanObject
from moorings.plan.pods import (
    DEFAULT_NAMESPACE,
    PlannedPod,
    RefusedPod,
    read_owner,
    read_pods,
)
from moorings.plan.replicas import UUIDS
from moorings.plan.unoffered import find_unoffered, refuse_unoffered
from publisher.gangs.claims import has_immediate_label
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.node_affinity import pinned_node_of
from publisher.gangs.view import (
    GroupKey,
    View,
    group_of_claim,
    group_of_gang,
    is_ours,
    is_over,
)

_STORAGE = (PersistentVolumeClaim, PersistentVolume, StorageClass)
_NAMED = 3
"""So many notes of one kind are enough."""
_GATE = PodSchedulingGate(name=GATE)


class PlannedCluster(Struct, frozen=True, kw_only=True):
    """The cluster as the publisher would see it, and what is known besides."""

    view: View
    claims: PodClaims
    ages: dict[GroupKey, tuple[int, str, int]]
    """Orders groups by when they were or will be asked for."""
    uids: dict[str, str]
    """Of pods by the uid that they have in the View: that in the cluster, if any."""
    ungated: frozenset[str]
    """Uids of the pods that have no gate of ours."""
    unknown: dict[str, Reason]
    """By uid of a pod, what it refers to and the input does not have."""
    waiting: tuple[WaitingGang, ...]
    lone_claims: tuple[ResourceClaim, ...]
    """Claims without an allocation that no pod uses or will use.

    Immediate ones are groups of the View."""
    notes: tuple[str, ...]


def make_cluster(entries: list[PlanObject]) -> PlannedCluster:
    """Make what the publisher would see of these objects."""
    # A large cluster is slices mostly, which no plan of the publisher looks at.
    given = entries
    entries = list(
        make_all(
            entry
            for entry in entries
            if not isinstance(entry.decoded.value, ResourceSlice)
        )
    )
    values = [entry.decoded.value for entry in entries]
    nodes = {
        value.name: KnownNode(labels=value.metadata.labels)
        for value in values
        if isinstance(value, Node)
    }
    storage = [value for value in values if isinstance(value, _STORAGE)]
    pods, refused = read_pods(entries, any_node=not nodes, any_volume=not storage)
    extended = list_extended_resources(v for v in values if isinstance(v, DeviceClass))
    hosts = [value for value in values if isinstance(value, Node)]
    unoffered = find_unoffered(pods, extended, hosts)
    # A node that does not say what it has limits nothing, so it would take them.
    if not all(host.status.allocatable for host in hosts) or not hosts:
        pods, unknown_to_all = refuse_unoffered(pods, unoffered)
        refused += unknown_to_all
    claims = PodClaims(
        (value for value in values if isinstance(value, ResourceClaim)),
        (value for value in values if isinstance(value, ResourceClaimTemplate)),
        {claim for entry in entries for claim in list_group_claims(entry.raw)},
    )
    gangs = {
        place: _complete_gang(value)
        for place, value in enumerate(values)
        if isinstance(value, Gang)
    }
    # First who is ours, or is answered as if it were.
    view = View(tuple(WorkloadAPI))
    _apply_surroundings(view, entries)
    # What nodes offer by device plugins is counted, too.
    plugged = (name for host in hosts for name in host.status.allocatable)
    asking = extended.union(plugged, *unoffered.values())
    sorted_pods = _sort_out(pods, view, asking, gangs.values())
    ours = [
        structs.replace(each, pod=claims.complete(each.pod))
        if not each.pod.spec.node_name and not is_over(each.pod)
        else each
        for each in sorted_pods.ours
    ]
    # Then what is known of them, and of the pods that are not ours.
    pinned = {pinned_node_of(each.pod): KnownNode() for each in ours}
    for name, node in (nodes or pinned).items():
        view.apply_node(name, node)
    for key, claim in claims.by_key.items():
        view.apply_claim(key, claim)
    uids = {each.pod.metadata.uid for each in ours}
    others = [each for each in pods if each.pod.metadata.uid not in uids]
    for each in (*others, *ours):
        meta = each.pod.metadata
        view.apply_pod(object_key(meta.namespace, meta.name), each.pod)
    for gang in gangs.values():
        view.apply_gang(str(group_of_gang(gang)), _without_hold(view, gang))
    waiting = map(_wait_for_ever, refused)
    unknown = {each.pod.metadata.uid: claims.find_unknown(each.pod) for each in ours}
    return PlannedCluster(
        view=view,
        claims=claims,
        ages={**_list_claim_ages(claims), **_list_ages(ours, view, gangs)},
        uids={each.pod.metadata.uid: each.uid for each in ours},
        ungated=sorted_pods.ungated,
        unknown={uid: reason for uid, reason in unknown.items() if reason is not None},
        waiting=(*waiting, *find_bound_without(view, (each.pod for each in others))),
        lone_claims=tuple(_find_lone_claims(claims, pods, gangs.values())),
        notes=(
            *sorted_pods.notes,
            *note_suspended((each.decoded.value, each.raw) for each in given),
            *note_apart((each.pod, view.membership(each.pod)) for each in ours),
            *note_schedulers(each.pod for each in ours),
            *note_volumes(values, is_known=bool(storage)),
            *_note_requests(ours, claims),
        ),
    )


def _apply_surroundings(view: View, entries: Iterable[PlanObject]) -> None:
    """Apply what decides where pods can be, and how many of them there are."""
    for entry in entries:
        value = entry.decoded.value
        if isinstance(value, _STORAGE):
            view.volumes.apply(type(value).__name__, _key_of(value), value)
        owner = read_owner(entry)
        if owner is not None:
            view.apply_owner(owner.key, owner)


def _wait_for_ever(refused: RefusedPod) -> WaitingGang:
    """Answer for a pod that the API server would not take."""
    meta = refused.pod.metadata
    namespace = meta.namespace or DEFAULT_NAMESPACE
    return WaitingGang(
        group=GroupKey(namespace, refused.name, lone=True),
        pods=(refused.pod,),
        reasons=(refused.reason,),
        verdict="error",
    )


def _note_requests(pods: list[PlannedPod], claims: PodClaims) -> Iterator[str]:
    """Note containers that refer to missing requests, once for equal pods."""
    notes = (text for each in pods for text in claims.list_unknown_requests(each.pod))
    yield from list(notes)[:_NAMED]


def _key_of(value: PersistentVolumeClaim | PersistentVolume | StorageClass) -> str:
    meta = value.metadata
    if isinstance(value, PersistentVolumeClaim):
        return object_key(meta.namespace, meta.name)
    return meta.name


class _SortedPods(Struct, frozen=True, kw_only=True):
    ours: list[PlannedPod]
    ungated: frozenset[str]
    notes: tuple[str, ...]


def _sort_out(
    pods: list[PlannedPod],
    view: View,
    extended: frozenset[str],
    gangs: Iterable[Gang],
) -> _SortedPods:
    """Give the gate to pods that lack it, where no other of their gang has it."""
    groups = [view.group_of(each.pod) for each in pods]
    gated = {
        group for group, each in zip(groups, pods, strict=True) if is_ours(each.pod)
    }
    asking = {
        group
        for group, each in zip(groups, pods, strict=True)
        if asks_for_devices(each.pod.spec, extended) or not (group.lone or group.api)
    }
    asking |= set(map(group_of_gang, gangs))
    ours, ungated, plain = list[PlannedPod](), set[str](), 0
    missed: dict[bool, list[str]] = {False: [], True: []}
    for group, each in zip(groups, pods, strict=True):
        pod = each.pod
        if is_ours(pod):
            ours.append(each)
        elif pod.spec.node_name or is_over(pod):
            continue
        elif group in gated and not group.lone:
            missed[bool(group.api)].append(pod.metadata.name)
        elif group in asking:
            gates = (*pod.spec.scheduling_gates, _GATE)
            spec = structs.replace(pod.spec, scheduling_gates=gates)
            ours.append(structs.replace(each, pod=structs.replace(pod, spec=spec)))
            ungated.add(pod.metadata.uid)
        else:
            plain += 1
    metas = [each.pod.metadata for each in ours]
    names = [meta.name for meta in metas if meta.uid in ungated]
    notes = (
        *note_gates(names),
        *(
            text
            for counts in missed
            for text in note_missed(missed[counts], counts=counts)
        ),
        *note_plain(plain),
    )
    return _SortedPods(ours=ours, ungated=frozenset(ungated), notes=notes)


def _complete_gang(gang: Gang) -> Gang:
    meta = gang.metadata
    namespace = meta.namespace or DEFAULT_NAMESPACE
    uid = meta.uid or str(uuid5(UUIDS, f"gang/{namespace}/{meta.name}"))
    metadata = structs.replace(meta, namespace=namespace, uid=uid)
    return structs.replace(gang, metadata=metadata)


def _without_hold(view: View, gang: Gang) -> Gang:
    """Let pods that are there be asked for themselves: they take what is held."""
    if not view.pods(group_of_gang(gang)):
        return gang
    return structs.replace(gang, spec=structs.replace(gang.spec, hold=False))


def _list_claim_ages(claims: PodClaims) -> dict[GroupKey, tuple[int, str, int]]:
    """Order immediate claims as `_list_ages` does groups; made ones come with pods."""
    ages = {}
    for place, (key, claim) in enumerate(claims.by_key.items()):
        if has_immediate_label(claim):
            created = claim.metadata.creation_timestamp or ""
            ages[group_of_claim(key)] = (0 if created else 1, created, place)
    return ages


def _list_ages(
    pods: list[PlannedPod], view: View, gangs: dict[int, Gang]
) -> dict[GroupKey, tuple[int, str, int]]:
    """Order groups: those of a cluster by their last pod, then as they are given."""
    created: dict[GroupKey, list[str]] = {}
    places: dict[GroupKey, int] = {}
    for each in pods:
        group = view.group_of(each.pod)
        created.setdefault(group, []).append(each.pod.metadata.creation_timestamp or "")
        places.setdefault(group, each.place)
    for place, gang in gangs.items():
        group = group_of_gang(gang)
        if group not in created:
            created[group] = [gang.metadata.creation_timestamp or ""]
        places[group] = min(place, places.get(group, place))
    return {
        group: (0, max(times), places[group]) if all(times) else (1, "", places[group])
        for group, times in created.items()
    }


def _find_lone_claims(
    claims: PodClaims, pods: Iterable[PlannedPod], gangs: Iterable[Gang]
) -> Iterator[ResourceClaim]:
    """Find claims to allocate that no pod or gang of the input names or owns."""
    used = {key for gang in gangs for key in gang.named_claims}
    owners: set[str] = set()
    for each in pods:
        pod, meta = each.pod, each.pod.metadata
        owners.add(meta.uid)
        for named in () if is_over(pod) else pod.spec.resource_claims:
            if named.resource_claim_name:
                used.add(object_key(meta.namespace, named.resource_claim_name))
        for status in pod.status.resource_claim_statuses:
            used.add(object_key(meta.namespace, status.resource_claim_name or ""))
    for key, claim in claims.by_key.items():
        owner = owner_of(claim)
        is_used = key in used or (owner is not None and owner.uid in owners)
        is_lone = key not in claims.made and not is_used
        if claim.allocation is None and is_lone and not has_immediate_label(claim):
            yield claim
