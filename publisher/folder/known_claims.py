"""Which claims the sink holds, by name and by gang.

The publisher's memory of its own writes, so that a plan needs no reading. Knows
neither the sink nor how the claims came there.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claim import ResourceClaim
from contracts.ids import GangUID
from contracts.names import GANG_UID
from publisher.steps import ObjectKey, Published, Step, apply_steps, key_of


class KnownClaims:
    """Claims by name and by gang."""

    def __init__(self, items: Iterable[Published] = ()) -> None:
        self._claims: dict[ObjectKey, ResourceClaim] = {}
        self._of_gang: dict[str, set[ObjectKey]] = {}
        for item in items:
            self._put(key_of(item), item)

    def of_gang(
        self, gang: GangUID, keys: Iterable[ObjectKey] = ()
    ) -> tuple[ResourceClaim, ...]:
        """Give the claims of a gang, and those of further names."""
        wanted = self._of_gang.get(gang, set()).union(keys)
        return tuple(self._claims[key] for key in sorted(wanted & self._claims.keys()))

    def gangs(self) -> frozenset[str]:
        """Name all gangs that have claims."""
        return frozenset(self._of_gang)

    def apply(self, steps: Iterable[Step[ResourceClaim]]) -> None:
        """Take in that steps were carried out."""
        steps = tuple(steps)
        keys = {key_of(step.object) for step in steps}
        before = {key: self._claims[key] for key in keys & self._claims.keys()}
        now = apply_steps(before, steps)
        for key in keys:
            self._put(key, now.get(key))

    def refresh(self, keys: Iterable[ObjectKey], found: Iterable[Published]) -> None:
        """Take in what was read under these names; what is not found is not there."""
        items = {key_of(item): item for item in found}
        for key in keys:
            self._put(key, items.get(key))

    def _put(self, key: ObjectKey, item: Published | None) -> None:
        before = self._claims.pop(key, None)
        if before is not None:
            gang = before.metadata.annotations.get(GANG_UID, "")
            keys = self._of_gang.get(gang, set())
            keys.discard(key)
            if not keys:
                self._of_gang.pop(gang, None)
        if isinstance(item, ResourceClaim):
            self._claims[key] = item
            gang = item.metadata.annotations.get(GANG_UID, "")
            if gang:
                self._of_gang.setdefault(gang, set()).add(key)
