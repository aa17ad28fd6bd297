"""What runs on this node beside what was decided: where they differ. Pure.

kubelet says which devices containers hold (PodResources), the API server what claims
were given, our records what is prepared. The three are read one after the other, so a
difference counts only once it has lasted.

Source: KEP-3695 (PodResources and dynamic resources).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from contracts.ids import ClaimRef, ClaimUID, DeviceID


class DriftKind(StrEnum):
    """How what runs differs from what was decided."""

    NOT_ALLOCATED = "InUseNotAllocated"
    """A container holds a device that its claim was not given, or has no claim."""
    NOT_PREPARED = "InUseNotPrepared"
    """A container holds a device that no record of ours prepared."""
    CLAIM_GONE = "PreparedClaimGone"
    """What is prepared is of a claim that is gone, freed, or another one by now."""


class DeviceInUse(Struct, frozen=True, order=True):
    """A device that a container holds, as kubelet says."""

    pod: str
    """`namespace/name`."""
    claim: ClaimRef
    """Without a uid: kubelet does not say which of that name."""
    device: DeviceID


class ClaimOnRecord(Struct, frozen=True):
    """A claim as the API server has it."""

    uid: ClaimUID
    devices: frozenset[DeviceID] = frozenset()
    """What it was given; empty: it is not allocated."""


class NodeSight(Struct, frozen=True, kw_only=True):
    """One look at all three; claims by name, without a uid."""

    in_use: frozenset[DeviceInUse] = frozenset()
    """Of our drivers only."""
    prepared: Mapping[ClaimRef, frozenset[DeviceID]] = {}
    """By claim, with its uid: our records."""
    claims: Mapping[ClaimRef, ClaimOnRecord | None] = {}
    """None: there is none of that name. What could not be read is left out."""


class Drift(Struct, frozen=True, order=True):
    """One difference."""

    kind: DriftKind
    claim: str
    """`namespace/name`."""
    device: str = ""
    pod: str = ""
    """`namespace/name`; empty: no container is concerned."""


def find_drift(sight: NodeSight) -> frozenset[Drift]:
    """Find where what runs differs from what was decided, in one look."""
    return frozenset((*_find_in_use(sight), *_find_gone(sight)))


def _find_in_use(sight: NodeSight) -> Iterator[Drift]:
    prepared = {
        (ref.namespace, ref.name, device)
        for ref, devices in sight.prepared.items()
        for device in devices
    }
    for use in sight.in_use:
        fields = (str(use.claim), str(use.device), use.pod)
        if use.claim in sight.claims:
            claim = sight.claims[use.claim]
            if claim is None or use.device not in claim.devices:
                yield Drift(DriftKind.NOT_ALLOCATED, *fields)
        if (use.claim.namespace, use.claim.name, use.device) not in prepared:
            yield Drift(DriftKind.NOT_PREPARED, *fields)


def _find_gone(sight: NodeSight) -> Iterator[Drift]:
    for ref, devices in sight.prepared.items():
        name = ClaimRef(ref.namespace, ref.name)
        if name not in sight.claims:
            continue
        claim = sight.claims[name]
        if claim is None or claim.uid != ref.uid or not claim.devices:
            for device in devices:
                yield Drift(DriftKind.CLAIM_GONE, str(ref), str(device))


class DriftWatch:
    """What differs, and since when: looks go in, what begins and ends comes out."""

    def __init__(self, lasts_s: float) -> None:
        """`lasts_s`: a difference that is over sooner is none."""
        self._lasts_s = lasts_s
        self._since_s: dict[Drift, float] = {}
        self._told: frozenset[Drift] = frozenset()

    @property
    def told(self) -> Collection[Drift]:
        """What differs now, and has for long enough."""
        return self._told

    def look(
        self, sight: NodeSight, now_s: float
    ) -> tuple[tuple[Drift, ...], tuple[Drift, ...]]:
        """Take one look into account; returns what begins and what ends, in order."""
        found = find_drift(sight)
        self._since_s = {drift: self._since_s.get(drift, now_s) for drift in found}
        told = frozenset(
            drift
            for drift, since_s in self._since_s.items()
            if now_s - since_s >= self._lasts_s
        )
        began, ended = told - self._told, self._told - told
        self._told = told
        return tuple(sorted(began)), tuple(sorted(ended))
