"""What is to be done about pods whose gates are open, whoever is to blame.

A claim that is in use and lost its finalizer gets it back: without it nobody frees the
claim. A pod that has ended while others use its claim makes the controller write
without end; only the end of the pod object ends that. It is deleted where its owner has
counted it and misses nothing; otherwise its author is told. So is who has a device that
somebody else took as well: the API server does not look. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contracts.claim import ResourceClaim
from contracts.gang import GangPhase
from contracts.names import FINALIZER, MANAGED
from contracts.workload import Pod
from publisher.gangs.patches import Patch, prepare
from publisher.gangs.situation import GangPlan, StatusReport
from publisher.gangs.view import (
    ENDED,
    View,
    claim_keys,
    devices_alone,
    is_gated,
    is_over,
)

FINISHED = "FinishedPodInTheWay"
HELD_TWICE = "DeviceHeldTwice"
_COUNTED_BY = {("batch/v1", "Job"), ("apps/v1", "ReplicaSet")}
"""They do not miss a pod that ended, once it has no finalizer of theirs."""


def plan_upkeep(pods: Sequence[Pod], view: View, plan: GangPlan) -> None:
    """Add what is to be done for pods that run or have ended."""
    plan.patches += _finalizers(pods, view)
    plan.told += _held_twice(pods, view)
    for pod in pods:
        key = _endless(pod, view)
        if not key:
            continue
        counted = _is_counted(pod)
        plan.told.append(_finished(pod, key.partition("/")[2], counted=counted))
        if counted:
            plan.removals.append(pod)


def _finalizers(pods: Sequence[Pod], view: View) -> Iterator[Patch]:
    alive = [pod for pod in pods if not is_over(pod)]
    for key in sorted({key for pod in alive for key in claim_keys(pod).values()}):
        claim = view.claim(key)
        if claim is not None and _lacks_finalizer(claim):
            yield prepare(claim)


def _lacks_finalizer(claim: ResourceClaim) -> bool:
    meta = claim.metadata
    ours = claim.allocation is not None and MANAGED in meta.annotations
    return ours and FINALIZER not in meta.finalizers and not meta.deletion_timestamp


def _held_twice(pods: Sequence[Pod], view: View) -> Iterator[StatusReport]:
    for pod in pods:
        if is_over(pod) or is_gated(pod):
            continue
        for key in claim_keys(pod).values():
            for device in sorted(devices_alone(view.claim(key))):
                others = view.holders(device) - {key}
                if others:
                    yield _conflict(pod, str(device), min(others))


def _conflict(pod: Pod, device: str, other: str) -> StatusReport:
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=HELD_TWICE,
        message=f"device {device} was allocated to ResourceClaim {other} as well",
        pods=(pod,),
    )


def _endless(pod: Pod, view: View) -> str:
    """Name the claim that is written without end because of a pod; empty: none is."""
    meta = pod.metadata
    if pod.status.phase not in ENDED or meta.deletion_timestamp:
        return ""
    keys = claim_keys(pod).values()
    return next((key for key in keys if view.turns.are_endless(key, meta.uid)), "")


def _is_counted(pod: Pod) -> bool:
    meta = pod.metadata
    return not meta.finalizers and any(
        owner.controller and (owner.api_version, owner.kind) in _COUNTED_BY
        for owner in meta.owner_references
    )


def _finished(pod: Pod, claim: str, *, counted: bool) -> StatusReport:
    then = "it is deleted, its owner has counted it" if counted else "delete it"
    return StatusReport(
        phase=GangPhase.COMPLETED,
        reason=FINISHED,
        message=f"the pod has ended and others still use ResourceClaim {claim}, which "
        "makes kube-controller-manager write it without end "
        f"(kubernetes/kubernetes#141274): {then}",
        pods=(pod,),
    )
