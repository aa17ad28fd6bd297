"""Pods that are on a node and never were at our gate, while their claims hold nothing.

Their authors set `spec.nodeName`: schedulers ignore such pods, nobody allocates their
claims, and kubelet does not start them. An index beside the View. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from contracts.claim import ResourceClaim
from contracts.names import GANG_UID, GATE, MANAGED, OURS
from contracts.workload import Pod
from publisher.gangs.claims import Owns

_CLUSTERS_OWN = "kube-system"


class BypassedPods:
    """Tells which of them are ours to tell of, and finds them by their claims.

    Those with a label or annotation of ours are, and with `owns_classes` those that use
    a claim of an owned class. kube-scheduler allocates before it binds, so a pod on a
    node whose claim holds nothing passed nobody.
    """

    def __init__(self, owns: Owns, *, owns_classes: bool) -> None:
        self._owns = owns
        self._owns_classes = owns_classes
        self._candidates: dict[str, Pod] = {}
        """Pods on nodes that do not run yet, and those that are taken."""
        self._taken: dict[str, str] = {}
        """Key of a pod -> its uid."""

    def has(self, pod: Pod) -> bool:
        """True if a pod was taken."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return self._taken.get(key) == pod.metadata.uid

    def take(self, key: str, pod: Pod | None, claims: Iterable[ResourceClaim]) -> bool:
        """Take a pod as it is now, if it is one (None: it is gone); False: it is not.

        `claims` are those of its claims that are known. It stays one while claims are
        managed by us: they were allocated for it.
        """
        was_taken = pod is not None and self.has(pod)
        self._taken.pop(key, None)
        self._candidates.pop(key, None)
        if pod is None or not _is_candidate(pod):
            return False
        owned = [claim for claim in claims if self._owns(claim)]
        is_told = self._owns_classes or _has_mark(pod)
        lacks = is_told and any(claim.allocation is None for claim in owned)
        is_managed = any(MANAGED in claim.metadata.annotations for claim in owned)
        waits = pod.status.phase in ("", "Pending")
        takes = (waits and lacks) or (was_taken and is_managed)
        if waits or takes:
            self._candidates[key] = pod
        if takes:
            self._taken[key] = pod.metadata.uid
        return takes

    def of(self, keys: Collection[str]) -> Iterator[tuple[str, Pod]]:
        """Go through those of these pods that are taken, or may be once claims change.

        Keys are `namespace/name`.
        """
        for key in sorted(keys):
            pod = self._candidates.get(key)
            if pod is not None:
                yield key, pod


def _is_candidate(pod: Pod) -> bool:
    meta, spec = pod.metadata, pod.spec
    return (
        bool(spec.node_name and spec.resource_claims)
        and meta.namespace != _CLUSTERS_OWN
        and GANG_UID not in meta.annotations
        and all(gate.name != GATE for gate in spec.scheduling_gates)
    )


def _has_mark(pod: Pod) -> bool:
    marks = (*pod.metadata.labels, *pod.metadata.annotations)
    return any(mark.startswith(OURS) for mark in marks)
