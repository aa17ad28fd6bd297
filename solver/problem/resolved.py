"""Gangs that are resolved once, and again when something they refer to has changed.

A gang that waits is tried whenever something grows, and asks the same each time. What
`resolve` gives follows from gang and options, and from where references lead; so every
reference that was followed is remembered beside it.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, structs

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import DeviceClassName, GangKey, GangUID, Namespace
from contracts.lifecycle import GangRecord
from solver.cache import Cache
from solver.problem.gangs import GangPart
from solver.problem.resolve import Lookup, ResolveOptions, resolve
from solver.snapshot.parts import ClassPart

MOST_RESOLVED = 4096
"""Gangs that are remembered."""
F = TypeVar("F")
Followed = tuple[str, str, object]
"""(method of the lookup, name, what it led to) of a reference."""


class _Resolved(Struct, frozen=True):
    """A gang as it was resolved, with all that this followed from."""

    gang: Gang
    how: tuple[Features, bool, bool]
    followed: tuple[Followed, ...]
    part: GangPart


_RESOLVED: Cache[GangKey, _Resolved] = Cache(MOST_RESOLVED)


def resolve_once(uid: GangUID, gang: Gang, how: ResolveOptions) -> GangPart:
    """Make a gang ready as `resolve` does, or return what that gave before."""
    key = GangKey(Namespace(gang.metadata.namespace), uid)
    options = (how.features, how.lenient, how.of_pods)
    known = _RESOLVED.get(key)
    if known is not None and known.gang is gang and known.how == options:
        lookup = how.lookup
        if all(getattr(lookup, m)(name) is found for m, name, found in known.followed):
            return known.part
    noting = _NotingLookup(how.lookup)
    part = resolve(uid, gang, structs.replace(how, lookup=noting))
    _RESOLVED.keep(key, _Resolved(gang, options, tuple(noting.followed), part))
    return part


class _NotingLookup:
    """Follows references, and notes where they led."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.followed: list[Followed] = []

    def device_class(self, name: DeviceClassName) -> ClassPart | None:
        """Look up a class."""
        return self._note_lookup("device_class", name, self._lookup.device_class(name))

    def template(self, key: str) -> ResourceClaimTemplate | None:
        """Look up a template by `namespace/name`."""
        return self._note_lookup("template", key, self._lookup.template(key))

    def claim(self, key: str) -> ResourceClaim | None:
        """Look up a claim by `namespace/name`."""
        return self._note_lookup("claim", key, self._lookup.claim(key))

    def claim_holder(self, key: str) -> GangRecord | None:
        """Find the gang that was given a claim by `namespace/name`, if any was."""
        return self._note_lookup("claim_holder", key, self._lookup.claim_holder(key))

    def class_serving(self, resource: str) -> DeviceClassName | None:
        """Find the class that serves an extended resource (KEP-5004)."""
        found = self._lookup.class_serving(resource)
        return self._note_lookup("class_serving", resource, found)

    def _note_lookup(self, method: str, name: str, found: F) -> F:
        self.followed.append((method, name, found))
        return found
