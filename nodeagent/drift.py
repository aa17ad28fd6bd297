"""Compares what runs on this node with what was decided. Pure.

kubelet says which devices containers hold (PodResources), the API server what claims
were given, our records what is prepared. The three are read one after the other, so a
difference counts only once it has lasted.

Source: KEP-3695 (PodResources and dynamic resources).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from contracts.drift import MAX_DRIFTS, DeviceDrift, DriftKind
from contracts.ids import ClaimRef, ClaimUID, DeviceID
from nodeagent.health import Moment


class DeviceInUse(Struct, frozen=True, order=True):
    """A device that a container holds, as kubelet says."""

    pod: str
    """`namespace/name`."""
    claim: ClaimRef
    """Without a uid: kubelet does not say which of that name."""
    device: DeviceID


class ClaimWanted(Struct, frozen=True, order=True):
    """A claim of a pod that kubelet starts or runs."""

    pod: str
    """`namespace/name`."""
    claim: ClaimRef
    """Without a uid, too."""


class ClaimOnRecord(Struct, frozen=True):
    """A claim as the API server has it."""

    uid: ClaimUID
    devices: frozenset[DeviceID] = frozenset()
    """Devices of our drivers that it was allocated."""


class NodeSight(Struct, frozen=True, kw_only=True):
    """All three at one time; claims by name, without a uid."""

    in_use: frozenset[DeviceInUse] = frozenset()
    """Of our drivers only."""
    wanted: frozenset[ClaimWanted] = frozenset()
    """Of any driver: kubelet tells which only once it is prepared."""
    prepared: Mapping[ClaimRef, frozenset[DeviceID]] = {}
    """By claim, with its uid: our records."""
    dropped: Mapping[ClaimRef, frozenset[DeviceID]] = {}
    """The same of drivers that no source is of: kubelet finds nobody to unprepare."""
    claims: Mapping[ClaimRef, ClaimOnRecord | None] = {}
    """None: there is none of that name. What could not be read is left out."""


def find_settled(sight: NodeSight) -> frozenset[ClaimRef]:
    """Find the claims, with their uids, of which kubelet and our records say the same.

    Somebody must have freed such a claim under its pod to make it differ.
    """
    held: defaultdict[ClaimRef, set[DeviceID]] = defaultdict(set)
    for use in sight.in_use:
        held[use.claim].add(use.device)
    return frozenset(
        ref
        for ref, devices in sight.prepared.items()
        if held[ClaimRef(ref.namespace, ref.name)] == devices
    )


class Drift(Struct, frozen=True, order=True):
    """One difference."""

    kind: DriftKind
    claim: str
    """`namespace/name`."""
    device: DeviceID
    pod: str = ""
    """`namespace/name`; empty: no pod is concerned."""


def find_drift(sight: NodeSight) -> frozenset[Drift]:
    """Find where what runs differs from what was decided, in one look."""
    prepared = {
        (ClaimRef(ref.namespace, ref.name), device)
        for ref, devices in sight.prepared.items()
        for device in devices
    }
    found = (
        *_find_in_use(sight, prepared),
        *_find_gone(sight),
        *_find_never_prepared(sight, prepared),
        *_find_dropped(sight),
    )
    return frozenset(found)


def _find_in_use(
    sight: NodeSight, prepared: AbstractSet[tuple[ClaimRef, DeviceID]]
) -> Iterator[Drift]:
    for use in sight.in_use:
        fields = (str(use.claim), use.device, use.pod)
        if use.claim in sight.claims:
            claim = sight.claims[use.claim]
            if claim is None or use.device not in claim.devices:
                yield Drift(DriftKind.NOT_ALLOCATED, *fields)
        if (use.claim, use.device) not in prepared:
            yield Drift(DriftKind.NOT_PREPARED, *fields)


def _find_gone(sight: NodeSight) -> Iterator[Drift]:
    for ref, devices in sight.prepared.items():
        name = ClaimRef(ref.namespace, ref.name)
        if name not in sight.claims:
            continue
        claim = sight.claims[name]
        if claim is None or claim.uid != ref.uid or not claim.devices:
            for device in devices:
                yield Drift(DriftKind.CLAIM_GONE, str(ref), device)


def _find_never_prepared(
    sight: NodeSight, prepared: AbstractSet[tuple[ClaimRef, DeviceID]]
) -> Iterator[Drift]:
    held = {(use.claim, use.device) for use in sight.in_use}
    for wanted in sight.wanted:
        claim = sight.claims.get(wanted.claim)
        for device in claim.devices if claim is not None else ():
            # What a container holds is told as that.
            if (wanted.claim, device) not in (prepared | held):
                fields = (str(wanted.claim), device, wanted.pod)
                yield Drift(DriftKind.NEVER_PREPARED, *fields)


def _find_dropped(sight: NodeSight) -> Iterator[Drift]:
    for ref, devices in sight.dropped.items():
        for device in devices:
            yield Drift(DriftKind.DRIVER_GONE, str(ref), device)


class DriftWatch:
    """Tracks differences: comparisons go in, what begins and ends comes out."""

    def __init__(self, lasts_s: float) -> None:
        """`lasts_s`: a difference that is over sooner is none."""
        self._lasts_s = lasts_s
        self._since: dict[Drift, Moment] = {}
        self._told: frozenset[Drift] = frozenset()

    @property
    def told(self) -> tuple[DeviceDrift, ...]:
        """Differences that lasted long enough to report, as many as a message holds."""
        return tuple(
            DeviceDrift(
                kind=drift.kind,
                device=drift.device,
                claim=drift.claim,
                pod=drift.pod,
                since=self._since[drift].utc,
            )
            for drift in sorted(self._told)[:MAX_DRIFTS]
        )

    def look(
        self, sight: NodeSight, now: Moment
    ) -> tuple[tuple[Drift, ...], tuple[Drift, ...]]:
        """Take one look into account; returns what begins and what ends, in order."""
        found = find_drift(sight)
        self._since = {drift: self._since.get(drift, now) for drift in found}
        told = frozenset(
            drift
            for drift, since in self._since.items()
            if now.monotonic_s - since.monotonic_s >= self._lasts_s
        )
        began, ended = told - self._told, self._told - told
        self._told = told
        return tuple(sorted(began)), tuple(sorted(ended))
