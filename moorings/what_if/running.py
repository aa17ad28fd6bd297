"""The cluster of files with the gangs that run in it, as a solver would know them.

Files say which pods run where and what their claims hold, and not what their gang asked
for. That is read from the pods as if they waited still, by the publisher's own plans.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, Namespace, NodeName, SolveID, object_key
from contracts.messages import (
    ClaimAllocated,
    GangAllocated,
    MemberAllocated,
    SubmitGang,
)
from contracts.names import GANG_UID, GATE
from contracts.workload import Pod, PodSchedulingGate, PodStatus
from moorings.plan.objects import PlanObject, unite_objects
from moorings.plan.pods import DEFAULT_NAMESPACE, key_of
from moorings.plan.work import prepare_work
from publisher.gangs.view import claim_keys, is_over
from solver.snapshot.snapshot import Snapshot, apply


def read_running(objects: Iterable[PlanObject]) -> Snapshot:
    """Read what files describe; gangs all of whose pods run have their places.

    Pods that name ResourceClaims, or whose templates are not in the files, stay pods:
    nobody knows what they would ask for elsewhere.
    """
    entries = unite_objects(objects)[0]
    claims = dict(_list_claims(entries))
    pods = dict(_list_running(entries, claims))
    known = prepare_work(_let_wait(entries, pods)).gangs
    whole = {key: pods[key] for gang in known for key in _list_whole(gang, pods)}
    work = prepare_work(_let_wait(entries, whole))
    snapshot = work.snapshot
    for sequence, gang in enumerate(work.gangs, start=1):
        if _list_whole(gang, whole):
            placed = _place(gang, whole, claims)
            snapshot = apply(snapshot, placed, sequence=sequence)
    return snapshot


def _list_claims(entries: Iterable[PlanObject]) -> Iterator[tuple[str, ResourceClaim]]:
    """List the claims that hold devices, by `namespace/name`."""
    for entry in entries:
        value = entry.decoded.value
        if isinstance(value, ResourceClaim) and value.allocation is not None:
            yield key_of(value.metadata), value


def _list_running(
    entries: Iterable[PlanObject], claims: Collection[str]
) -> Iterator[tuple[str, Pod]]:
    """List the pods that have a node, and of all their claims one made for them."""
    for entry in entries:
        pod = entry.decoded.value
        if not isinstance(pod, Pod) or not pod.spec.node_name or is_over(pod):
            continue
        asked = pod.spec.resource_claims
        is_own = all(each.resource_claim_name is None for each in asked)
        made = _name_claims(pod)
        is_known = len(made) == len(asked) and all(k in claims for k in made.values())
        if asked and is_own and is_known:
            yield key_of(pod.metadata), pod


def _name_claims(pod: Pod) -> dict[str, str]:
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    metadata = structs.replace(pod.metadata, namespace=namespace)
    return claim_keys(structs.replace(pod, metadata=metadata))


def _let_wait(
    entries: Iterable[PlanObject], pods: Mapping[str, Pod]
) -> list[PlanObject]:
    """Let pods wait as they did at first, without the claims made for them."""
    made = {key for pod in pods.values() for key in _name_claims(pod).values()}
    left = list[PlanObject]()
    for entry in entries:
        value = entry.decoded.value
        if isinstance(value, Pod) and key_of(value.metadata) in pods:
            decoded = structs.replace(entry.decoded, value=_as_waiting(value))
            left.append(structs.replace(entry, decoded=decoded))
        elif not isinstance(value, ResourceClaim) or key_of(value.metadata) not in made:
            left.append(entry)
    return left


def _as_waiting(pod: Pod) -> Pod:
    notes = {k: text for k, text in pod.metadata.annotations.items() if k != GANG_UID}
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, annotations=notes),
        spec=structs.replace(
            pod.spec, node_name=None, scheduling_gates=(PodSchedulingGate(name=GATE),)
        ),
        status=PodStatus(),
    )


def _list_whole(gang: SubmitGang, pods: Mapping[str, Pod]) -> list[str]:
    """List the pods of a gang; none if some of them are not these."""
    keys = [
        object_key(gang.gang.metadata.namespace, pod.name)
        for places in gang.places.values()
        for place in places
        for pod in place.pods
    ]
    return keys if all(key in pods for key in keys) else []


def _place(
    gang: SubmitGang, pods: Mapping[str, Pod], claims: Mapping[str, ResourceClaim]
) -> GangAllocated:
    """Say of a gang that it was decided as it runs."""
    meta = gang.gang.metadata
    members = [
        _place_pod(member.name, index, pods[key], claims)
        for member in gang.gang.spec.members
        for index, key in enumerate(
            object_key(meta.namespace, place.pods[0].name)
            for place in gang.places.get(member.name, ())
        )
    ]
    return GangAllocated(
        cluster=gang.cluster,
        namespace=gang.key.namespace,
        uid=gang.uid,
        name=meta.name,
        solve=SolveID(""),
        attempt=1,
        epoch=0,
        members=tuple(members),
    )


def _place_pod(
    member: str, index: int, pod: Pod, claims: Mapping[str, ResourceClaim]
) -> MemberAllocated:
    made: Sequence[tuple[str, ResourceClaim]] = [
        (name, claims[key]) for name, key in _name_claims(pod).items()
    ]
    return MemberAllocated(
        member=member,
        index=index,
        node=NodeName(pod.spec.node_name or ""),
        claims=tuple(
            ClaimAllocated(
                claim=name,
                ref=ClaimRef(
                    namespace=Namespace(claim.metadata.namespace or DEFAULT_NAMESPACE),
                    name=claim.metadata.name,
                ),
                allocation=claim.allocation,
            )
            for name, claim in made
            if claim.allocation is not None
        ),
    )
