"""Pods that are meant for us and are not at our gate: nobody holds them for their gang.

Their gate or another mark is misspelt, or they have no gate. An index beside the View.
Knows no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from contracts.names import GANG
from contracts.pods.marks import find_unknown_mark, list_unknown_gates
from contracts.workload import Pod

K = TypeVar("K")
_CLUSTERS_OWN = "kube-system"


class StrayPods(Generic[K]):
    """Finds them by their group, of whatever key groups have.

    A pod is one if it has the gang label, or a gate, label or annotation that is nearly
    ours; with `by_claims`, if it is to be scheduled and uses claims, too. Then its
    claims tell.
    """

    def __init__(self, *, by_claims: bool) -> None:
        self._by_claims = by_claims
        self._pods: dict[str, tuple[K, Pod]] = {}
        self._groups: dict[K, set[str]] = {}

    def groups(self) -> Iterator[K]:
        """Go through the groups that have such pods."""
        return iter(self._groups)

    def has(self, group: K) -> bool:
        """True if a group has such pods."""
        return group in self._groups

    def of(self, group: K) -> tuple[Pod, ...]:
        """Return those of a group, by name."""
        return tuple(self._pods[key][1] for key in sorted(self._groups.get(group, ())))

    def pod(self, key: str) -> Pod | None:
        """Return such a pod by `namespace/name`."""
        found = self._pods.get(key)
        return None if found is None else found[1]

    def groups_of(self, pods: Iterable[str]) -> frozenset[K]:
        """Name the groups of those of these pods that are such, by `namespace/name`."""
        return frozenset(self._pods[key][0] for key in pods if key in self._pods)

    def is_one(self, pod: Pod) -> bool:
        """True if a pod is one; it is not over and never passed our gate."""
        if pod.metadata.namespace == _CLUSTERS_OWN:
            return False
        return (
            GANG in pod.metadata.labels
            or any(list_unknown_gates(pod.spec))
            or find_unknown_mark(pod) is not None
            or self.needs_gate(pod)
        )

    def needs_gate(self, pod: Pod) -> bool:
        """True if a pod is to be scheduled, and nobody else may allocate its claims."""
        spec = pod.spec
        is_to_schedule = not spec.node_name and not spec.scheduling_gates
        return self._by_claims and is_to_schedule and bool(spec.resource_claims)

    def apply(self, key: str, found: tuple[K, Pod] | None) -> frozenset[K]:
        """Take in such a pod and its group (None: there is none of that key).

        Returns the groups that it concerns.
        """
        touched: set[K] = set()
        before = self._pods.pop(key, None)
        if before is not None:
            group = before[0]
            touched.add(group)
            self._groups[group].discard(key)
            if not self._groups[group]:
                del self._groups[group]
        if found is not None:
            group = found[0]
            touched.add(group)
            self._pods[key] = found
            self._groups.setdefault(group, set()).add(key)
        return frozenset(touched)
