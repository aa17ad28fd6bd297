"""Queues of Kueue as they are known, and what gangs hold of their quotas.

Knows no quota of its own: `solver/problem/quota` counts.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from contracts.kueue import (
    ClusterQueue,
    Cohort,
    Configuration,
    DeviceClassMapping,
    LocalQueue,
    QueueObject,
    ResourceFlavor,
)
from contracts.messages import QuotaHeld
from contracts.meta import ObjectMeta
from solver.snapshot.events import ClusterEvent, quota_event
from solver.snapshot.maps import FrozenMap

HeldAmounts = dict[tuple[str, str], int]
"""By flavor and resource; none is 0."""


class QueueObjects(Struct, frozen=True, kw_only=True):
    """The objects by name, LocalQueues by `namespace/name`."""

    cluster_queues: FrozenMap[str, ClusterQueue] = FrozenMap()
    cohorts: FrozenMap[str, Cohort] = FrozenMap()
    local_queues: FrozenMap[str, LocalQueue] = FrozenMap()
    flavors: FrozenMap[str, ResourceFlavor] = FrozenMap()
    namespaces: FrozenMap[str, dict[str, str]] = FrozenMap()
    """The labels of namespaces, as far as they are known."""
    mappings: tuple[DeviceClassMapping, ...] = ()

    def with_object(self, key: str, value: QueueObject) -> QueueObjects:
        """Take an object in as it is now."""
        if isinstance(value, Configuration):
            mappings = value.resources.device_class_mappings
            return self if mappings == self.mappings else self._with(mappings=mappings)
        field = FIELDS.get(type(value).__name__)
        if field is None:
            return self
        known, meta = getattr(self, field), value.metadata
        kept = ObjectMeta(
            name=meta.name, namespace=meta.namespace, annotations=meta.annotations
        )
        value = structs.replace(value, metadata=kept)
        if known.get(key) == value:
            return self
        return self._with(**{field: known.with_item(key, value)})

    def without_object(self, kind: str, key: str) -> QueueObjects:
        """Forget an object that is gone."""
        field = FIELDS.get(kind)
        if field is None or key not in getattr(self, field):
            return self
        return self._with(**{field: getattr(self, field).without(key)})

    def _with(self, **fields: Any) -> QueueObjects:
        return structs.replace(self, **fields)

    def with_namespace(self, name: str, labels: dict[str, str] | None) -> QueueObjects:
        """Take a namespace's labels in; None: it is gone."""
        if self.namespaces.get(name) == labels:
            return self
        if labels is None:
            namespaces = self.namespaces.without(name)
        else:
            namespaces = self.namespaces.with_item(name, labels)
        return structs.replace(self, namespaces=namespaces)

    def list_cohorts(self, cluster_queue: str) -> tuple[str, ...] | None:
        """List the cohorts that a ClusterQueue is in, its own first.

        None: a cohort is its own ancestor.
        """
        queue = self.cluster_queues.get(cluster_queue)
        return self.list_above("" if queue is None else queue.spec.cohort_name)

    def list_above(self, name: str) -> tuple[str, ...] | None:
        """List a cohort and those that it is in; None: it is its own ancestor."""
        found = list[str]()
        while name:
            if name in found:
                return None
            found.append(name)
            cohort = self.cohorts.get(name)
            name = "" if cohort is None else cohort.spec.parent_name
        return tuple(found)

    def quota_event(self, cluster_queue: str) -> ClusterEvent:
        """Name the event that more is left for a ClusterQueue and whom it lends to."""
        cohorts = self.list_cohorts(cluster_queue)
        return quota_event(f"cohort/{cohorts[-1]}" if cohorts else cluster_queue)


FIELDS = {
    "ClusterQueue": "cluster_queues",
    "Cohort": "cohorts",
    "LocalQueue": "local_queues",
    "ResourceFlavor": "flavors",
}
"""The field of each kind; of others nothing is kept here."""
Held = FrozenMap[str, HeldAmounts]
"""What gangs hold, by ClusterQueue."""


def with_held(held: Held, quota: QuotaHeld | None, sign: int) -> Held:
    """Add what a gang holds, or with -1 take it away."""
    if quota is None or not quota.amounts:
        return held
    amounts = dict(held.get(quota.cluster_queue) or {})
    for resource, amount in quota.amounts.items():
        key = (quota.flavors[resource], resource)
        amounts[key] = amounts.get(key, 0) + sign * amount
    amounts = {key: amount for key, amount in amounts.items() if amount}
    if not amounts:
        return held.without(quota.cluster_queue)
    return held.with_item(quota.cluster_queue, amounts)
