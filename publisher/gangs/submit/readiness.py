"""Claims of waiting pods: are they there, are they free, have they our finalizer?

One gang at a time asks for devices of a claim. Pods of other gangs that use the same
claim wait until it is allocated, and then go where its devices are. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from contracts.allocation import Reason
from contracts.claim import ResourceClaim
from contracts.counts import counted
from contracts.names import ALLOCATE, GATE, IMMEDIATE
from contracts.pods.marks import list_unknown_gates
from contracts.pods.membership import KUEUE
from contracts.pods.volumes import MissingVolume, find_volume_nodes
from contracts.workload import Pod
from publisher.gangs import patches
from publisher.gangs.claims import (
    MOST_RESERVED,
    is_immediate,
    is_prepared,
    reserved_uids,
)
from publisher.gangs.context import PlanContext
from publisher.gangs.patches import Patch
from publisher.gangs.rollback import is_leftover, plan_undo
from publisher.gangs.view import View, claim_keys, claims_of, is_gated, is_over, uids_of


class NotReady(Struct, frozen=True, kw_only=True):
    """Why pods are not submitted yet: what is still to come, or to be put right."""

    reason: str
    """One word for their author, such as `PodsMissing`."""
    message: str
    cause: Reason | None = None
    """What this version of the solver would refuse."""


def find_missing(pods: Sequence[Pod], view: View) -> NotReady | None:
    """Return the first claim, volume or quota that is missing; None: all are there."""
    for pod in pods:
        # Devices are held for nobody who may not use them yet.
        held_back = _find_other_gate(pod, view)
        if held_back is not None:
            return held_back
        volumes = find_volume_nodes(pod.metadata, pod.spec, view.volumes)
        if isinstance(volumes, MissingVolume):
            return NotReady(
                reason="VolumesMissing",
                message=f"pod {pod.metadata.name}: {volumes.message}",
            )
        for name, key in _list_needed_claims(pod):
            claim = view.claim(key) if key else None
            if claim is None:
                text = f"no ResourceClaim {name} yet"
            elif claim.metadata.deletion_timestamp:
                text = f"ResourceClaim {claim.metadata.name} is being deleted"
            else:
                continue
            return NotReady(
                reason="ClaimsMissing", message=f"pod {pod.metadata.name}: {text}"
            )
    return None


def _find_other_gate(pod: Pod, view: View) -> NotReady | None:
    """Return the gate of others at which a pod waits; None: at ours alone."""
    unknown = dict(list_unknown_gates(pod.spec))
    for number, gate in enumerate(pod.spec.scheduling_gates):
        if gate.name.startswith(KUEUE):
            return NotReady(
                reason="QuotaPending",
                message=f"pod {pod.metadata.name}: Kueue has not admitted it yet",
            )
        if gate.name != GATE and gate.name not in view.late_gates:
            why = f"waits at {gate.name}"
            if number in unknown:
                why = f"waits for ever: {unknown[number]}"
            return NotReady(
                reason="OtherGates",
                message=f"pod {pod.metadata.name} {why}",
            )
    return None


def find_contention(pods: Sequence[Pod], context: PlanContext) -> NotReady | None:
    """Return the first claim that these pods cannot ask for now; all claims exist."""
    asking, view = uids_of(pods), context.view
    users_of: dict[str, list[Pod]] = {}
    for pod in pods:
        for key in claim_keys(pod).values():
            users_of.setdefault(key, []).append(pod)
    for key in sorted(users_of):
        users = users_of[key]
        claim = view.claim(key)
        if claim is None or not context.owns(claim):
            continue
        conflict = (
            _find_rival(key, users, asking, context)
            if claim.allocation is None
            else _find_leftover(key, claim, asking, view)
        )
        reserved = reserved_uids(claim) | uids_of(users)
        if conflict is None and len(reserved) > MOST_RESERVED:
            conflict = NotReady(
                reason="TooManyUsers",
                message=f"{counted(len(reserved), 'pod')} would use ResourceClaim "
                f"{key}; a claim allows {MOST_RESERVED}",
            )
        if conflict is not None:
            return conflict
    return None


def _list_needed_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Go through a pod's claims by name and key; no key: it is to be generated."""
    keys = claim_keys(pod)
    statuses = pod.status.resource_claim_statuses
    needless = {
        status.name for status in statuses if status.resource_claim_name is None
    }
    for claim in pod.spec.resource_claims:
        if claim.name not in needless:
            name = claim.resource_claim_name or f"{claim.name} (generated)"
            yield name, keys.get(claim.name, "")


def _find_rival(
    key: str, users: Sequence[Pod], asking: frozenset[str], context: PlanContext
) -> NotReady | None:
    """Let one gang ask for a free claim: pods with open gates first, then by group.

    Pods with open gates are pinned to their nodes already.
    """
    if is_immediate(context.view.claim(key)):
        return NotReady(
            reason="ClaimShared",
            message=f"ResourceClaim {key} is allocated by itself "
            f"({ALLOCATE}: {IMMEDIATE}): waits until it is",
        )
    if not is_gated(users[0]):
        return None
    view, group = context.view, context.group
    for other in view.users(key):
        if other.metadata.uid in asking or is_over(other) or other.spec.node_name:
            continue
        if not is_gated(other) or view.group_of(other) <= group:
            return _report_shared(key, other, view)
    return None


def _find_leftover(
    key: str, claim: ResourceClaim, asking: frozenset[str], view: View
) -> NotReady | None:
    """Wait while a claim holds something for pods that do not run."""
    if is_leftover(key, asking, view):
        return NotReady(
            reason="ClaimsHeld",
            message=f"ResourceClaim {key} still holds devices that were given up",
        )
    waiting = {
        pod.metadata.uid: pod
        for pod in view.users(key)
        if is_gated(pod) and not is_over(pod)
    }
    if is_leftover(key, waiting.keys(), view):
        others = reserved_uids(claim) - asking
        return _report_shared(key, waiting[min(others)], view)
    return None


def _report_shared(key: str, other: Pod, view: View) -> NotReady:
    group = view.group_of(other)
    whose = "another gang" if group.lone else f"gang {group}"
    return NotReady(
        reason="ClaimShared",
        message=f"ResourceClaim {key} was submitted with pod {other.metadata.name} of "
        f"{whose}: waits until that pod may run",
    )


def plan_fresh_start(pods: Sequence[Pod], context: PlanContext) -> list[Patch]:
    """Plan to free what waiting pods hold for themselves; then their finalizers."""
    undo = list(plan_undo(pods, context.view))
    return undo or list(plan_prepare(claims_of(pods), context))


def plan_prepare(keys: Iterable[str], context: PlanContext) -> Iterator[Patch]:
    """Plan finalizers ahead of decisions: one write less when it counts."""
    for key in sorted(set(keys)):
        claim = context.view.claim(key)
        if claim is None or claim.metadata.deletion_timestamp:
            continue
        if context.owns(claim) and claim.allocation is None and not is_prepared(claim):
            yield patches.prepare(claim)
