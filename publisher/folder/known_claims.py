"""Which claims the sink holds, by name and by gang.

The publisher's memory of its own writes, so that a plan needs no reading. Knows
neither the sink nor how the claims came there.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claim import ResourceClaim
from contracts.ids import GangKey, GangUID, Namespace
from contracts.names import GANG_UID
from publisher.steps import ObjectKey, Published, Step, apply_steps, key_of


class KnownClaims:
    """Claims by name and by gang."""

    def __init__(self, objects: Iterable[Published] = ()) -> None:
        self._claims: dict[ObjectKey, ResourceClaim] = {}
        self._of_gang: dict[GangKey, set[ObjectKey]] = {}
        for obj in objects:
            self._put_object(key_of(obj), obj)

    def of_gang(
        self, gang: GangKey, keys: Iterable[ObjectKey] = ()
    ) -> tuple[ResourceClaim, ...]:
        """Return the claims of a gang, and those of further names."""
        names = self._of_gang.get(gang, set()).union(keys)
        return tuple(self._claims[key] for key in sorted(names & self._claims.keys()))

    def gangs(self) -> frozenset[GangKey]:
        """Name all gangs that have claims."""
        return frozenset(self._of_gang)

    def apply(self, steps: Iterable[Step[ResourceClaim]]) -> None:
        """Note that steps were carried out."""
        steps = tuple(steps)
        keys = {key_of(step.object) for step in steps}
        old = {key: self._claims[key] for key in keys & self._claims.keys()}
        new = apply_steps(old, steps)
        for key in keys:
            self._put_object(key, new.get(key))

    def refresh(self, keys: Iterable[ObjectKey], objects: Iterable[Published]) -> None:
        """Note what was read under these names; what was not found is not there."""
        objects_by_key = {key_of(obj): obj for obj in objects}
        for key in keys:
            self._put_object(key, objects_by_key.get(key))

    def _put_object(self, key: ObjectKey, obj: Published | None) -> None:
        old = self._claims.pop(key, None)
        if old is not None:
            gang = _gang_of(old)
            keys = self._of_gang.get(gang, set())
            keys.discard(key)
            if not keys:
                self._of_gang.pop(gang, None)
        if isinstance(obj, ResourceClaim):
            self._claims[key] = obj
            gang = _gang_of(obj)
            if gang.uid:
                self._of_gang.setdefault(gang, set()).add(key)


def _gang_of(claim: ResourceClaim) -> GangKey:
    """Return the gang that a claim was written for; one without a uid: none."""
    meta = claim.metadata
    uid = GangUID(meta.annotations.get(GANG_UID, ""))
    return GangKey(Namespace(meta.namespace), uid)
