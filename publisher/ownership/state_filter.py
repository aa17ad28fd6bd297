"""Which observed objects the solver is told of: only devices that are ours to give.

Slices that we write ourselves stay out, because the solver has them from the agents;
so do slices that ownership leaves to kube-scheduler, and rules of ours: they add the
taint that the solver ignores, or health that it has from the agents. Pure; remembers
slices only where owned nodes are selected by labels, which change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.names import OWNED, UNHEALTHY
from publisher.kube.changes import Change, ChangePage
from publisher.ownership.ownership import Ownership
from publisher.ownership.plan_taint_rules import HEALTH_RULE
from publisher.slices.layout import is_our_name, read_outline

_Raw = Mapping[str, Any]


class StateFilter:
    """Drops from each page what the solver is not told."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._labels: dict[str, dict[str, str]] = {}
        """Labels by the name of the Node."""
        self._local: dict[str, dict[str, Change]] = {}
        """The last change of each slice that is local to a node, by node and name."""
        self._places: dict[str, str] = {}
        """The node of each such slice."""
        self._foreign: dict[str, tuple[str, int]] = {}
        """Driver and devices of each slice that the solver is not told of."""
        self.foreign_devices: Counter[str] = Counter()
        """Devices that are not ours to give, by driver."""

    def of(self, page: ChangePage) -> ChangePage:
        """Return the page, with what the solver is not told of as gone."""
        changes = [
            kept for change in page.changes for kept in self._filter_change(change)
        ]
        return ChangePage(tuple(changes), page.synced)

    def _filter_change(self, change: Change) -> Iterator[Change]:
        match change.kind:
            case "ResourceSlice":
                self._remember_change(change)
                yield self._filter_slice(change)
            case "DeviceTaintRule" if _is_our_rule(change):
                yield Change(change.kind, change.key, None)
            case "Node":
                yield change
                if self._note_labels(change):
                    yield from map(
                        self._filter_slice, self._local.get(change.key, {}).values()
                    )
            case _:
                yield change

    def _filter_slice(self, change: Change) -> Change:
        driver, devices = self._foreign.pop(change.key, ("", 0))
        self.foreign_devices[driver] -= devices
        raw = change.object
        if raw is None:
            return change
        spec = read_outline(raw)
        if is_our_name(change.key, spec):
            return Change(change.kind, change.key, None)
        labels = self._labels.get(spec.node_name) if spec.node_name else None
        if self._ownership.owns_slice(spec, labels):
            return change
        devices = len(raw["spec"].get("devices") or ())
        self._foreign[change.key] = spec.driver, devices
        self.foreign_devices[spec.driver] += devices
        return Change(change.kind, change.key, None)

    def _remember_change(self, change: Change) -> None:
        if not self._ownership.node_labels:
            return
        self._local.get(self._places.pop(change.key, ""), {}).pop(change.key, None)
        node = None if change.object is None else read_outline(change.object).node_name
        if node is not None:
            self._places[change.key] = node
            self._local.setdefault(node, {})[change.key] = change

    def _note_labels(self, change: Change) -> bool:
        """Note the labels of a Node; returns whether slices depend on the change."""
        if not self._ownership.node_labels:
            return False
        old = self._labels.pop(change.key, None)
        if change.object is not None:
            labels = change.object["metadata"].get("labels") or {}
            self._labels[change.key] = labels
        return old != self._labels.get(change.key)


def _is_our_rule(change: Change) -> bool:
    raw = change.object
    if raw is None:
        return False
    if change.key.startswith(HEALTH_RULE):
        return UNHEALTHY in (raw["metadata"].get("labels") or {})
    taint = raw.get("spec", {}).get("taint") or {}
    return bool(taint.get("key") == OWNED)
