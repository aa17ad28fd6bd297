"""The cluster as it will be: without gangs that ended, with gangs that began.

A time to come is a Snapshot like any other, so whatever is asked of it is asked with
the same Problem and answered by the same engines. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import (
    GangAllocated,
    GangReleased,
    MemberAllocated,
    QuotaHeld,
    ReleaseOutcome,
)
from solver.snapshot.device_uses import DeviceUse
from solver.snapshot.parts import pool_key
from solver.snapshot.snapshot import Snapshot, apply, without_ended

Members = tuple[MemberAllocated, ...]
"""The pods of a gang, each with its node and devices."""


def without_gangs(snapshot: Snapshot, gangs: Iterable[GangRecord]) -> Snapshot:
    """Return the cluster once gangs have ended, their pods and claims gone.

    A gang without a place changes nothing.
    """
    released, claims, pods = list[GangReleased](), set[str](), set[str]()
    for record in gangs:
        if record.placed is not None:
            released.append(_release(record, record.placed))
            claims |= _list_claims(snapshot, record.placed)
            pods |= _list_pods(snapshot, record, record.placed)
    if not released:
        return snapshot
    known = sorted(key for key in claims if key in snapshot.claims)
    return without_ended(snapshot, released, known, sorted(pods))


def with_gang(
    snapshot: Snapshot,
    record: GangRecord,
    members: Members,
    *,
    quota: QuotaHeld | None = None,
    at_s: float = 0.0,
) -> Snapshot:
    """Return the cluster once a gang that waits has begun, with these places.

    What others hold of them counts as held by both: whoever ends first frees nothing.
    """
    if record.submission is None:
        return snapshot
    begun = GangAllocated(
        cluster=record.submission.cluster,
        namespace=record.namespace,
        uid=record.uid,
        name=record.name,
        solve=SolveID(""),
        attempt=record.attempt + 1,
        epoch=0,
        members=members,
        quota=quota,
    )
    sequence = _last_sequence(snapshot, record)
    return apply(snapshot, begun, sequence=sequence, time_s=at_s)


def list_results(members: Members) -> list[DeviceRequestAllocationResult]:
    """List the devices of some pods, each as the result of a request."""
    return [
        result
        for pod in members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    ]


def _last_sequence(snapshot: Snapshot, record: GangRecord) -> int:
    """Give the sequence that the last decision about a gang has by now."""
    return (snapshot.gangs.get(record.key) or record).decision_sequence


def _release(record: GangRecord, placed: GangAllocated) -> GangReleased:
    return GangReleased(
        cluster=placed.cluster,
        namespace=record.namespace,
        uid=record.uid,
        name=placed.name,
        epoch=placed.epoch,
        outcome=ReleaseOutcome.COMPLETED,
    )


def list_objects(
    snapshot: Snapshot, record: GangRecord, placed: GangAllocated
) -> Iterator[tuple[str, str]]:
    """List what Kubernetes has of a gang: kind and key of its claims and its pods."""
    for key in sorted(_list_claims(snapshot, placed)):
        if key in snapshot.claims:
            yield "ResourceClaim", key
    for key in sorted(_list_pods(snapshot, record, placed)):
        yield "Pod", key


def _list_claims(snapshot: Snapshot, placed: GangAllocated) -> set[str]:
    """List the claims that hold what was decided, by `namespace/name`.

    A decision may name a claim before Kubernetes has made it by another name.
    """
    keys = {str(claim.ref) for pod in placed.members for claim in pod.claims}
    for result in list_results(placed.members):
        uses = snapshot.inventory.holders.get(pool_key(result.driver, result.pool))
        use = (uses or {}).get(result.device, DeviceUse())
        holders = use.holders
        if result.share_id is not None:
            share = use.shares.get(result.share_id)
            holders = frozenset() if share is None else share.holders
        keys |= {h.removeprefix("claim/") for h in holders if h.startswith("claim/")}
    return keys


def _list_pods(
    snapshot: Snapshot, record: GangRecord, placed: GangAllocated
) -> set[str]:
    """List the pods that a gang has on its nodes, by `namespace/name`."""
    return {
        holder.removeprefix("pod/")
        for node in {pod.node for pod in placed.members}
        for holder, use in (snapshot.inventory.node_uses.get(node) or {}).items()
        if use.gang == record.key and holder.startswith("pod/")
    }
