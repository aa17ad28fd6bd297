"""Which claims are used by pods that never had our gate.

An index beside the View, which knows the users that wait or waited for us. A claim of a
PodGroup says of no pod that it is reserved for it, so only its users tell whether its
devices are in use. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Iterable


class UngatedUsers:
    """Claims by `namespace/name`, with keys of pods."""

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}
        """Key of a pod -> keys of its claims."""
        self._users: dict[str, set[str]] = {}

    def has(self, claim: str) -> bool:
        """Whether any such pod uses a claim."""
        return claim in self._users

    def apply(self, pod: str, claims: Iterable[str]) -> frozenset[str]:
        """Take in which claims a pod uses now; returns those of which that is news."""
        before, after = self._claims.pop(pod, frozenset()), frozenset(claims)
        for claim in before - after:
            self._users[claim].discard(pod)
            if not self._users[claim]:
                del self._users[claim]
        for claim in after - before:
            self._users.setdefault(claim, set()).add(pod)
        if after:
            self._claims[pod] = after
        return before ^ after
