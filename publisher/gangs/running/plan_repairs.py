"""Repairs for pods whose gates are open, whoever is to blame.

- A claim in use that has lost its finalizer gets it back: without it nobody frees the
  claim.
- A pod that has ended while others use its claim makes kube-controller-manager write
  the claim without end, until the pod object is gone. We delete the pod if its owner
  has counted it, and tell its author otherwise.
- Authors are told of a device that somebody else took as well (the API server does not
  compare), and of one that its driver no longer offers.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from contracts.claim import ResourceClaim
from contracts.counts import counted
from contracts.gang import GangPhase
from contracts.ids import DeviceID
from contracts.names import FINALIZER, MANAGED
from contracts.workload import Pod
from publisher.gangs.claims import (
    exclusive_devices_of,
    is_immediate,
    is_reserved,
    name_holder,
)
from publisher.gangs.context import NextSteps, StatusReport
from publisher.gangs.patches import Patch, clear, prepare
from publisher.gangs.view import ENDED, View, claim_keys, is_done, is_gated, is_over

FINISHED = "FinishedPodInTheWay"
HELD_TWICE = "DeviceHeldTwice"
REMOVED = "DeviceRemoved"
_NAMED = 5
"""So many devices are named in a text."""
_COUNTED_BY = {("batch/v1", "Job"), ("apps/v1", "ReplicaSet")}
"""They do not miss a pod that ended, once it has no finalizer of theirs."""
_Use: TypeAlias = tuple[Pod, Collection[str]]
"""A pod, and the keys of its claims."""


def plan_repairs(pods: Sequence[Pod], view: View) -> NextSteps:
    """Plan what is to be done for pods that run or have ended."""
    alive = [(pod, claim_keys(pod).values()) for pod in pods if not is_over(pod)]
    runs = [(pod, keys) for pod, keys in alive if not is_gated(pod)]
    endless = [(pod, key) for pod in pods if (key := _find_endless(pod, view))]
    return NextSteps(
        patches=tuple(_plan_finalizers({k for _, keys in alive for k in keys}, view)),
        removals=tuple(pod for pod, _ in endless if _is_counted(pod)),
        reports=(
            *_report_held_twice(runs, view),
            *_report_removed(runs, view),
            *(_report_finished(pod, key.partition("/")[2]) for pod, key in endless),
        ),
    )


def plan_sweep(view: View) -> Iterator[Patch]:
    """Plan to free claims of ours that hold devices and that nobody uses.

    Immediate claims hold them without a user.
    If a later step of its cycle fails kube-scheduler removes our reservation and leaves
    the allocation; nobody else frees it once the pods are gone. A claim that was just
    allocated looks like that for a moment, so the caller frees only what is found twice
    in the same version.
    """
    for key, claim in view.claims():
        if not is_immediate(claim) and is_orphan(key, view):
            yield clear(claim)


def is_orphan(key: str, view: View) -> bool:
    """True if a claim holds what we wrote, and nobody uses it."""
    claim = view.claim(key)
    if claim is None or claim.allocation is None:
        return False
    if MANAGED not in claim.metadata.annotations or is_reserved(claim):
        return False
    used = any(not is_done(pod) for pod in view.users(key))
    return not used and not view.ungated_users.has(key)


def _plan_finalizers(keys: Iterable[str], view: View) -> Iterator[Patch]:
    for key in sorted(keys):
        claim = view.claim(key)
        if claim is not None and lacks_finalizer(claim):
            yield prepare(claim)


def lacks_finalizer(claim: ResourceClaim) -> bool:
    """True if a claim that we allocated would be freed by nobody."""
    meta = claim.metadata
    ours = claim.allocation is not None and MANAGED in meta.annotations
    return ours and FINALIZER not in meta.finalizers and not meta.deletion_timestamp


def _report_held_twice(runs: Sequence[_Use], view: View) -> Iterator[StatusReport]:
    for pod, keys in runs:
        for key in keys:
            for device in sorted(exclusive_devices_of(view.claim(key))):
                others = view.holders(device) - {key}
                if others:
                    holder = name_holder(others, pod.metadata.namespace)
                    yield _report_conflict(pod, str(device), holder)


def _report_conflict(pod: Pod, device: str, holder: str) -> StatusReport:
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=HELD_TWICE,
        message=f"device {device} was also allocated to {holder}",
        pods=(pod,),
    )


def _report_removed(runs: Sequence[_Use], view: View) -> Iterator[StatusReport]:
    """Report all devices that their drivers no longer offer at once."""
    removed = [(p, gone) for p, keys in runs for gone in _removed_of(keys, view)]
    if not removed:
        return
    concerned = {pod.metadata.uid: pod for pod, _ in removed}
    named = [f"{device} of pod {pod.metadata.name}" for pod, device in removed[:_NAMED]]
    yield StatusReport(
        phase=GangPhase.RUNNING,
        reason=REMOVED,
        message=f"{len(concerned)} of {counted(len(runs), 'pod holds', 'pods hold')} "
        f"devices that no ResourceSlice offers any longer: {', '.join(named)}",
        pods=tuple(concerned.values()),
    )


def _removed_of(keys: Collection[str], view: View) -> Iterator[DeviceID]:
    for key in keys:
        claim = view.claim(key)
        if claim is not None:
            yield from view.offered.missing(claim)


def _find_endless(pod: Pod, view: View) -> str:
    """Name the claim that a pod makes the controller write without end; empty: none."""
    meta = pod.metadata
    if pod.status.phase not in ENDED or meta.deletion_timestamp:
        return ""
    keys = claim_keys(pod).values()
    return next(
        (key for key in keys if view.reservation_flips.are_endless(key, meta.uid)), ""
    )


def _is_counted(pod: Pod) -> bool:
    meta = pod.metadata
    return not meta.finalizers and any(
        owner.controller and (owner.api_version, owner.kind) in _COUNTED_BY
        for owner in meta.owner_references
    )


def describe_finished(claim: str, then: str) -> str:
    """Describe why a pod that has ended is in the way of a claim that is kept."""
    return (
        f"the pod has ended and ResourceClaim {claim} stays allocated, which makes "
        "kube-controller-manager write it without end "
        f"(kubernetes/kubernetes#141274): {then}"
    )


def _report_finished(pod: Pod, claim: str) -> StatusReport:
    then = "delete it"
    if _is_counted(pod):
        then = "it is deleted, its owner has counted it"
    return StatusReport(
        phase=GangPhase.COMPLETED,
        reason=FINISHED,
        message=describe_finished(claim, then),
        pods=(pod,),
    )
