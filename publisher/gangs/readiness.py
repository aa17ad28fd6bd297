"""Whether the claims of waiting pods are there, and free to be asked for.

One gang at a time asks for devices of a claim: pods of other gangs that use it too
wait until it is allocated, and are bound by it then. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from contracts.allocation import Reason
from contracts.claim import ResourceClaim
from contracts.counts import counted
from contracts.pods.membership import KUEUE
from contracts.pods.volumes import MissingVolume, find_volume_nodes
from contracts.workload import Pod
from publisher.gangs.claims import MOST_RESERVED, reserved_uids
from publisher.gangs.members import Owns
from publisher.gangs.rollback import is_leftover
from publisher.gangs.view import (
    View,
    claim_keys,
    is_gated,
    is_over,
    uids_of,
)


class NotReady(Struct, frozen=True, kw_only=True):
    """Why pods are not submitted yet: what is still to come, or to be put right."""

    reason: str
    """One word for their author, such as `PodsMissing`."""
    message: str
    cause: Reason | None = None
    """What this version of the solver would refuse."""


def find_missing(pods: Sequence[Pod], view: View) -> NotReady | None:
    """Name a claim that is not there, or on its way out, or a volume, or quota."""
    for pod in pods:
        if any(gate.name.startswith(KUEUE) for gate in pod.spec.scheduling_gates):
            # Devices are held for nobody who may not use them yet.
            return NotReady(
                reason="QuotaPending",
                message=f"pod {pod.metadata.name}: Kueue has not admitted it yet",
            )
        volumes = find_volume_nodes(pod.metadata, pod.spec, view.volumes)
        if isinstance(volumes, MissingVolume):
            return NotReady(
                reason="VolumesMissing",
                message=f"pod {pod.metadata.name}: {volumes.message}",
            )
        for name, key in _needed(pod):
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


def find_contention(pods: Sequence[Pod], view: View, owns: Owns) -> NotReady | None:
    """Name a claim that these pods cannot ask for or share now; all claims exist."""
    asking = uids_of(pods)
    users_of: dict[str, list[Pod]] = {}
    for pod in pods:
        for key in claim_keys(pod).values():
            users_of.setdefault(key, []).append(pod)
    for key in sorted(users_of):
        users = users_of[key]
        claim = view.claim(key)
        if claim is None or not owns(claim):
            continue
        conflict = (
            _find_rival(key, users, asking, view)
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


def _needed(pod: Pod) -> Iterator[tuple[str, str]]:
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
    key: str, users: Sequence[Pod], asking: frozenset[str], view: View
) -> NotReady | None:
    """Let one gang ask for a free claim: pods without a gate first, then by group.

    Those are pinned to their nodes already.
    """
    if not is_gated(users[0]):
        return None
    group = view.group_of(users[0])
    for other in view.users(key):
        if other.metadata.uid in asking or is_over(other) or other.spec.node_name:
            continue
        if not is_gated(other) or view.group_of(other) <= group:
            return _shared(key, other, view)
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
        return _shared(key, waiting[min(others)], view)
    return None


def _shared(key: str, other: Pod, view: View) -> NotReady:
    group = view.group_of(other)
    whose = "another gang" if group.lone else f"gang {group}"
    return NotReady(
        reason="ClaimShared",
        message=f"ResourceClaim {key} was submitted with pod {other.metadata.name} of "
        f"{whose}: waits until that pod may run",
    )
